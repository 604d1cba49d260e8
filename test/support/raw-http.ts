import { type IncomingHttpHeaders, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { eventually } from './eventually.ts'

/** HTTP without a client's good manners: bodies in pieces, bytes that are no text, sockets that stop reading. */
export interface RawResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface RawRequest {
  readonly method?: string
  readonly path: string
  readonly headers?: Record<string, string>
  /** Several pieces are sent chunked, one after the other. */
  readonly body?: string | Buffer | readonly (string | Buffer)[]
}

export function sendRaw(address: string, raw: RawRequest): Promise<RawResponse> {
  const { method = 'POST', path, headers = {}, body } = raw
  return new Promise((resolve, reject) => {
    const sent = request(address + path, { method, headers, agent: false }, (res) => {
      let text = ''
      res.setEncoding('utf8')
      res.on('data', (part: string) => {
        text += part
      })
      res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, text }))
      res.on('error', reject)
    })
    // A server that has answered may close while we still send: what counts is that its answer arrives.
    sent.on('error', (error) => setTimeout(() => reject(error), 200))
    if (Array.isArray(body)) for (const piece of body) sent.write(piece)
    sent.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : undefined)
  })
}

/** A connection in the test's own hands: it sends what it is told and reads only when it is told. */
export class RawSocket {
  readonly socket: Socket
  received = ''
  isClosed = false

  constructor(address: string) {
    const { hostname, port } = new URL(address)
    this.socket = connect({ host: hostname, port: Number(port) })
    this.socket.setEncoding('utf8')
    this.socket.on('data', (part: string) => {
      this.received += part
    })
    this.socket.on('error', () => {})
    this.socket.on('close', () => {
      this.isClosed = true
    })
  }

  send(text: string): this {
    this.socket.write(text)
    return this
  }

  /** A whole POST with a JSON body, in one go. */
  post(path: string, body: unknown, headers: Record<string, string>): this {
    const text = JSON.stringify(body)
    const lines = Object.entries({
      host: 'test',
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(text)),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}\r\n`)
    return this.send(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${text}`)
  }

  until(what: string, isThere: (received: string) => boolean, withinMs?: number): Promise<true> {
    const look = (): boolean => {
      if (isThere(this.received)) return true
      if (this.isClosed) throw new Error(`closed before ${what}, after: ${this.received.slice(-500)}`)
      return false
    }
    return eventually(what, look, withinMs)
  }

  async closed(withinMs?: number): Promise<void> {
    await eventually('the connection closes', () => this.isClosed, withinMs)
  }

  stopReading(): this {
    this.socket.pause()
    return this
  }

  destroy(): void {
    this.socket.destroy()
  }
}
