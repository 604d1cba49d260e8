import type { ServerHttp2Session } from 'node:http2'
import type { HttpResponse } from './http-message.ts'

/**
 * The open HTTP/2 connections of a server, each with the answers on it, so that they can be closed without cutting an
 * answer off. A connection carries many streams. GOAWAY names the last stream that is served: the client opens no more,
 * and knows which requests to send again elsewhere because they crossed it.
 *
 *     state               leave                                           close                            closeWaiting
 *     no request yet      stays; closed as soon as its answers have ended  GOAWAY, closed                   cut
 *     answers under way   GOAWAY; closed when the last answer has ended   GOAWAY; closed after the last    stays
 *     answered            GOAWAY, closed                                  GOAWAY, closed                   cut
 *
 * Not here: a first GOAWAY that names every possible stream (RFC 9113, 6.8). nghttp2 reads no new stream after any GOAWAY
 * that Node lets a server send, so streams that the first one allows would never be answered.
 */
export class Sessions {
  /** Bounded by the connections that may be open, and each set by the streams of a connection. */
  readonly #open = new Map<ServerHttp2Session, Answers>()
  #stage: 'open' | 'leaving' | 'closing' = 'open'

  add(session: ServerHttp2Session): void {
    this.#open.set(session, { underWay: new Set(), hasAny: false })
    session.on('close', () => this.#open.delete(session))
    if (this.#stage === 'closing') session.close()
  }

  /** A request came in on this connection; `response` is where its answer will go. */
  note(session: ServerHttp2Session, response: HttpResponse): void {
    const answers = this.#open.get(session)
    if (answers === undefined) return
    answers.hasAny = true
    answers.underWay.add(response)
    response.on('close', () => {
      answers.underWay.delete(response)
      if (this.#stage === 'leaving' && answers.underWay.size === 0) session.close()
    })
  }

  /** Streams on this connection that have not ended. */
  answersOn(session: ServerHttp2Session): number {
    return this.#open.get(session)?.underWay.size ?? 0
  }

  /** Connections that have been used get no further requests; those that have not been, and later ones, serve until they are idle. */
  leave(): void {
    this.#stage = 'leaving'
    for (const [session, { hasAny }] of this.#open) if (hasAny) session.close()
  }

  /** No new streams; a connection closes when its last stream has ended. */
  close(): void {
    this.#stage = 'closing'
    for (const session of this.#open.keys()) session.close()
  }

  /** All tickets have ended: a connection on which no request awaits its answer has nothing to wait for. */
  closeWaiting(isAwaited: (response: HttpResponse) => boolean): void {
    for (const [session, { underWay }] of this.#open) if (![...underWay].some(isAwaited)) session.destroy()
  }

  closeAll(): void {
    for (const session of this.#open.keys()) session.destroy()
  }
}

interface Answers {
  readonly underWay: Set<HttpResponse>
  hasAny: boolean
}
