/**
 * One HTTP/1.1 answer after another, out of bytes in any split (RFC 9112). For engines behind a plain URL, which we read
 * without streams in between.
 *
 *     head ─▶ by length ─────────────▶ done        bytes after the end belong to no answer: the connection is not
 *        ├──▶ in chunks ─▶ trailers ─▶ done        used again
 *        └──▶ until the connection closes
 *
 * Strict where two readers could disagree about where an answer ends: a length and an encoding together, two lengths, a
 * folded header, a line that ends in a bare LF are all refused. What goes to `onData` is a view of the caller's buffer,
 * good until `onData` returns.
 */
export interface ResponseEvents {
  onHead(status: number, headers: Readonly<Record<string, string>>): void
  onData(bytes: Buffer): void
  onEnd(): void
}

export class ResponseFault extends Error {
  override readonly name = 'ResponseFault'
  readonly code = 'INVALID_RESPONSE'
}

/** Engines send a few hundred bytes; proxies in front of them a few thousand. */
const HEAD_BYTES_MAX = 64 << 10
/** A size with its extensions, and all trailers together. */
const FRAMING_BYTES_MAX = 8 << 10
/** Twelve hexadecimal digits are 256 TB, more than any answer has. */
const SIZE_DIGITS_MAX = 12

const CR = 13
const LF = 10
const SEMICOLON = 59
const HEAD_END = Buffer.from('\r\n\r\n')
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

/** In a line these would begin another line. */
const STRAY = /\0|\r(?!\n)|[^\r]\n/
/** Names of headers as servers spell them, with their spelling in lower case; servers have a dozen each. */
const knownNames = new Map<string, string>()
const KNOWN_NAMES_MAX = 512

type State =
  | 'head'
  | 'length'
  | 'until-close'
  | 'size'
  | 'size-rest'
  | 'size-lf'
  | 'chunk'
  | 'chunk-cr'
  | 'chunk-lf'
  | 'trailer'
  | 'trailer-rest'
  | 'trailer-lf'
  | 'last-lf'
  | 'done'

export class ResponseParser {
  readonly #events: ResponseEvents
  #state: State = 'done'
  #mayReuse = false
  /** Bytes of a body or a chunk that are still to come. */
  #left = 0
  #digits = 0
  #framingBytes = 0
  /** The beginning of a head whose end has not arrived. */
  #rest: Buffer | undefined

  constructor(events: ResponseEvents) {
    this.#events = events
  }

  /** Starts the next answer. */
  begin(): void {
    this.#state = 'head'
    this.#mayReuse = false
    this.#rest = undefined
  }

  /** The last answer was complete, nothing followed it, and the server keeps the connection. */
  get mayReuse(): boolean {
    return this.#state === 'done' && this.#mayReuse
  }

  /** Throws a `ResponseFault` when the bytes are not exactly one answer. */
  read(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length) {
      if (this.#state === 'head') at = this.#readHead(bytes, at)
      else if (this.#state === 'length' || this.#state === 'chunk') at = this.#readBody(bytes, at)
      else if (this.#state === 'until-close') {
        this.#events.onData(at === 0 ? bytes : bytes.subarray(at))
        return
      } else if (this.#state === 'done') {
        this.#mayReuse = false
        throw new ResponseFault('bytes after the end of an answer')
      } else this.#readFraming(bytes[at++] as number)
    }
  }

  /** The connection has closed: returns whether the answer was complete. */
  close(): boolean {
    if (this.#state === 'until-close') this.#end()
    return this.#state === 'done'
  }

  #readHead(bytes: Buffer, at: number): number {
    const fresh = at === 0 ? bytes : bytes.subarray(at)
    const known = this.#rest?.length ?? 0
    const head = this.#rest === undefined ? fresh : Buffer.concat([this.#rest, fresh])
    const end = head.indexOf(HEAD_END, Math.max(0, known - 3))
    if (end > HEAD_BYTES_MAX || (end < 0 && head.length > HEAD_BYTES_MAX)) throw new ResponseFault('a head without end')
    if (end < 0) {
      // A copy, because the caller reuses its buffer.
      this.#rest = this.#rest === undefined ? Buffer.from(head) : head
      return bytes.length
    }
    this.#rest = undefined
    this.#takeHead(head.toString('latin1', 0, end))
    return at + end + HEAD_END.length - known
  }

  #takeHead(text: string): void {
    const lineEnd = text.indexOf('\r\n')
    const [, version, digits] = STATUS_LINE.exec(lineEnd < 0 ? text : text.slice(0, lineEnd)) ?? []
    if (digits === undefined) throw new ResponseFault('no status line')
    const status = Number(digits)
    const headers = readHeaders(lineEnd < 0 ? '' : text.slice(lineEnd + 2))
    if (status === 101) throw new ResponseFault('it wants another protocol')
    // An interim response: the final one follows.
    if (status < 200) return
    const connection = headers['connection']?.toLowerCase() ?? ''
    this.#mayReuse = version === '1' ? !connection.includes('close') : connection.includes('keep-alive')
    this.#state = this.#bodyOf(status, headers)
    this.#events.onHead(status, headers)
    if (this.#state === 'done') this.#events.onEnd()
  }

  #bodyOf(status: number, headers: Readonly<Record<string, string>>): State {
    const length = headers['content-length']
    const encoding = headers['transfer-encoding']
    if (status === 204 || status === 304) return 'done'
    if (encoding !== undefined) {
      if (encoding.toLowerCase() !== 'chunked' || length !== undefined) throw new ResponseFault('an unclear length')
      this.#startSize()
      return 'size'
    }
    if (length === undefined) {
      this.#mayReuse = false
      return 'until-close'
    }
    if (!/^\d{1,15}$/.test(length)) throw new ResponseFault('an unclear length')
    this.#left = Number(length)
    return this.#left === 0 ? 'done' : 'length'
  }

  #readBody(bytes: Buffer, at: number): number {
    const until = Math.min(bytes.length, at + this.#left)
    this.#left -= until - at
    const isChunk = this.#state === 'chunk'
    this.#events.onData(at === 0 && until === bytes.length ? bytes : bytes.subarray(at, until))
    if (this.#left === 0) {
      if (isChunk) this.#state = 'chunk-cr'
      else this.#end()
    }
    return until
  }

  #startSize(): void {
    this.#left = 0
    this.#digits = 0
    this.#framingBytes = 0
  }

  /** One byte of the framing between and after chunks. */
  #readFraming(byte: number): void {
    if (++this.#framingBytes > FRAMING_BYTES_MAX) throw new ResponseFault('framing without end')
    switch (this.#state) {
      case 'size':
        this.#readSize(byte)
        return
      case 'size-rest':
        if (byte === CR) this.#state = 'size-lf'
        else if (byte === LF) throw new ResponseFault('a bare line feed')
        return
      case 'size-lf':
        this.#expect(byte, LF, this.#left === 0 ? 'trailer' : 'chunk')
        return
      case 'chunk-cr':
        this.#expect(byte, CR, 'chunk-lf')
        return
      case 'chunk-lf':
        this.#expect(byte, LF, 'size')
        this.#startSize()
        return
      case 'trailer':
        this.#state = byte === CR ? 'last-lf' : 'trailer-rest'
        if (byte === LF) throw new ResponseFault('a bare line feed')
        return
      case 'trailer-rest':
        if (byte === CR) this.#state = 'trailer-lf'
        else if (byte === LF) throw new ResponseFault('a bare line feed')
        return
      case 'trailer-lf':
        this.#expect(byte, LF, 'trailer')
        return
      default:
        this.#expect(byte, LF, 'done')
        this.#end()
    }
  }

  #readSize(byte: number): void {
    const digit = hexDigit(byte)
    if (digit >= 0) {
      if (++this.#digits > SIZE_DIGITS_MAX) throw new ResponseFault('a chunk without end')
      this.#left = this.#left * 16 + digit
      return
    }
    if (this.#digits === 0) throw new ResponseFault('a chunk without a size')
    // Blanks after the size are unusual and harmless.
    if (byte === CR) this.#state = 'size-lf'
    else if (byte === SEMICOLON || byte === 32 || byte === 9) this.#state = 'size-rest'
    else throw new ResponseFault('a size that is no number')
  }

  #expect(byte: number, wanted: number, next: State): void {
    if (byte !== wanted) throw new ResponseFault('a chunk that is longer than it says')
    this.#state = next
  }

  #end(): void {
    this.#state = 'done'
    this.#events.onEnd()
  }
}

/** Names are in lower case. Of a repeated name the first counts, unless it says where the answer ends. */
function readHeaders(text: string): Record<string, string> {
  if (STRAY.test(text)) throw new ResponseFault('a header without a name')
  const headers: Record<string, string> = Object.create(null) as Record<string, string>
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\r\n', at)
    const line = end < 0 ? text.slice(at) : text.slice(at, end)
    const colon = line.indexOf(':')
    const name = nameOf(line.slice(0, colon))
    if (colon <= 0 || name === undefined) throw new ResponseFault('a header without a name')
    const value = line.slice(colon + 1).trim()
    const before = headers[name]
    if (before === undefined) headers[name] = value
    else if ((name === 'content-length' || name === 'transfer-encoding') && before !== value)
      throw new ResponseFault('an unclear length')
    if (end < 0) break
    at = end + 2
  }
  return headers
}

function nameOf(spelled: string): string | undefined {
  const known = knownNames.get(spelled)
  if (known !== undefined) return known
  if (!NAME.test(spelled)) return undefined
  const name = spelled.toLowerCase()
  // A copy, because a slice would keep the whole head alive.
  if (knownNames.size < KNOWN_NAMES_MAX) knownNames.set(Buffer.from(spelled, 'latin1').toString('latin1'), name)
  return name
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48
  const lower = byte | 32
  return lower >= 97 && lower <= 102 ? lower - 87 : -1
}
