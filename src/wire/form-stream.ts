import { boundaryOf, CRLF, FORM_PARTS_MAX, PART_HEAD_BYTES_MAX, readPartHead } from './read-form.ts'

/**
 * A form (`multipart/form-data`) read as it comes, of any size: the contents of a part are handed on in pieces, and no
 * more is kept than could be the beginning of a boundary.
 */
export type FormEvent =
  | { readonly kind: 'part'; readonly name: string; readonly fileName: string | undefined }
  /** Bytes of the part; a view, good until the next `take`. */
  | { readonly kind: 'bytes'; readonly bytes: Buffer }

/** Text may stand before the first boundary; hardly any client sends it. */
const PREAMBLE_BYTES_MAX = 1_024
const HEAD_END = `${CRLF}${CRLF}`

export class FormStream {
  /** What is wrong with the form, once it is seen. */
  problem: string | undefined
  /** The last boundary has come. */
  isWhole = false
  readonly #delimiter: Buffer
  #bytes: Buffer = Buffer.alloc(0)
  #state: 'preamble' | 'head' | 'content' = 'preamble'
  /** Bytes at the front that are not content: the line end of the headers, which may begin the next boundary. */
  #skip = 0
  #partCount = 0

  constructor(contentType: string) {
    const boundary = boundaryOf(contentType)
    this.#delimiter = Buffer.from(`${CRLF}--${boundary ?? ''}`)
    if (boundary === undefined) this.problem = 'its Content-Type has no boundary'
  }

  *take(piece: Buffer): Generator<FormEvent> {
    this.#bytes = this.#bytes.length === 0 ? piece : Buffer.concat([this.#bytes, piece])
    while (this.problem === undefined && !this.isWhole) {
      const event = this.#next()
      if (event === undefined) return
      if (event !== 'again') yield event
    }
  }

  /** Undefined when more bytes are needed. */
  #next(): FormEvent | 'again' | undefined {
    if (this.#state === 'preamble') return this.#readFirst()
    return this.#state === 'head' ? this.#readHead() : this.#readContent()
  }

  #readFirst(): 'again' | undefined {
    const first = this.#delimiter.subarray(CRLF.length)
    const at = this.#bytes.indexOf(first)
    if (at < 0) {
      if (this.#bytes.length > PREAMBLE_BYTES_MAX + first.length) this.problem = 'its boundary is not at the beginning'
      return undefined
    }
    this.#cut(at + first.length)
    this.#state = 'head'
    return 'again'
  }

  #readHead(): FormEvent | undefined {
    const bytes = this.#bytes
    if (bytes.length < 2) return undefined
    this.isWhole = bytes.toString('latin1', 0, 2) === '--'
    if (this.isWhole) return undefined
    const end = bytes.indexOf(HEAD_END)
    if (end < 0) {
      if (bytes.length > PART_HEAD_BYTES_MAX)
        this.problem = `the headers of a part are longer than ${PART_HEAD_BYTES_MAX} bytes`
      return undefined
    }
    const names = readPartHead(bytes.toString('utf8', 0, end))
    if (typeof names === 'string') this.problem = names
    else if (++this.#partCount > FORM_PARTS_MAX) this.problem = `it has more than ${FORM_PARTS_MAX} parts`
    if (typeof names === 'string' || this.problem !== undefined) return undefined
    this.#cut(end + CRLF.length)
    this.#skip = CRLF.length
    this.#state = 'content'
    return { kind: 'part', ...names }
  }

  #readContent(): FormEvent | 'again' | undefined {
    const bytes = this.#bytes
    const end = bytes.indexOf(this.#delimiter)
    // Without a boundary, all but what may be its beginning is content.
    const until = end < 0 ? bytes.length - this.#delimiter.length + 1 : end
    const content = until > this.#skip ? bytes.subarray(this.#skip, until) : undefined
    if (content !== undefined) {
      this.#cut(until)
      this.#skip = 0
      return { kind: 'bytes', bytes: content }
    }
    if (end < 0) return undefined
    this.#cut(end + this.#delimiter.length)
    this.#skip = 0
    this.#state = 'head'
    return 'again'
  }

  #cut(at: number): void {
    this.#bytes = this.#bytes.subarray(at)
  }
}
