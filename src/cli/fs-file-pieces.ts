import { createReadStream, statSync } from 'node:fs'
import { basename } from 'node:path'
import { UsageError } from './command.ts'

/** A file that is read piece by piece, however large it is. */
export interface FilePieces {
  readonly name: string
  readonly bytes: number
  readonly pieces: AsyncIterable<Uint8Array>
}

export function filePieces(path: string): FilePieces {
  try {
    const { size: bytes } = statSync(path)
    return { name: basename(path), bytes, pieces: createReadStream(path) as AsyncIterable<Uint8Array> }
  } catch {
    throw new UsageError(`${path} cannot be read.`)
  }
}
