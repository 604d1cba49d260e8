import type { IncomingHttpHeaders } from 'node:http'

/**
 * Is this read one whole request in plain form? The question decides between the fast path and `node:http`, so the
 * answer "yes" must be safe: Node's parser (llhttp) reads the same method, address, headers and body from these bytes.
 * "No" is always safe, because Node then reads them; so nothing here is lenient. A plain request is
 *
 *     POST /path?query HTTP/1.1 ⏎            an address of unreserved and usual characters
 *     host: …                                once
 *     content-length: N                      once, digits only; the read ends with the N bytes of the body
 *     name: value                            each name once; one space; visible ASCII, no space at either end
 *
 * with ⏎ a CR and an LF, which occur nowhere else, and without any header that changes how bytes are framed or what the
 * connection does next. Not here: several headers of a name, `Connection: close`, `Expect`, a second request in the same
 * read, a part of a request. The tests compare it with llhttp on mutated requests.
 */
export interface WholePost {
  readonly url: string
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly body: Buffer
}

/** Half of what Node takes. SDKs send about one kilobyte. */
const HEAD_BYTES_MAX = 8_192
/** Browsers and SDKs send about thirty. */
const HEADERS_MAX = 100
const HEAD_END = Buffer.from('\r\n\r\n', 'latin1')
const METHOD = 'POST '
const VERSION = ' HTTP/1.1\r\n'

/** Visible ASCII and spaces in lines that end with CR LF. */
const PLAIN_LINES = /^(?:[\x20-\x7e]+\r\n)+$/
const PLAIN_URL = /^\/[\w\-.~/?&=%:,+@!$'()*;]*$/
const PLAIN_NAME = /^[A-Za-z][A-Za-z0-9-]*$/
const PLAIN_HOST = /^[A-Za-z0-9.:[\]-]+$/
/** More than any body that comes in one read has. */
const LENGTH_DIGITS_MAX = 8
const PLAIN_LENGTH = /^(?:0|[1-9]\d{0,7})$/
/** Heads in a row that differ, after which none is remembered any more. */
const NEWS_MAX = 8
const LENGTH_LINE = '\r\ncontent-length: '

/** Headers that change framing, or what happens to the connection. */
const ODD_NAMES = new Set(
  'transfer-encoding te trailer expect upgrade proxy-connection keep-alive http2-settings set-cookie'.split(' '),
)

/** Usual names as clients write them, to spare the work of lower-casing and checking. */
const USUAL_NAMES = new Map<string, string>(
  (
    'host connection content-length content-type authorization accept accept-encoding accept-language user-agent origin ' +
    'referer sec-fetch-mode sec-fetch-site sec-fetch-dest x-api-key api-key anthropic-version anthropic-beta ' +
    'openai-organization openai-project x-forwarded-for x-forwarded-proto x-forwarded-host x-request-id traceparent ' +
    'tracestate x-stainless-lang x-stainless-package-version x-stainless-os x-stainless-arch x-stainless-runtime ' +
    'x-stainless-runtime-version x-stainless-retry-count x-stainless-timeout x-stainless-async'
  )
    .split(' ')
    .flatMap((name) => [
      [name, name],
      [name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase()), name],
    ]),
)

/** Undefined when `node:http` should read these bytes. */
export function readWholePost(bytes: Buffer): WholePost | undefined {
  const end = bytes.indexOf(HEAD_END)
  if (end < 0 || end > HEAD_BYTES_MAX) return undefined
  const head = bytes.toString('latin1', 0, end + 2)
  const urlEnd = head.indexOf(' ', METHOD.length)
  if (!(head.startsWith(METHOD) && head.startsWith(VERSION, urlEnd) && PLAIN_LINES.test(head))) return undefined
  const url = head.slice(METHOD.length, urlEnd)
  const headers = readHeaders(head, urlEnd + VERSION.length)
  if (headers === undefined || !PLAIN_URL.test(url)) return undefined
  const { host, 'content-length': length, connection } = headers
  if (host === undefined || !PLAIN_HOST.test(host)) return undefined
  if (length === undefined || !PLAIN_LENGTH.test(length)) return undefined
  if (connection !== undefined && connection !== 'keep-alive' && connection.toLowerCase() !== 'keep-alive')
    return undefined
  const bodyAt = end + HEAD_END.length
  return bytes.length === bodyAt + Number(length) ? { url, headers, body: bytes.subarray(bodyAt) } : undefined
}

/**
 * Reads the requests of one connection. A client sends the same head again and again, with another length at most: a head
 * that differs from the last one in nothing else need not be read again.
 *
 *     POST /v1/chat/completions HTTP/1.1 ⏎ … content-length: │ 417 │ ⏎ … ⏎ ⏎
 *     ├──────────────── the same bytes ─────────────────────┤ digits ├ the same ┤
 */
export class HeadReader {
  #head: Buffer | undefined
  /** Where the digits of the length begin and end. */
  #from = 0
  #to = 0
  /** Without its body, which would keep the whole read in memory. */
  #last: Pick<WholePost, 'url' | 'headers'> | undefined
  /** Heads in a row that were new. */
  #news = 0

  /** Undefined when `node:http` should read these bytes. */
  read(bytes: Buffer): WholePost | undefined {
    return this.#readAgain(bytes) ?? this.#readNew(bytes)
  }

  #readNew(bytes: Buffer): WholePost | undefined {
    const post = readWholePost(bytes)
    // A client that traces its calls never sends a head twice: remembering its heads would cost, and save nothing.
    if (post === undefined || ++this.#news > NEWS_MAX) return post
    const { body, url, headers } = post
    // A copy: the bytes that were read also hold the body.
    const head = Buffer.from(bytes.subarray(0, bytes.length - body.length))
    const text = head.toString('latin1').toLowerCase()
    this.#from = text.indexOf(LENGTH_LINE) + LENGTH_LINE.length
    this.#to = this.#from + (headers['content-length'] ?? '').length
    this.#head = head
    this.#last = { url, headers }
    return post
  }

  #readAgain(bytes: Buffer): WholePost | undefined {
    const head = this.#head
    const last = this.#last
    if (head === undefined || last === undefined) return undefined
    const from = this.#from
    const rest = head.length - this.#to
    if (bytes.length < from + 1 + rest || bytes.compare(head, 0, from, 0, from) !== 0) return undefined
    let at = from
    let length = 0
    for (let digit = digitAt(bytes, at); digit >= 0 && at - from < LENGTH_DIGITS_MAX; digit = digitAt(bytes, at)) {
      // A zero in front of other digits is left to `readWholePost`, as everything that is not plain.
      if (length === 0 && at > from) return undefined
      length = length * 10 + digit
      at++
    }
    const bodyAt = at + rest
    if (at === from || bytes.length !== bodyAt + length) return undefined
    if (bytes.compare(head, this.#to, head.length, at, bodyAt) !== 0) return undefined
    this.#news = 0
    const text = String(length)
    const { url, headers } = last
    const isSame = headers['content-length'] === text
    return { url, headers: isSame ? headers : { ...headers, 'content-length': text }, body: bytes.subarray(bodyAt) }
  }
}

/** The value of a digit; negative for every other byte. */
function digitAt(bytes: Buffer, at: number): number {
  const digit = (bytes[at] ?? 0) - 0x30
  return digit <= 9 ? digit : -1
}

/** The lines from `from` to the end of the head, which have been found to be plain text. */
function readHeaders(head: string, from: number): Record<string, string> | undefined {
  const headers: Record<string, string> = {}
  let count = 0
  for (let at = from; at < head.length; ) {
    const colon = head.indexOf(': ', at)
    const end = head.indexOf('\r\n', at)
    const valueAt = colon + 2
    // A colon behind the line's end belongs to another line; an empty value, or a space at one of its ends, is Node's.
    if (colon < 0 || valueAt >= end || head[valueAt] === ' ' || head[end - 1] === ' ') return undefined
    const name = plainName(head.slice(at, colon))
    // `Object.prototype` has names, too: a header that is called like one of them goes to Node, as a second one does.
    if (name === undefined || headers[name] !== undefined || ++count > HEADERS_MAX) return undefined
    headers[name] = head.slice(valueAt, end)
    at = end + 2
  }
  return headers
}

function plainName(given: string): string | undefined {
  const usual = USUAL_NAMES.get(given)
  if (usual !== undefined) return usual
  if (!PLAIN_NAME.test(given)) return undefined
  const name = given.toLowerCase()
  return ODD_NAMES.has(name) ? undefined : name
}
