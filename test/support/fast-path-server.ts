import type { Clock } from '../../src/base/clock.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { collectBody } from '../../src/gateway/collect-body.ts'
import type { Exchange } from '../../src/gateway/exchange.ts'
import { endsWithServer } from '../../src/gateway/http-connections.ts'
import { FastRequest } from '../../src/gateway/http-fast-request.ts'
import { openFrontDoor } from '../../src/gateway/http-front-door.ts'
import { closeServer, listen } from '../../src/gateway/http-listen.ts'
import { type HttpServer, makeHttpServer, type Route } from '../../src/gateway/http-server.ts'
import { RawSocket } from './raw-http.ts'

/** A server with a route for every way in which routes answer, with the fast path and without. */
export const BODY_BYTES_MAX = 100

const open: Array<() => unknown> = []

/** Closes all that was opened; for `afterEach`. */
export async function closeAll(): Promise<void> {
  for (const close of open.splice(0).toReversed()) await close()
}

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Which requests came by the fast path: said by the object that the route got. */
export class Seen {
  readonly byFastPath: boolean[] = []
  readonly exchanges: Exchange[] = []
  /** Of the last request. */
  get exchange(): Exchange | undefined {
    return this.exchanges.at(-1)
  }
}

const post = (path: string, handle: Route['handle']): Route => ({ method: 'POST', path, handle })

/** Every way in which routes answer. */
function routesOf(seen: Seen): Route[] {
  const routes = [
    post('/json', async (exchange) => {
      const body = await collectBody(exchange, BODY_BYTES_MAX)
      if (body.kind === 'fault') exchange.sendFault(body.fault)
      else if (body.kind === 'ok') exchange.sendJson(200, body.bytes.toString(), ['x-spillway-model', 'sim'])
    }),
    post('/unread', (exchange) => exchange.sendJson(200, '{"ü":1}')),
    post('/stream', async ({ res }) => {
      res.writeHead(200, ['content-type', 'text/event-stream'])
      for (const text of ['one', 'zwölf', 'two']) {
        res.write(`data: ${text}\n\n`)
        res.write(`data: ${text} again\n\n`)
        res.write('')
        await turn()
      }
      res.end('data: [DONE]\n\n')
    }),
    post('/stream-at-once', ({ res }) => {
      res.writeHead(200, ['content-type', 'text/event-stream'])
      res.write('data: 1\n\n')
      res.end('data: 2\n\n')
    }),
    post('/bytes', async ({ res }) => {
      res.writeHead(201, ['content-type', 'audio/mpeg', 'Set-Cookie', 'a=b', 'Set-Cookie', 'c=d'])
      res.write(Buffer.from([1, 2, 255]))
      await turn()
      res.write(Buffer.from([3]))
      await turn()
      res.end()
    }),
    post('/declared', async ({ res }) => {
      res.writeHead(200, ['Content-Length', '6', 'date', 'today'])
      res.write('ab')
      await turn()
      res.write(Buffer.from('cd'))
      await turn()
      res.end('ef')
    }),
    post('/nothing', (exchange) => exchange.sendNothing(['x-a', 'b'])),
    post('/not-modified', ({ res }) => {
      res.writeHead(304, ['etag', 'x'])
      res.end('never sent')
    }),
    post('/flushed', async ({ res }) => {
      res.writeHead(200, ['x-a', 'b'])
      res.flushHeaders()
      await turn()
      res.end('late')
    }),
    post('/broken', () => {
      throw new Error('broken')
    }),
    post('/split', ({ res }) => {
      res.writeHead(200, ['x-a', 'b\r\nx-evil: c'])
    }),
    post('/odd-name', ({ res }) => {
      res.writeHead(200, ['x a', 'b'])
    }),
    post('/streamed-body', async (exchange) => {
      const { req } = exchange
      const parts: string[] = []
      await new Promise<void>((resolve) => {
        req.on('readable', () => {
          for (let part = req.read(); Buffer.isBuffer(part); part = req.read()) parts.push(part.toString())
        })
        req.on('end', resolve)
      })
      exchange.sendJson(200, JSON.stringify({ parts, isEnded: req.readableEnded }))
    }),
    post('/held', (exchange) => {
      exchange.res.writeHead(200, ['content-type', 'text/plain'])
      exchange.res.write('begun')
    }),
    post('/feed', (exchange) => {
      endsWithServer(exchange.res)
      exchange.res.writeHead(200, ['content-type', 'text/event-stream'])
      exchange.res.write('begun')
    }),
    post('/silent', () => {}),
  ]
  return routes.map((route) => ({
    ...route,
    handle: (exchange, rest) => {
      seen.byFastPath.push(exchange.req instanceof FastRequest)
      seen.exchanges.push(exchange)
      return route.handle(exchange, rest)
    },
  }))
}

export interface Started {
  readonly address: string
  readonly seen: Seen
  readonly server: HttpServer
  readonly connect: () => RawSocket
}

export async function startFastPath(
  fastPath: boolean,
  { http2 = true, clock = new LiveClock() as Clock, connectionsMax = 10 } = {},
): Promise<Started> {
  const seen = new Seen()
  const options = {
    basePath: '',
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 10_000,
    idleTimeoutMs: 7_000,
    connectionsMax,
    makeRequestId: () => 'req_1',
    onFault: () => {},
    cors: { origins: ['https://app.example'], headers: ['*'] },
  }
  const server = makeHttpServer(routesOf(seen), options)
  openFrontDoor(server, { ...options, clock, http2, fastPath, streamsMax: 10, aheadBytesMax: 65_536 })
  const now = Promise.resolve()
  open.push(() => server.listening && closeServer(server, { answersEnded: now, patienceEnded: now }))
  const address = await listen(server, { host: '127.0.0.1', port: 0 })
  const connect = (): RawSocket => {
    const socket = new RawSocket(address)
    open.push(() => socket.destroy())
    return socket
  }
  return { address, seen, server, connect }
}

export const exchangeOf = ({ exchange }: Seen): Exchange => {
  if (exchange === undefined) throw new Error('no request yet')
  return exchange
}

export const textOf = (path: string, body: string, headers: Record<string, string> = {}): string => {
  const length = String(Buffer.byteLength(body))
  const lines = Object.entries({ host: 'x', 'content-type': 'application/json', 'content-length': length, ...headers })
  return `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}
