import { flush } from './flush.ts'
import { runCli } from './run-cli.ts'

/** The program `spillway COMMAND …`, started by `bin/spillway.mjs` under the pinned Node. */

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of a pipe has closed it, as in `spillway --help | head -1`.
  if (error.code === 'EPIPE') process.exit(0)
})

const exitCode = await runCli(process.argv.slice(2), {
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
})
await Promise.all([flush(process.stdout), flush(process.stderr)])
process.exit(exitCode)
