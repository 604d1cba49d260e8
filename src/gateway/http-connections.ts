import type { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { HttpResponse } from './http-message.ts'
import { Sessions } from './http-sessions.ts'

const slowBodies = new WeakSet<HttpResponse>()

/**
 * The body of this request may take longer than `server.requestTimeoutMs`: an upload is as slow as its engine, and has a
 * bound of its own on how slow its client may be.
 */
export function allowSlowBody(response: HttpResponse): void {
  slowBodies.add(response)
}

const endless = new WeakSet<HttpResponse>()

/** This answer has no end of its own, such as a feed: a server that stops does not wait for it. */
export function endsWithServer(response: HttpResponse): void {
  endless.add(response)
}

/**
 * The open connections of a server, with the last response on each, so that connections can be closed without cutting
 * an answer off. Node's own `server.close()` drops a connection when its response has been written, although a slow
 * reader has not received it yet; it also stops looking for clients that are too slow to send.
 *
 *     state                                 leave, retire                close                            closeWaiting
 *     no request yet, or part of a head     stays; its answer closes it  stays: it may ask for readiness  closed
 *     request, no head of its answer yet    the answer closes it         the answer closes it             stays
 *     answer being sent                     stays; the next closes it    closed when it is sent           stays
 *     answered, nothing read since          stays; the next closes it    closed                           closed
 *
 * "The answer closes it": the answer says `Connection: close`, and the connection ends with it. So no request after
 * `leave` or `retire` finds a connection open that is not told to close, whoever reads it. HTTP/2 has its own words for
 * this (`http-sessions.ts`).
 */
export class Connections {
  readonly #server: Server
  readonly #last = new Map<Socket, HttpResponse | undefined>()
  /** Bytes that had been read from a connection when its last answer ended; not kept by the fast path, which reads whole requests. */
  readonly #readUpTo = new WeakMap<Socket, number>()
  #isLeaving = false
  /** Connections that speak HTTP/2. */
  readonly sessions = new Sessions()

  constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket: Socket) => this.add(socket))
  }

  add(socket: Socket): void {
    this.#last.set(socket, undefined)
    socket.on('close', () => this.#last.delete(socket))
  }

  /** The connection goes on as something else: as the TLS connection inside it, or as a session of HTTP/2. */
  handOver(socket: Socket): void {
    this.#last.delete(socket)
  }

  /** The next request of a connection has begun to arrive, and its earlier answers have ended. */
  expect(socket: Socket): void {
    this.#last.set(socket, undefined)
  }

  /** A request came in; `response` is where its answer will go. */
  note(socket: Socket, response: HttpResponse): void {
    this.#last.set(socket, response)
    if (this.#isLeaving || !this.#server.listening) response.shouldKeepAlive = false
  }

  /** As `note`, for a reader that may have read a part of the next request when the answer ends. */
  notePart(socket: Socket, response: HttpResponse): void {
    this.note(socket, response)
    response.on('finish', () => this.#readUpTo.set(socket, socket.bytesRead))
  }

  /**
   * Goes on accepting, and asks the client of every further answer to connect anew: a balancer that has noticed that
   * this server is not ready then chooses another one. What is idle when the server closes would be cut.
   */
  leave(): void {
    this.#isLeaving = true
    this.#tellWaiting()
    this.sessions.leave()
  }

  /** Part of an answer has been sent, and part has not. */
  isAnswering(socket: Socket): boolean {
    const response = this.#last.get(socket)
    return response?.headersSent === true && !response.writableFinished
  }

  /** Whether the request on this connection may take its time to arrive. */
  hasSlowBody(socket: Socket): boolean {
    const response = this.#last.get(socket)
    return response !== undefined && slowBodies.has(response)
  }

  /**
   * Stops accepting, and goes on answering: another process has the socket, and idle connections may still bring a
   * request, which is answered with `connection: close`. Resolves when the last connection has closed.
   */
  retire(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      NetServer.prototype.close.call(this.#server, () => resolve())
    })
    this.#tellWaiting()
    this.sessions.close()
    return closed
  }

  /** Stops accepting; resolves when the last connection has closed. */
  close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      NetServer.prototype.close.call(this.#server, () => {
        // Called for its side effect: it stops the timer that looks for slow clients.
        this.#server.close()
        resolve()
      })
    })
    this.#tellWaiting()
    this.sessions.close()
    for (const [socket, response] of this.#last) {
      if (response === undefined || this.#hasReadMore(socket)) continue
      if (response.writableFinished) socket.destroy()
      else response.on('finish', () => socket.destroySoon())
    }
    return closed
  }

  /** All tickets have ended: a connection without a request that awaits its answer has nothing to wait for. */
  closeWaiting(): void {
    const isAwaited = (response: HttpResponse): boolean => !response.writableFinished && !endless.has(response)
    this.sessions.closeWaiting(isAwaited)
    for (const [socket, response] of this.#last) if (response === undefined || !isAwaited(response)) socket.destroy()
  }

  closeAll(): void {
    this.sessions.closeAll()
    for (const socket of this.#last.keys()) socket.destroy()
  }

  /** Answers that have no head yet can still say that the connection closes with them. */
  #tellWaiting(): void {
    for (const response of this.#last.values())
      if (response !== undefined && !response.headersSent) response.shouldKeepAlive = false
  }

  /** Part of a request has come since the last answer ended. */
  #hasReadMore(socket: Socket): boolean {
    const readUpTo = this.#readUpTo.get(socket)
    const isAnswered = this.#last.get(socket)?.writableFinished === true
    return isAnswered && readUpTo !== undefined && socket.bytesRead > readUpTo
  }
}
