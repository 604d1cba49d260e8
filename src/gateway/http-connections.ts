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

/**
 * The open connections of a server, with the last response on each, so that connections can be closed without cutting
 * an answer off. Node's own `server.close()` drops a connection when its response has been written, although a slow
 * reader has not received it yet; it also stops looking for clients that are too slow to send.
 *
 *     no response yet           stays until all answers have ended: its client may ask for readiness
 *     response being sent       stays until the response is sent
 *     response sent             closed at once: the next request should go elsewhere
 */
export class Connections {
  readonly #server: Server
  readonly #last = new Map<Socket, HttpResponse | undefined>()
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

  /** A request came in; `response` is where its answer will go. */
  note(socket: Socket, response: HttpResponse): void {
    this.#last.set(socket, response)
    if (this.#isLeaving || !this.#server.listening) response.shouldKeepAlive = false
  }

  /**
   * Goes on accepting, and asks the client of every further request to connect anew: a balancer that has noticed that
   * this server is not ready then chooses another one. What is idle when the server closes would be cut.
   */
  leave(): void {
    this.#isLeaving = true
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
    this.sessions.close()
    for (const [socket, response] of this.#last) {
      if (response?.writableFinished === true) socket.destroy()
      else if (response !== undefined) {
        // The client is told, if its answer has not begun.
        response.shouldKeepAlive = false
        response.on('finish', () => socket.destroySoon())
      }
    }
    return closed
  }

  /** All answers have ended: a connection that is not being sent the rest of one has nothing to wait for. */
  closeWaiting(): void {
    this.sessions.closeWaiting()
    for (const socket of this.#last.keys()) if (!this.isAnswering(socket)) socket.destroy()
  }

  closeAll(): void {
    this.sessions.closeAll()
    for (const socket of this.#last.keys()) socket.destroy()
  }
}
