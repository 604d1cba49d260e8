import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import { Rng } from '../../src/base/rng.ts'
import { HeadReader } from '../../src/gateway/http-fast-head.ts'

/**
 * Requests that are nearly right, and what Node makes of them. Whatever the fast path takes, Node (llhttp and
 * `IncomingMessage`) must take as the same one request: method, address, headers, body, and a connection that goes on.
 * What the path does not take needs no comparison: Node reads it.
 */
const BODIES = ['', '{}', '{"model":"sim","messages":[{"role":"user","content":"Grüße"}]}', 'a\r\n\r\nb', '0\r\n\r\n']

const HEADS: readonly (readonly string[])[] = [
  ['POST / HTTP/1.1', 'Host: x', 'Content-Length: #'],
  [
    'POST /v1/chat/completions HTTP/1.1',
    'host: 127.0.0.1:8080',
    'connection: keep-alive',
    'content-type: application/json',
    'accept: */*',
    'accept-language: *',
    'sec-fetch-mode: cors',
    'user-agent: node',
    'accept-encoding: gzip, deflate',
    'authorization: Bearer sk-test',
    'content-length: #',
  ],
  [
    'POST /openai/deployments/a/chat/completions?api-version=2024-10-21 HTTP/1.1',
    'Host: gateway.example',
    'Accept-Encoding: gzip, deflate, br',
    'Connection: Keep-Alive',
    'X-Stainless-Lang: python',
    'X-Forwarded-For: 10.0.0.1, 10.0.0.2',
    'Cookie: a=b; c="d"',
    'Content-Length: #',
    'Content-Type: application/json; charset=utf-8',
  ],
]

/** Lines that change what a request is, or that one reader may take for another line. */
const LINES = [
  'Transfer-Encoding: chunked',
  'transfer-encoding: identity',
  'Content-Length: #',
  'content-length: 0',
  'Content-Length: +5',
  'Content-Length: 5, 5',
  'Content-Length : 5',
  'Host: other',
  'host:',
  'Expect: 100-continue',
  'Upgrade: h2c',
  'Connection: upgrade',
  'Connection: close',
  'Connection: keep-alive, close',
  'Proxy-Connection: close',
  'Keep-Alive: timeout=1',
  'TE: trailers',
  'Trailer: x',
  ' folded: line',
  '\tfolded',
  'no-colon',
  ': no-name',
  'a b: c',
  'a:b',
  'a:  b',
  'a: b ',
  'a: ',
  'a_b: c',
  'a\u0000b: c',
  'a: b\u0000c',
  'a: \u00e9',
  'a: b\tc',
  'Set-Cookie: a=b',
  'Cookie: e=f',
  'constructor: x',
  '__proto__: x',
  'toString: x',
  'x-id: 1',
  'X-Id: 2',
  'Range: bytes=0-1',
  'If-Match: "a"',
]
const FIRST_LINES = [
  'POST /a HTTP/1.0',
  'POST /a HTTP/1.1 ',
  'POST  /a HTTP/1.1',
  'POST http://x/a HTTP/1.1',
  'POST * HTTP/1.1',
  'POST /a b HTTP/1.1',
  'POST /a# HTTP/1.1',
  'POST /a?b=c%20d&e=%zz HTTP/1.1',
  'POST /\u00e9 HTTP/1.1',
  'POST /a\tHTTP/1.1',
  'post /a HTTP/1.1',
  'GET /a HTTP/1.1',
  'PUT /a HTTP/1.1',
  'POST /a HTTP/2.0',
  'POST /a',
  '',
  '\r\nPOST /a HTTP/1.1',
]
const CHARACTERS = [
  '\r',
  '\n',
  '\r\n',
  ' ',
  '\t',
  ':',
  '\u0000',
  '\u007f',
  '\u0080',
  '\u00ff',
  ',',
  ';',
  '0',
  '9',
  '-',
  'x',
  '"',
  '%',
  '\\',
  '{',
]

const pick = <T>(rng: Rng, of: readonly T[]): T => of[rng.below(of.length)] as T

/** One request, mostly with a few things wrong. Latin-1: a character is a byte. */
export function mutatedRequest(rng: Rng): Buffer {
  const lines = [...pick(rng, HEADS)]
  const body = Buffer.from(pick(rng, BODIES)).toString('latin1')
  for (let count = rng.below(4); count > 0; count--) mutateLines(rng, lines)
  const length = rng.below(16) === 0 ? rng.below(30) : body.length
  let text = `${lines.map((line) => line.replace('#', String(length))).join('\r\n')}\r\n\r\n${body}`
  for (let count = rng.below(3); count > 0; count--) text = mutateText(rng, text)
  return Buffer.from(text, 'latin1')
}

/** A reader of a connection remembers: half of the requests are near the last one that was taken. */
function nextRequest(rng: Rng, last: Buffer): Buffer {
  const text = last.toString('latin1')
  switch (rng.below(4)) {
    case 0:
      return Buffer.from(withLength(text, String(rng.below(30)), 'x'.repeat(rng.below(30))), 'latin1')
    case 1: {
      const body = 'y'.repeat(rng.below(1_200))
      const again = withLength(text, String(body.length), body)
      return Buffer.from(rng.below(3) === 0 ? mutateText(rng, again) : again, 'latin1')
    }
    default:
      return mutatedRequest(rng)
  }
}

const withLength = (text: string, length: string, body: string): string =>
  text.slice(0, text.indexOf('\r\n\r\n') + 4).replace(/(content-length: *)[^\r]*/i, `$1${length}`) + body

function mutateLines(rng: Rng, lines: string[]): void {
  const at = rng.below(lines.length)
  const line = lines[at] ?? ''
  switch (rng.below(8)) {
    case 0:
      lines.splice(1 + rng.below(lines.length), 0, pick(rng, LINES))
      break
    case 1:
      lines[0] = pick(rng, FIRST_LINES)
      break
    case 2:
      lines.splice(at, 1)
      break
    case 3:
      lines.splice(at, 0, line)
      break
    case 4:
      lines[at] = line.toUpperCase()
      break
    case 5:
      lines[at] = line.toLowerCase()
      break
    case 6:
      lines.push(...lines.splice(Math.max(1, at), 1))
      break
    default:
      lines.splice(1 + rng.below(lines.length), 0, `x-${rng.below(1_000)}: ${'v'.repeat(1 + rng.below(40))}`)
  }
}

function mutateText(rng: Rng, text: string): string {
  const at = rng.below(text.length)
  switch (rng.below(6)) {
    case 0:
      return text.slice(0, at) + pick(rng, CHARACTERS) + text.slice(at)
    case 1:
      return text.slice(0, at) + pick(rng, CHARACTERS) + text.slice(at + 1)
    case 2:
      return text.slice(0, at) + text.slice(at + 1 + rng.below(3))
    case 3:
      return text.slice(0, at) + String.fromCharCode(rng.below(256)) + text.slice(at + 1)
    case 4:
      return text + text.slice(at)
    default:
      return text
  }
}

/** Requests that Node reads from one connection of the oracle; more would be held back until answers are written. */
const ON_ONE_CONNECTION = 50

/** Node's server on a connection in memory: says what it reads from bytes, at once. */
class NodeReader {
  readonly #server: Server
  #socket: Duplex | undefined
  #count = 0
  #read: Array<readonly [IncomingMessage, ServerResponse]> = []
  #problem: string | undefined

  constructor() {
    this.#server = createServer((req, res) => {
      this.#read.push([req, res])
    })
    const odd = (what: string) => () => {
      this.#problem = what
    }
    for (const event of ['checkContinue', 'checkExpectation', 'upgrade', 'connect', 'clientError'])
      this.#server.on(event, odd(event))
  }

  read(bytes: Buffer): string {
    if (this.#socket === undefined || ++this.#count > ON_ONE_CONNECTION) this.#connect()
    this.#read = []
    this.#problem = undefined
    this.#socket?.emit('data', bytes)
    const [first, ...more] = this.#read
    if (this.#problem !== undefined || first === undefined || more.length > 0)
      return this.#broken(this.#problem ?? `${this.#read.length} requests`)
    const [req, res] = first
    const body: unknown = req.read()
    if (!(req.complete && res.shouldKeepAlive)) return this.#broken('no end, or no further request')
    res.end()
    return told(req.method, req.url, req.headers, Buffer.isBuffer(body) ? body : Buffer.alloc(0))
  }

  close(): void {
    this.#socket?.destroy()
    this.#server.close()
  }

  #connect(): void {
    this.#socket?.destroy()
    this.#socket = new Duplex({ read() {}, write: (_part, _encoding, done) => done() })
    this.#server.emit('connection', this.#socket)
    this.#count = 0
  }

  #broken(because: string): string {
    this.#connect()
    return `not taken: ${because}`
  }
}

const told = (method: string | undefined, url: string | undefined, headers: unknown, body: Buffer): string =>
  JSON.stringify([method, url, headers, body.toString('latin1')])

export interface Fuzzed {
  readonly cases: number
  readonly taken: number
  /** The first requests that the path took and Node read otherwise. */
  readonly differences: readonly string[]
}

const DIFFERENCES_MAX = 5
/** Node frees what it holds for a request in later turns of the event loop. */
const CASES_PER_TURN = 1_000

export async function fuzzFastPath(seed: number, cases: number): Promise<Fuzzed> {
  const rng = Rng.stream(seed, 'fast-path-fuzz')
  const node = new NodeReader()
  const differences: string[] = []
  let taken = 0
  let heads = new HeadReader()
  let last = mutatedRequest(rng)
  for (let i = 0; i < cases && differences.length < DIFFERENCES_MAX; i++) {
    if (i % CASES_PER_TURN === 0) await new Promise(setImmediate)
    if (i % ON_ONE_CONNECTION === 0) heads = new HeadReader()
    const bytes = nextRequest(rng, last)
    const post = heads.read(bytes)
    if (post === undefined) continue
    taken++
    last = bytes
    const ours = told('POST', post.url, post.headers, post.body)
    const nodes = node.read(bytes)
    if (ours !== nodes) differences.push(`${JSON.stringify(bytes.toString('latin1'))}\n  path ${ours}\n  node ${nodes}`)
  }
  node.close()
  return { cases, taken, differences }
}
