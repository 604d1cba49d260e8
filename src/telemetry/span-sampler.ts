import { unitOf } from '../base/rng.ts'
import type { TraceContext } from '../base/trace-context.ts'
import type { Entry, Settled } from '../domain/entry.ts'
import { makeSpans, type TicketSpan } from './make-spans.ts'

/**
 * Whose spans are worth sending: what the caller samples, what went wrong, and a share of the rest. Decided when the
 * ticket has ended, so that no failure is missed; a ticket that is not chosen costs one comparison.
 *
 * What waits for the exporter is bounded. A collector that is away or slow loses spans, which are counted, and nothing else.
 */
export interface SpanSamplerOptions {
  readonly ratio: number
  readonly spansMax?: number
}

/** What the choice is made by, besides the caller's trace. */
export type SampledBy = Pick<Settled, 'outcome' | 'isKept' | 'ticketId'>

/** A request has about five spans, each a kilobyte as JSON. */
const SPANS_MAX = 8_192

export class SpanSampler {
  readonly #ratio: number
  readonly #spansMax: number
  #waiting: TicketSpan[] = []
  #made = 0
  #dropped = 0

  constructor({ ratio, spansMax = SPANS_MAX }: SpanSamplerOptions) {
    this.#ratio = ratio
    this.#spansMax = spansMax
  }

  /** The ticket has ended; its entries, oldest first. */
  take(story: readonly Entry[], settled: Settled): void {
    const [first] = story
    if (!this.isWanted(first?.kind === 'arrived' ? first.trace : undefined, settled)) return
    const spans = makeSpans(story)
    this.#made += spans.length
    if (this.#waiting.length + spans.length > this.#spansMax) this.#dropped += spans.length
    else for (const span of spans) this.#waiting.push(span)
  }

  /** The oldest spans that wait, no longer waiting. */
  shift(countMax: number): TicketSpan[] {
    const taken = this.#waiting.slice(0, countMax)
    this.#waiting = this.#waiting.slice(countMax)
    return taken
  }

  /** Spans that were taken and did not arrive. */
  lose(count: number): void {
    this.#dropped += count
  }

  view(): { readonly made: number; readonly dropped: number; readonly waiting: number } {
    return { made: this.#made, dropped: this.#dropped, waiting: this.#waiting.length }
  }

  /** Whether spans are made of a ticket, given its caller's trace: the same answer whenever it is asked. */
  isWanted(trace: TraceContext | undefined, { outcome, isKept, ticketId }: SampledBy): boolean {
    if (isKept === false || (outcome !== 'completed' && outcome !== 'cancelled')) return true
    if (trace !== undefined) return trace.isSampled
    return this.#ratio > 0 && unitOf(ticketId) < this.#ratio
  }
}
