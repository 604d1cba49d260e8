import { boundaryOf, CRLF, FORM_PARTS_MAX, PART_HEAD_BYTES_MAX, readPartHead } from './read-form.ts'

/**
 * The beginning of a form (`multipart/form-data`) that is on its way, read as it comes: who is asked for, before a file
 * of any size has arrived.
 *
 *     --b␍␊ headers ␍␊␍␊ content ␍␊--b␍␊ headers … ␍␊--b--
 *
 * Plain fields are kept up to a bound; contents of files are passed over. What was searched is not searched again, so
 * bytes that come one by one cost no more than bytes that come together.
 */
export interface FormField {
  readonly value: string
  /** Where the value stands in the body: from this byte, up to the other. */
  readonly from: number
  readonly to: number
}

/** A model's name, a language, a number of pictures; longer fields are passed over. */
const FIELD_BYTES_MAX = 1_024
/** Text may stand before the first boundary; hardly any client sends it. */
const PREAMBLE_BYTES_MAX = 1_024
const DASH_DASH = '--'
const HEAD_END = `${CRLF}${CRLF}`
const BLANKS = /^[ \t]*$/

export class FormHead {
  readonly boundary: string | undefined
  /** Plain fields whose end has come; of two with one name the first counts. */
  readonly fields = new Map<string, FormField>()
  /** What is wrong with the form, once it is seen. */
  problem: string | undefined
  /** The last boundary has come. */
  isWhole = false
  /** Where the first boundary stands: a part may be put in front of it. */
  firstAt = 0
  readonly #delimiter: Buffer
  #bytes: Buffer = Buffer.allocUnsafe(8_192)
  #size = 0
  #partCount = 0
  /** Where the part begins that is being read, behind its boundary; undefined before the first. */
  #partAt: number | undefined
  #part: PartHead | undefined
  /** No boundary begins before this byte. */
  #searchedTo = 0

  constructor(contentType: string) {
    this.boundary = boundaryOf(contentType)
    this.#delimiter = Buffer.from(`${CRLF}--${this.boundary ?? ''}`)
    if (this.boundary === undefined) this.problem = 'its Content-Type has no boundary'
  }

  /** Everything that was taken: a view, good until the next `take`. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#size)
  }

  /** The head with this name for the model; a form without one gets a part in front. */
  namedIn(head: Buffer, model: string): Buffer[] {
    const field = this.fields.get('model')
    const at = field?.from ?? this.firstAt
    const part = `--${this.boundary}\r\ncontent-disposition: form-data; name="model"\r\n\r\n${model}\r\n`
    const named = Buffer.from(field === undefined ? part : model)
    return [head.subarray(0, at), named, head.subarray(field?.to ?? at)]
  }

  take(piece: Uint8Array): void {
    this.#keep(piece)
    while (this.problem === undefined && !this.isWhole && this.#readNext());
  }

  #keep(piece: Uint8Array): void {
    if (this.#size + piece.length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#size + piece.length))
      this.#bytes.copy(larger, 0, 0, this.#size)
      this.#bytes = larger
    }
    this.#bytes.set(piece, this.#size)
    this.#size += piece.length
  }

  /** Whether a boundary or a part was read, and the next may be there too. */
  #readNext(): boolean {
    return this.#partAt === undefined ? this.#readFirst() : this.#readPart(this.#partAt)
  }

  #readFirst(): boolean {
    const first = this.#delimiter.subarray(CRLF.length)
    const at = this.bytes.indexOf(first)
    if (at < 0) {
      if (this.#size > PREAMBLE_BYTES_MAX + first.length) this.problem = 'its boundary is not at the beginning'
      return false
    }
    this.firstAt = at
    this.#partAt = at + first.length
    return true
  }

  #readPart(at: number): boolean {
    this.#part ??= this.#readHead(at)
    if (this.#part === undefined) return false
    const { name, fileName, from } = this.#part
    const bytes = this.bytes
    // The line end before the boundary of an empty part may be the one that ends its headers.
    const end = bytes.indexOf(this.#delimiter, Math.max(from - CRLF.length, this.#searchedTo))
    if (end < 0) {
      this.#searchedTo = Math.max(0, bytes.length - this.#delimiter.length)
      return false
    }
    const isField = fileName === undefined && end - from <= FIELD_BYTES_MAX && !this.fields.has(name)
    if (isField) this.fields.set(name, { value: bytes.toString('utf8', from, end), from, to: Math.max(from, end) })
    if (++this.#partCount > FORM_PARTS_MAX) this.problem = `it has more than ${FORM_PARTS_MAX} parts`
    this.#partAt = end + this.#delimiter.length
    this.#part = undefined
    return true
  }

  /** The headers of the part that begins here; undefined when they have not come yet, or when there is no part. */
  #readHead(at: number): PartHead | undefined {
    const bytes = this.bytes
    if (bytes.length < at + DASH_DASH.length) return undefined
    this.isWhole = bytes.toString('latin1', at, at + DASH_DASH.length) === DASH_DASH
    if (this.isWhole) return undefined
    const headEnd = bytes.indexOf(HEAD_END, at)
    if (headEnd < 0) {
      if (bytes.length - at > PART_HEAD_BYTES_MAX)
        this.problem = `the headers of a part are longer than ${PART_HEAD_BYTES_MAX} bytes`
      return undefined
    }
    const head = bytes.toString('utf8', at, headEnd)
    const lineEnd = head.indexOf(CRLF)
    const names = BLANKS.test(lineEnd < 0 ? head : head.slice(0, lineEnd)) ? readPartHead(head) : NO_LINE_END
    if (typeof names !== 'string') return { ...names, from: headEnd + HEAD_END.length }
    this.problem = names
    return undefined
  }
}

interface PartHead {
  readonly name: string
  readonly fileName: string | undefined
  /** Where the content begins. */
  readonly from: number
}

const NO_LINE_END = 'a part has no line end after its boundary'
