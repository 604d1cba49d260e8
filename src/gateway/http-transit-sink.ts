import type { Cancellation } from '../base/cancellation.ts'
import type { Clock } from '../base/clock.ts'
import type { Delta } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { AnswerHead, Sink } from '../lifecycle/ports.ts'
import type { Exchange } from './exchange.ts'
import { cutOffUnread, spillwayHeaders } from './http-sinks.ts'
import { untilTaken } from './http-slow-reader.ts'

/**
 * Sends an answer that passes through, with its own status and type, piece by piece. An answer that breaks off in the
 * middle has no place for an error: the connection is cut, so that no client takes a part for the whole.
 */
export interface TransitSinkOptions {
  readonly exchange: Exchange
  readonly rateLimits: () => string[]
  readonly clock: Clock
  readonly cancellation: Cancellation
  readonly stalledReaderUs: number
}

export class TransitSink implements Sink {
  readonly #options: TransitSinkOptions
  #head: AnswerHead | undefined

  constructor(options: TransitSinkOptions) {
    this.#options = options
  }

  start(head: AnswerHead): void {
    this.#head = head
  }

  write({ result, bytes }: Delta): Promise<void> | undefined {
    const { exchange, rateLimits } = this.#options
    const { res } = exchange
    if (result?.kind === 'transit' && exchange.isOpen) {
      const ours = this.#head === undefined ? [] : spillwayHeaders(this.#head)
      res.writeHead(result.head.status, [...result.head.headers, 'x-request-id', exchange.id, ...rateLimits(), ...ours])
    }
    if (bytes === undefined || res.destroyed) return undefined
    return res.write(bytes) ? undefined : untilTaken(this.#options)
  }

  finish(): void {
    this.#options.exchange.res.end()
    cutOffUnread(this.#options)
  }

  fail(refusal: Refusal): void {
    const { exchange, rateLimits } = this.#options
    const { kept } = refusal
    if (!exchange.isOpen) exchange.res.destroy()
    else if (kept === undefined) exchange.sendRefusal(refusal, rateLimits())
    else exchange.send(kept.status, kept.contentType, kept.body, ['x-should-retry', 'false', ...rateLimits()])
  }
}
