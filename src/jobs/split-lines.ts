import type { LinePlace } from '../domain/job.ts'

/**
 * Cuts a file that comes in pieces into its lines, and says where each stands. A blank line comes out as
 * undefined and has no number, so that the reader can bound their count and yield between them. Memory is bounded by the longest line: one that is longer comes out cut, with its true length.
 */
export interface SplitLine extends LinePlace {
  readonly bytes: Uint8Array
}

const NEWLINE = 0x0a
const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0d

export class LineSplitter {
  readonly #lineBytesMax: number
  #rest: Uint8Array[] = []
  #restBytes = 0
  /** Where the line begins that has not ended yet. */
  #lineAt = 0
  /** Bytes of that line, those included that were not kept. */
  #lineLength = 0
  #no = 0

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax
  }

  *take(piece: Uint8Array): Generator<SplitLine | undefined> {
    let from = 0
    for (;;) {
      const end = piece.indexOf(NEWLINE, from)
      this.#keep(piece.subarray(from, end < 0 ? piece.length : end))
      if (end < 0) return
      const line = this.#endLine()
      this.#lineAt += this.#lineLength + 1
      this.#lineLength = 0
      yield line
      from = end + 1
    }
  }

  /** The last line, if it has no line's end and is not blank. */
  end(): SplitLine | undefined {
    return this.#endLine()
  }

  #keep(part: Uint8Array): void {
    this.#lineLength += part.length
    const room = this.#lineBytesMax + 1 - this.#restBytes
    const kept = part.length > room ? part.subarray(0, Math.max(0, room)) : part
    if (kept.length === 0) return
    // A piece is the reader's own and may be used again: what outlives the call is copied.
    this.#rest.push(kept.slice())
    this.#restBytes += kept.length
  }

  #endLine(): SplitLine | undefined {
    if (this.#restBytes === 0) return undefined
    const bytes = this.#rest.length === 1 ? (this.#rest[0] as Uint8Array) : joined(this.#rest, this.#restBytes)
    this.#rest = []
    this.#restBytes = 0
    let start = 0
    let end = bytes.length
    while (start < end && isBlank(bytes[start])) start++
    while (end > start && isBlank(bytes[end - 1])) end--
    if (start === end) return undefined
    const isCut = this.#lineLength > bytes.length
    const length = isCut ? this.#lineLength - start : end - start
    return { no: this.#no++, at: this.#lineAt + start, length, bytes: bytes.subarray(start, end) }
  }
}

function joined(parts: readonly Uint8Array[], size: number): Uint8Array {
  const all = new Uint8Array(size)
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
