/** What `flush` needs of a stream: `process.stdout` and every `Writable` have it. */
export interface Flushable {
  readonly destroyed: boolean
  readonly writableEnded: boolean
  write(text: string, onWritten: () => void): boolean
}

/**
 * Resolves when everything written to a stream has been handed to the system. A pipe takes 64 kB at a time, and
 * `process.exit` drops whatever has not gone out by then. The wait has no bound of its own: a reader that is slow gets
 * everything, and a signal ends the process meanwhile. A reader that has left is not waited for.
 */
export function flush(stream: Flushable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) resolve()
    else stream.write('', () => resolve())
  })
}
