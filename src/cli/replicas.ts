import type { Command } from './command.ts'
import { ADMIN_FLAGS, AdminClient, argumentOf, BECAUSE_FLAG, becauseOf, under } from './http-admin-client.ts'

/** `spillway replicas drain` and `undrain`: for maintenance, until somebody says otherwise or the server restarts. */
const stateCommand = (name: string, state: 'draining' | 'ready', summary: string, done: string): Command => ({
  name,
  summary,
  about: 'REPLICA is the id that "spillway models show" lists. What runs there, finishes.',
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
  'send nothing more to a replica; what it runs, it finishes',
  'It gets nothing more. "spillway models show" says when nothing runs there.',
)

export const replicasUndrain = stateCommand(
  'replicas undrain',
  'ready',
  'use a drained replica again, slowly at first',
  'It is used again, slowly at first.',
)
