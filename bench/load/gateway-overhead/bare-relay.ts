/**
 * The least that a gateway on this runtime can do: collect the body, pass it on with undici, pass the answer back. No keys, no
 * checks, no policies, no metrics. It shows which part of Spillway's cost is Node's, and stands in for Spillway where that is
 * not there. Not a proxy to use: it trusts everyone.
 *
 * usage: node bare-relay.ts <port> <upstream port>
 */
import { createServer, type ServerResponse } from 'node:http'
import { type Dispatcher, Pool } from 'undici'

const [port = '9101', upstreamPort = '9001'] = process.argv.slice(2)
/** One connection per open stream, and the largest slice keeps 5,000 open. */
const CONNECTIONS_MAX = 20_000
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'trailer'])

/** Writes the upstream's answer straight to the client's: no stream in between, backpressure kept. */
class Relay implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse
  #length = -1
  #isPaused = false

  constructor(response: ServerResponse) {
    this.#response = response
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#response.once('close', () => {
      if (!this.#response.writableFinished) controller.abort(new Error('client gone'))
    })
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    const out: string[] = []
    for (const name in headers) {
      const value = headers[name]
      if (typeof value === 'string' && !HOP_BY_HOP.has(name)) out.push(name, value)
    }
    this.#length = Number(headers['content-length'] ?? -1)
    this.#response.writeHead(status, out)
    if (this.#length < 0) this.#response.flushHeaders()
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (chunk.length === this.#length) {
      this.#response.end(chunk)
      return
    }
    if (this.#response.write(chunk) || this.#isPaused) return
    this.#isPaused = true
    controller.pause()
    this.#response.once('drain', () => {
      this.#isPaused = false
      controller.resume()
    })
  }

  onResponseEnd(): void {
    if (!this.#response.writableEnded) this.#response.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#response.headersSent) this.#response.destroy()
    else this.#response.writeHead(502).end(error.message)
  }
}

const pool = new Pool(`http://127.0.0.1:${upstreamPort}`, {
  connections: CONNECTIONS_MAX,
  pipelining: 1,
  keepAliveTimeout: 30_000,
  bodyTimeout: 0,
  headersTimeout: 0,
})
const headers = ['content-type', 'application/json', 'authorization', 'Bearer upstream']

createServer({ noDelay: true, requestTimeout: 0 }, (request, response) => {
  const parts: Buffer[] = []
  request.on('data', (part: Buffer) => parts.push(part))
  request.on('end', () => {
    const body = Buffer.concat(parts)
    pool.dispatch({ path: '/v1/chat/completions', method: 'POST', headers, body }, new Relay(response))
  })
}).listen(Number(port), '127.0.0.1')

process.on('SIGTERM', () => process.exit(0))
