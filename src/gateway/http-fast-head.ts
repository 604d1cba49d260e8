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
  readonly headers: IncomingHttpHeaders
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
/** Eight digits are more than any body that comes in one read. */
const PLAIN_LENGTH = /^(?:0|[1-9]\d{0,7})$/

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
