import { describeReload } from '../control/describe-reload.ts'
import type { Command } from './command.ts'
import { ADMIN_FLAGS, AdminClient, BECAUSE_FLAG, becauseOf } from './http-admin-client.ts'

export const reload: Command = {
  name: 'reload',
  summary: 'have the running server read its configuration file again',
  about:
    'The server takes up the whole file or nothing of it, and says what changed and what needs a restart. "spillway\n' +
    'config check" says beforehand whether a file is good.',
  flags: { ...BECAUSE_FLAG, ...ADMIN_FLAGS },
  examples: ['spillway reload --because "two more tenants"'],
  async run(flags, io) {
    const because = becauseOf(flags)
    const answer = await new AdminClient(flags).call<Reloaded>('POST', '/reload', { because })
    io.out(flags['json'] === true ? JSON.stringify(answer) : `Done: ${describeReload(answer)}.`)
    return 0
  },
}

type Reloaded = Parameters<typeof describeReload>[0]
