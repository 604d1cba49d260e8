import type { Command } from './command.ts'
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

export const replicasDrain = stateCommand(
  'replicas drain',
  'draining',
  'send no more requests to a replica; running requests finish',
  'The replica gets no more requests. "spillway models show" says when none is running there.',
)

export const replicasUndrain = stateCommand(
  'replicas undrain',
  'ready',
  'use a drained replica again, slowly at first',
  'The replica is used again, slowly at first.',
)
