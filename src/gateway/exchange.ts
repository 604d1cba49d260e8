import { makeWriteBatch } from '../base/live-turn-batch.ts'
import type { TokenFinding } from '../domain/identity.ts'
import type { Caller } from './authenticate.ts'
import { challengeOf, type ToldFault, type ToldRefusal } from './error-table.ts'
import type { ErrorWords } from './error-words.ts'
import type { HttpRequest, HttpResponse } from './http-message.ts'
import type { Visit } from './ingress.ts'
import { requestAddress, type TrustedProxies } from './request-address.ts'

/** Whole answers of one turn of the event loop go out together. */
const answers = makeWriteBatch()

/** A rest of this size costs less to read than a new connection. */
const UNREAD_BYTES_MAX = 64 * 1_024

/**
 * One HTTP request and its response, with the few ways in which we answer. Header arrays go to the socket without being
 * merged into objects, because that is measurable on this path.
 */
export class Exchange {
  readonly req: HttpRequest
  readonly res: HttpResponse
  readonly id: string
  readonly errors: ErrorWords
  /** The allowance that the request is charged to; undefined on servers without one. */
  visit: Visit | undefined
  /** What was found out about the request's token, before its route was called; undefined when it has none. */
  proof: TokenFinding | undefined
  /** Of the key that a session of the console was begun with; undefined outside the console. */
  sessionDigest: string | undefined
  /** Whoever sent the request, where that is known without a key: a line of a job runs for the caller of its job. */
  knownCaller: Caller | undefined
  /** What the answer's id ends with, where it was told before: a response that runs in the background. */
  answerCore: string | undefined
  readonly #trusted: TrustedProxies

  constructor(req: HttpRequest, res: HttpResponse, id: string, errors: ErrorWords, trusted: TrustedProxies = []) {
    this.req = req
    this.res = res
    this.id = id
    this.errors = errors
    this.#trusted = trusted
  }

  /** The client's address, behind the proxies that are trusted; undefined when nobody knows it. */
  get clientAddress(): string | undefined {
    return requestAddress(this.req, this.#trusted)
  }

  /** The same exchange with errors in another format. */
  inWords(errors: ErrorWords): Exchange {
    const same = new Exchange(this.req, this.res, this.id, errors, this.#trusted)
    same.visit = this.visit
    same.proof = this.proof
    same.sessionDigest = this.sessionDigest
    same.knownCaller = this.knownCaller
    same.answerCore = this.answerCore
    return same
  }

  /**
   * The answer comes before the body has been read. Small rests are read and dropped by Node; a large or endless one is
   * not worth reading, so the connection closes after the answer.
   */
  leaveUnread(): void {
    const { 'content-length': length, 'transfer-encoding': encoding } = this.req.headers
    if (encoding === undefined && !(Number(length) > UNREAD_BYTES_MAX)) return
    this.res.shouldKeepAlive = false
    this.req.pause()
  }

  /** Headers with the request's id, in every answer. */
  get idHeaders(): string[] {
    const { idHeader } = this.errors
    return idHeader === undefined ? ['x-request-id', this.id] : ['x-request-id', this.id, idHeader, this.id]
  }

  get isOpen(): boolean {
    return !this.res.headersSent && !this.res.destroyed
  }

  sendJson(status: number, body: string, headers: readonly string[] = []): void {
    this.send(status, 'application/json', body, headers)
  }

  send(status: number, contentType: string, body: string, headers: readonly string[] = []): void {
    if (this.isOpen) this.#sendBody(body, this.#sendHead(status, contentType, body, headers))
  }

  /** Bytes that are sent as they are: many answers may share them. */
  sendBytes(contentType: string, bytes: Uint8Array, headers: readonly string[]): void {
    if (!this.isOpen) return
    const about = ['content-type', contentType, 'content-length', String(bytes.length)]
    this.res.writeHead(200, [...about, ...this.idHeaders, ...headers])
    if (this.req.method !== 'HEAD') this.res.write(bytes)
    this.res.end()
  }

  /** A whole answer, sent with the others of this turn of the loop; `whenSent` is called when the socket has it. */
  sendAnswer(body: string, headers: readonly string[], whenSent: () => void): void {
    if (!this.isOpen) return
    const length = this.#sendHead(200, 'application/json', body, headers)
    answers.add(() => {
      this.#sendBody(body, length)
      whenSent()
    })
  }

  /** Returns the length of the body. Node keeps the head until the body comes. */
  #sendHead(status: number, contentType: string, body: string, headers: readonly string[]): number {
    const length = Buffer.byteLength(body)
    const head = ['content-type', contentType, 'content-length', String(length), 'x-request-id', this.id]
    if (this.errors.idHeader !== undefined) head.push(this.errors.idHeader, this.id)
    for (const part of headers) head.push(part)
    this.res.writeHead(status, head)
    return length
  }

  #sendBody(body: string, length: number): void {
    // ASCII is the same in both encodings; as latin1, Node sends it together with the headers without examining it.
    this.res.end(body, length === body.length ? 'latin1' : 'utf8')
  }

  /** 204: the headers are all there is to say. */
  sendNothing(headers: readonly string[]): void {
    if (!this.isOpen) return
    this.res.writeHead(204, ['x-request-id', this.id, ...headers])
    this.res.end()
  }

  sendFault(fault: ToldFault, more: readonly string[] = []): void {
    const { status, body, headers } = this.errors.ofFault(fault, this.id)
    this.sendJson(status, body, [...headers, ...more])
  }

  sendRefusal(refusal: ToldRefusal, more: readonly string[] = []): void {
    const { status, body, headers } = this.errors.ofRefusal(refusal, this.id)
    this.sendJson(status, body, [...headers, ...(status === 401 ? challengeOf(refusal.code) : []), ...more])
  }
}
