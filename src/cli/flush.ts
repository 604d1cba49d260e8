import type { Writable } from 'node:stream'

/**
 * Resolves when everything written to a stream has been handed to the system. A pipe takes 64 kB at a time, and
 * `process.exit` drops whatever has not gone out by then. The wait has no bound of its own: a reader that is slow gets
 * everything, and a signal ends the process meanwhile. A reader that has left is not waited for.
 */
export function flush(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) resolve()
    else stream.write('', () => resolve())
  })
}
