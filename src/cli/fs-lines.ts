import { closeSync, openSync, readSync } from 'node:fs'
import { UsageError } from './command.ts'

const CHUNK_BYTES = 1 << 16
/** Longest line: as long as the largest body of a request. */
const LINE_LENGTH_MAX = 16 * 1024 * 1024

/** The lines of a text in UTF-8, a piece of the file at a time. */
export function* linesOf(path: string): Generator<string> {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    throw new UsageError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`)
  }
  try {
    const chunk = new Uint8Array(CHUNK_BYTES)
    const decoder = new TextDecoder()
    let rest = ''
    for (let bytes = readSync(file, chunk); bytes > 0; bytes = readSync(file, chunk)) {
      const lines = (rest + decoder.decode(chunk.subarray(0, bytes), { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > LINE_LENGTH_MAX) throw new UsageError(`${path} has a line of more than 16 MiB.`)
      for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line
    }
    if (rest !== '') yield rest
  } finally {
    closeSync(file)
  }
}
