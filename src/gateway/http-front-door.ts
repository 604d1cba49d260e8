import type { Http2Server } from 'node:http2'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { invalidRequest } from '../wire/openai-error.ts'
import { answerOnSocket } from './http-broken-request.ts'
import { FastPath } from './http-fast-path.ts'
import { FirstBytesReader, putBack } from './http-first-bytes.ts'
import { readProxyHeader } from './http-proxy-protocol.ts'
import type { HttpServer } from './http-server.ts'
import { TlsFront, type TlsMaterial } from './http-tls.ts'
import { type HttpTwoOptions, makeHttpTwo } from './http-two.ts'

/**
 * What comes before the first request of a connection. Each connection goes through the steps that are on:
 *
 *     PROXY header ─▶ TLS ─▶ HTTP/2, or HTTP/1 by the fast path or `node:http`
 *
 * Inside TLS the client says which version it wants (ALPN). Without TLS the first bytes tell: a client with prior
 * knowledge begins HTTP/2 with a preface that is no request of HTTP/1.
 *
 * The server that listens is the HTTP/1 server, so its bound on connections and its stop hold for all of them. Where
 * no step is on, its connections are its own, as if there were no front door.
 */
export interface FrontDoorOptions extends HttpTwoOptions {
  /** Whether HTTP/2 is offered. */
  readonly http2: boolean
  /** Whether plain requests of HTTP/1 without TLS are read by the fast path; if absent, they are not. */
  readonly fastPath?: boolean
  readonly tls?: { readonly material: TlsMaterial; readonly minVersion: 'TLSv1.2' | 'TLSv1.3' } | undefined
  /** Whether connections from this address begin with a PROXY header; none do if absent. */
  readonly isProxy?: ((address: string) => boolean) | undefined
}

/** The beginning of HTTP/2 (RFC 9113, 3.4). */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

export function openFrontDoor(server: HttpServer, options: FrontDoorOptions): FrontDoor | undefined {
  const isPlain =
    !options.http2 && options.fastPath !== true && options.tls === undefined && options.isProxy === undefined
  return isPlain ? undefined : new FrontDoor(server, options)
}

/** A connection on its way to its first request. */
interface Arrival {
  readonly raw: Socket
  readonly ends: string
  /** The client's address, as a proxy said; undefined when the connection's own counts. */
  readonly address: string | undefined
}

export class FrontDoor {
  readonly #server: HttpServer
  readonly #options: FrontDoorOptions
  readonly #two: Http2Server | undefined
  readonly #tls: TlsFront | undefined
  readonly #fastPath: FastPath | undefined
  readonly #first: FirstBytesReader
  /** Connections before their first secure byte, by their two ends; Node does not say which one became secure. */
  readonly #arrivals = new Map<string, Arrival>()

  constructor(server: HttpServer, options: FrontDoorOptions) {
    this.#server = server
    this.#options = options
    this.#first = new FirstBytesReader({
      clock: options.clock,
      timeoutMs: options.headersTimeoutMs,
      onTimeout: (socket) => {
        // Node's own parser reports a client that sends nothing in the same way.
        const tooSlow = Object.assign(new Error('no request in time'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
        server.emit('clientError', tooSlow, socket)
      },
    })
    this.#two = options.http2 ? makeHttpTwo(server, options) : undefined
    this.#fastPath = options.fastPath === true ? new FastPath(server, options) : undefined
    if (options.tls !== undefined) {
      const protocols = options.http2 ? (['h2', 'http/1.1'] as const) : (['http/1.1'] as const)
      this.#tls = new TlsFront({ ...options.tls, handshakeTimeoutMs: options.headersTimeoutMs, protocols })
      this.#tls.server.on('secureConnection', (socket) => this.#enterSecure(socket))
    }
    // Asking a connection for its ends costs two system calls, which only the first two steps need.
    const needsEnds = options.tls !== undefined || options.isProxy !== undefined
    server.lookFirst((socket) => (needsEnds ? this.#enter(socket) : this.#tellVersion(socket)))
  }

  /** Takes other certificates for new connections, or throws and keeps those that it has. */
  changeCertificates(material: TlsMaterial): void {
    this.#tls?.change(material)
  }

  #enter(raw: Socket): void {
    const { isProxy } = this.#options
    const { remoteAddress } = raw
    const arrival: Arrival = { raw, ends: endsOf(raw), address: undefined }
    // A connection that has gone already has no address.
    if (remoteAddress === undefined) raw.destroy()
    else if (isProxy?.(remoteAddress) === true) this.#readProxyHeader(arrival)
    else this.#secure(arrival)
  }

  #readProxyHeader(arrival: Arrival): void {
    const { raw } = arrival
    this.#first.look(raw, (seen) => {
      const header = readProxyHeader(seen)
      if (header.kind === 'incomplete') return undefined
      if (header.kind === 'invalid') return () => this.#refuseUnproxied(raw)
      const { length, address } = header
      return () => {
        if (address !== undefined) tellAddress(raw, address)
        putBack(raw, seen.subarray(length))
        this.#secure({ ...arrival, address })
      }
    })
  }

  #refuseUnproxied(socket: Socket): void {
    const { makeRequestId } = this.#options
    const message = 'Connections from this address must begin with a PROXY header (server.proxyProtocolFrom).'
    const fault = invalidRequest(message, null, 'invalid-http')
    answerOnSocket(socket, fault, { requestId: makeRequestId(), errors: this.#server.errors })
  }

  #secure(arrival: Arrival): void {
    const { raw, ends } = arrival
    if (this.#tls === undefined) {
      this.#tellVersion(raw)
      return
    }
    this.#arrivals.set(ends, arrival)
    raw.on('close', () => this.#arrivals.delete(ends))
    this.#tls.server.emit('connection', raw)
  }

  #enterSecure(socket: TLSSocket): void {
    const ends = endsOf(socket)
    const arrival = this.#arrivals.get(ends)
    if (arrival === undefined) {
      socket.destroy()
      return
    }
    this.#arrivals.delete(ends)
    this.#server.open.handOver(arrival.raw)
    if (arrival.address !== undefined) tellAddress(socket, arrival.address)
    if (socket.alpnProtocol === 'h2') {
      this.#two?.emit('connection', socket)
      return
    }
    this.#server.open.add(socket)
    this.#server.readOne(socket)
  }

  #tellVersion(socket: Socket): void {
    const two = this.#two
    if (two === undefined && this.#fastPath === undefined) {
      this.#server.readOne(socket)
      socket.resume()
      return
    }
    this.#first.look(socket, (seen) => {
      const length = Math.min(seen.length, PREFACE.length)
      if (two === undefined || seen.compare(PREFACE, 0, length, 0, length) !== 0)
        return () => this.#enterOne(socket, seen)
      if (length < PREFACE.length) return undefined
      return () => {
        putBack(socket, seen)
        this.#server.open.handOver(socket)
        two.emit('connection', socket)
      }
    })
  }

  #enterOne(socket: Socket, seen: Buffer): void {
    if (this.#fastPath !== undefined) {
      this.#fastPath.enter(socket, seen)
      return
    }
    this.#server.readOne(socket)
    // The parser takes what is emitted as it takes what it reads; giving bytes back would take as long again.
    socket.emit('data', seen)
  }
}

/** The two ends of a TCP connection; asked before a proxy's word for the client's end is taken. */
const endsOf = ({ localAddress, localPort, remoteAddress, remotePort }: Socket): string =>
  `${localAddress} ${localPort} ${remoteAddress} ${remotePort}`

/** From here the connection's address is what the proxy said. */
function tellAddress(socket: Socket, address: string): void {
  Object.defineProperty(socket, 'remoteAddress', { value: address, configurable: true })
}
