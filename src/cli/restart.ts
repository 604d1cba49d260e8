import type { Command } from './command.ts'
import { ADMIN_FLAGS, AdminClient, BECAUSE_FLAG, becauseOf } from './http-admin-client.ts'

export const restartCommand: Command = {
  name: 'restart',
  summary: 'replace the processes of the running server, one after the other',
  about:
    'Each new process reads the configuration file and the program as they are now, and serves before the old one leaves:\n' +
    'no connection is refused, and streams may go on for server.shutdownGraceMs. Needs server.processes of 2 or more.\n' +
    'SIGUSR1 to the supervisor does the same. Its log says when the restart has ended.',
  flags: { ...BECAUSE_FLAG, ...ADMIN_FLAGS },
  examples: ['spillway restart --because "a new version is installed"'],
  async run(flags, io) {
    const because = becauseOf(flags)
    const answer = await new AdminClient(flags).call<{ processes: number }>('POST', '/restart', { because })
    io.out(flags['json'] === true ? JSON.stringify(answer) : `Begun: ${answer.processes} processes are replaced.`)
    return 0
  },
}
