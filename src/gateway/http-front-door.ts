import type { Socket } from 'node:net'
import { type Clock, msToUs } from '../base/clock.ts'
import type { HttpServer } from './http-server.ts'
import { type HttpTwoOptions, makeHttpTwo } from './http-two.ts'

/**
 * What comes before the first request of a connection. Each connection goes through the steps that are on:
 *
 *     PROXY header ─▶ TLS ─▶ HTTP/2 or HTTP/1
 *
 * Inside TLS the client says which version it wants (ALPN). Without TLS the first bytes tell: a client with prior
 * knowledge begins HTTP/2 with a preface that is no request of HTTP/1.
 */
export interface FrontDoorOptions extends HttpTwoOptions {
  /** Whether HTTP/2 is offered. */
  readonly http2: boolean
}

export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

export function openFrontDoor(server: HttpServer, options: FrontDoorOptions): void {
  if (!options.http2) return
  const two = makeHttpTwo(server, options)
  const deadline = { clock: options.clock, timeoutMs: options.headersTimeoutMs }
  server.lookFirst((socket) => {
    tellVersion(server, socket, deadline, () => {
      server.open.handOver(socket)
      two.emit('connection', socket)
    })
  })
}

/** Looks at the first bytes and puts them back; the reader of their version gets the connection. */
function tellVersion(
  server: HttpServer,
  socket: Socket,
  { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number },
  isTwo: () => void,
): void {
  let seen: Buffer | undefined
  const look = (): void => {
    const bytes = socket.read() as Buffer | null
    if (bytes === null) return
    seen = seen === undefined ? bytes : Buffer.concat([seen, bytes])
    const length = Math.min(seen.length, PREFACE.length)
    const isPreface = seen.compare(PREFACE, 0, length, 0, length) === 0
    if (isPreface && length < PREFACE.length) return
    leave()
    socket.unshift(seen)
    if (isPreface) isTwo()
    else server.readOne(socket)
  }
  const stop = clock.at(clock.now() + msToUs(timeoutMs), () => {
    leave()
    server.emit(
      'clientError',
      Object.assign(new Error('nothing was sent'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }),
      socket,
    )
  })
  const leave = (): void => {
    stop()
    socket.off('readable', look)
    socket.off('end', end)
    socket.off('close', leave)
    socket.off('error', ignore)
  }
  const end = (): void => {
    leave()
    socket.destroy()
  }
  socket.on('readable', look)
  socket.on('end', end)
  socket.on('close', leave)
  socket.on('error', ignore)
}

/** A client that hangs up before it has asked for anything is no fault of ours; 'close' follows. */
const ignore = (): void => {}
