import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { WholePost } from './http-fast-head.ts'
import type { HttpRequest } from './http-message.ts'

type Listener = (part: Buffer) => void

/** A request of the fast path. Its body is there; a route that wants a stream nevertheless gets one. */
export class FastRequest implements HttpRequest {
  readonly method = 'POST'
  readonly httpVersionMinor = 1
  readonly complete = true
  url: string
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly socket: Socket
  /** Let go when it is taken: an answer may take minutes, and nobody needs the bytes of the question for that long. */
  #body: Buffer | undefined
  #stream: Readable | undefined

  constructor({ url, headers, body }: WholePost, socket: Socket) {
    this.url = url
    this.headers = headers
    this.socket = socket
    this.#body = body
  }

  get readableEnded(): boolean {
    return this.#stream?.readableEnded === true
  }

  get destroyed(): boolean {
    return this.#stream?.destroyed === true
  }

  takeWhole(): Buffer | undefined {
    const body = this.#body
    this.#body = undefined
    return body
  }

  read(): unknown {
    return this.#streamed().read()
  }

  /** Nothing is left to be held back on the connection. */
  pause(): void {
    this.#stream?.pause()
  }

  destroy(): void {
    this.socket.destroy()
  }

  on(event: string, listener: Listener): void {
    this.#streamed().on(event, listener)
  }

  off(event: string, listener: Listener): void {
    this.#stream?.off(event, listener)
  }

  /** The client has gone: a route that reads the body as a stream is told. */
  leave(): void {
    this.#stream?.destroy()
  }

  #streamed(): Readable {
    if (this.#stream === undefined) {
      this.#stream = new Readable({ read() {} })
      const body = this.takeWhole()
      if (body !== undefined && body.length > 0) this.#stream.push(body)
      this.#stream.push(null)
    }
    return this.#stream
  }
}
