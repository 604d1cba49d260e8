import { type Command, textFlag, UsageError } from './command.ts'
import { ADMIN_FLAGS, AdminClient, argumentOf, BECAUSE_FLAG, becauseOf, under } from './http-admin-client.ts'

/** `spillway replicas drain` is for maintenance, until `undrain` or until the server restarts. */
const stateCommand = (name: string, state: 'draining' | 'ready', summary: string, done: string): Command => ({
  name,
  summary,
  about: 'REPLICA is an id that "spillway models show" lists. Running requests finish.',
  argument: 'REPLICA',
  flags: { ...BECAUSE_FLAG, ...ADMIN_FLAGS },
  examples: [`spillway ${name} llama-8b-local-0 --because "new driver"`],
  async run(flags, io) {
    const id = argumentOf(flags, 'replica', `${name} llama-8b-local-0 --because "new driver"`)
    const because = becauseOf(flags)
    const answer = await new AdminClient(flags).call('POST', under('/replicas', id), { state, because })
    io.out(flags['json'] === true ? JSON.stringify(answer) : done)
    return 0
  },
})

export const replicasDrainCommand = stateCommand(
  'replicas drain',
  'draining',
  'send no more requests to a replica; running requests finish',
  'The replica gets no more requests. "spillway models show" says when none is running there.',
)

export const replicasUndrainCommand = stateCommand(
  'replicas undrain',
  'ready',
  'use a drained replica again, slowly at first',
  'The replica is used again, slowly at first.',
)

export const replicasAdd: Command = {
  name: 'replicas add',
  summary: 'one replica more in a pool of engines, kept over restarts',
  about: 'POOL is the id that "spillway models show" lists, of the configuration file or of the registry.',
  argument: 'POOL',
  flags: {
    replica: { type: 'string', value: 'URL', meaning: 'address of the engine, as http://gpu-6:8000/v1 (required)' },
    ...BECAUSE_FLAG,
    ...ADMIN_FLAGS,
  },
  examples: ['spillway replicas add llama-8b-local --replica http://gpu-6:8000/v1 --because "more room"'],
  async run(flags, io) {
    const example = 'replicas add llama-8b-local --replica http://gpu-6:8000/v1 --because "more room"'
    const pool = argumentOf(flags, 'pool', example)
    const url = textFlag(flags, 'replica')
    if (url === undefined) throw new UsageError(`--replica is missing: at which address? Try: spillway ${example}`)
    const because = becauseOf(flags)
    const answer = await new AdminClient(flags).call<Changed>('POST', '/replicas', { pool, url, because })
    io.out(flags['json'] === true ? JSON.stringify(answer) : `Done: revision ${answer.revision}.`)
    return 0
  },
}

export const replicasRemove: Command = {
  name: 'replicas remove',
  summary: 'take out a replica that was added; what it runs, it finishes',
  about:
    'REPLICA is the id that "spillway models show" lists. One that the configuration file lists is taken out there.',
  argument: 'REPLICA',
  flags: { ...BECAUSE_FLAG, ...ADMIN_FLAGS },
  examples: ['spillway replicas remove llama-8b-local-gpu-6:8000 --because "moved elsewhere"'],
  async run(flags, io) {
    const id = argumentOf(flags, 'replica', 'replicas remove llama-8b-local-gpu-6:8000 --because "moved elsewhere"')
    const because = becauseOf(flags)
    const answer = await new AdminClient(flags).call<Changed>('DELETE', under('/replicas', id), { because })
    io.out(flags['json'] === true ? JSON.stringify(answer) : `Done: revision ${answer.revision}.`)
    return 0
  },
}

interface Changed {
  readonly revision: number | null
}
