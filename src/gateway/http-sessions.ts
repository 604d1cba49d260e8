import type { ServerHttp2Session } from 'node:http2'
import type { HttpResponse } from './http-message.ts'

/**
 * The open HTTP/2 connections of a server, each with the answers on it, so that they can be closed without cutting an
 * answer off. A connection carries many streams, and the client is told (GOAWAY) to open no more of them.
 */
export class Sessions {
  /** Bounded by the connections that may be open, and each set by the streams of a connection. */
  readonly #open = new Map<ServerHttp2Session, Set<HttpResponse>>()
  #isClosing = false

  add(session: ServerHttp2Session): void {
    this.#open.set(session, new Set())
    session.on('close', () => this.#open.delete(session))
    if (this.#isClosing) session.close()
  }

  /** A request came in on this connection; `response` is where its answer will go. */
  note(session: ServerHttp2Session, response: HttpResponse): void {
    const answers = this.#open.get(session)
    if (answers === undefined) return
    answers.add(response)
    response.on('close', () => answers.delete(response))
  }

  /** Streams on this connection that have not ended. */
  answersOn(session: ServerHttp2Session): number {
    return this.#open.get(session)?.size ?? 0
  }

  /** No new streams; a connection closes when its last stream has ended. */
  close(): void {
    this.#isClosing = true
    for (const session of this.#open.keys()) session.close()
  }

  /** All answers have ended: what is left to wait for is answers that are being sent. */
  closeWaiting(): void {
    for (const [session, answers] of this.#open) {
      const isAnswering = [...answers].some((response) => response.headersSent && !response.writableFinished)
      if (!isAnswering) session.destroy()
    }
  }

  closeAll(): void {
    for (const session of this.#open.keys()) session.destroy()
  }
}
