import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'

/** A server that answers by a table of `METHOD /path`, and remembers what it was asked. What is not in it is a 404. */
export interface Asked {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export type Reply = (asked: Asked, res: ServerResponse) => void | Promise<void>

export class ScriptedServer {
  readonly seen: Asked[] = []
  readonly #server: Server
  #openCount = 0

  private constructor(routes: Readonly<Record<string, Reply>>) {
    this.#server = createServer((req, res) => {
      void this.#answer(routes, req, res)
    })
  }

  static async start(routes: Readonly<Record<string, Reply>>): Promise<ScriptedServer> {
    const server = new ScriptedServer(routes)
    await new Promise<void>((resolve) => {
      server.#server.listen(0, '127.0.0.1', resolve)
    })
    return server
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Requests whose connection is still there and whose answer has not ended. */
  get openCount(): number {
    return this.#openCount
  }

  close(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
  }

  async #answer(routes: Readonly<Record<string, Reply>>, req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.on('error', () => {})
    this.#openCount++
    res.on('close', () => {
      this.#openCount--
    })
    let body = ''
    try {
      for await (const part of req) body += String(part)
    } catch {
      return
    }
    const url = new URL(req.url ?? '/', 'http://test')
    const method = req.method ?? 'GET'
    const asked = { method, path: url.pathname, query: url.searchParams, headers: req.headers, body }
    this.seen.push(asked)
    const reply = routes[`${method} ${url.pathname}`]
    if (reply === undefined) res.writeHead(404).end()
    else await reply(asked, res)
  }
}

export const json =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Reply =>
  (_asked, res) => {
    res.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  }

export const text =
  (body: string, status = 200): Reply =>
  (_asked, res) => {
    res.writeHead(status, { 'content-type': 'text/plain' }).end(body)
  }
