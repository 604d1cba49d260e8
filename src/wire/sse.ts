/**
 * Server-sent events, both ways (WHATWG HTML §9.2). Only `data` lines matter to us: OpenAI-style streams name no events.
 * The reader takes bytes in any split, lines ended by LF, CRLF or CR, comments, and `data:` with or without the space.
 */

export const SSE_DONE = 'data: [DONE]\n\n'

/** One frame of JSON, which has no line breaks of its own. */
export const sseFrame = (json: string): string => `data: ${json}\n\n`

/** A comment line: readers ignore it; proxies and clients see that the connection is alive. */
export const SSE_KEEP_ALIVE = ': keep-alive\n\n'

/** Longest frame: an engine that never ends a line must not fill our memory. */
export const SSE_FRAME_BYTES_MAX = 1 << 20

const LF = 10
const CR = 13

export class SseOverflow extends Error {
  override readonly name = 'SseOverflow'
}

export class SseReader {
  /** Bytes of a line whose end has not arrived. */
  #rest: Buffer | undefined
  /** The `data` of a frame whose blank line has not arrived. */
  #data: string | undefined
  /** The last chunk ended in CR: an LF at the head of the next one belongs to it. */
  #skipsLf = false
  #isFirst = true

  /** Takes the next bytes, and calls `onData` once for every frame that they complete. */
  read(chunk: Buffer, onData: (data: string) => void): void {
    let bytes = chunk
    if (this.#skipsLf && bytes.length > 0) {
      if (bytes[0] === LF) bytes = bytes.subarray(1)
      this.#skipsLf = false
    }
    const end = endOfLastLine(bytes)
    if (end === 0) {
      this.#keep(bytes)
      return
    }
    this.#skipsLf = end === bytes.length && bytes[end - 1] === CR
    const lines =
      this.#rest === undefined ? bytes.subarray(0, end) : Buffer.concat([this.#rest, bytes.subarray(0, end)])
    this.#rest = undefined
    this.#keep(bytes.subarray(end))
    this.#readLines(lines.toString('utf8'), onData)
  }

  #keep(bytes: Buffer): void {
    if (bytes.length === 0) return
    // A copy: the caller may reuse its buffer.
    this.#rest = this.#rest === undefined ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes])
    if (this.#rest.length > SSE_FRAME_BYTES_MAX) throw new SseOverflow(`a line is over ${SSE_FRAME_BYTES_MAX} bytes`)
  }

  #readLines(text: string, onData: (data: string) => void): void {
    let at = 0
    if (this.#isFirst) {
      this.#isFirst = false
      if (text.charCodeAt(0) === 0xfeff) at = 1
    }
    // Nearly all engines end lines with LF alone; then one native search finds each end.
    const hasCr = text.includes('\r')
    while (at < text.length) {
      const end = hasCr ? endOfLine(text, at) : lfOrEnd(text, at)
      if (end === at) this.#endFrame(onData)
      else if (text.startsWith('data', at)) this.#addData(text, at, end)
      at = text.charCodeAt(end) === CR && text.charCodeAt(end + 1) === LF ? end + 2 : end + 1
    }
  }

  #addData(text: string, at: number, end: number): void {
    // "data" alone is an empty value; "database: x" is another field.
    const colon = at + 4
    if (colon < end && text.charCodeAt(colon) !== 58) return
    let from = colon + 1
    if (from < end && text.charCodeAt(from) === 32) from++
    const value = from < end ? text.slice(from, end) : ''
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`
    if (this.#data.length > SSE_FRAME_BYTES_MAX)
      throw new SseOverflow(`a frame is over ${SSE_FRAME_BYTES_MAX} characters`)
  }

  #endFrame(onData: (data: string) => void): void {
    const data = this.#data
    this.#data = undefined
    if (data !== undefined) onData(data)
  }
}

function lfOrEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end
}

function endOfLine(text: string, at: number): number {
  let end = at
  while (end < text.length && !isLineEnd(text.charCodeAt(end))) end++
  return end
}

function isLineEnd(code: number): boolean {
  return code === LF || code === CR
}

function endOfLastLine(bytes: Buffer): number {
  for (let i = bytes.length - 1; i >= 0; i--) if (isLineEnd(bytes[i] as number)) return i + 1
  return 0
}
