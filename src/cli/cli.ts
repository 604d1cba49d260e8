import { runCli } from './run-cli.ts'

/** The program: `spillway COMMAND …`. `bin/spillway.mjs` brings us here under the pinned Node. */

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // `spillway --help | head -1`: the reader has seen enough.
  if (error.code === 'EPIPE') process.exit(0)
})

const exitCode = await runCli(process.argv.slice(2), {
  out: (text) => process.stdout.write(`${text}\n`),
  err: (text) => process.stderr.write(`${text}\n`),
})
process.exit(exitCode)
