import type { Instant } from '../../base/clock.ts'
import { Ewma } from '../../base/ewma.ts'

/**
 * Does the engine keep the prefixes that we think it keeps?
 *
 * The prefix index knows what was sent to a replica, not what the replica has kept: some engines cache no prefixes, and
 * memory is evicted. Engines that report cached tokens with the usage show it, and what is expected to be cached is
 * multiplied with the share that lately was. An engine that has never reported a cached token says nothing by a zero:
 * most do not report them unless asked.
 *
 * Example: 600 tokens were expected to be cached in each of the last answers, and 300 were: half is expected from then on.
 */
export class CacheTrust {
  readonly #ratio = new Ewma(MEMORY_US)
  #hasReported = false

  /** Of what we expect to be cached, what probably is: 0 … 1. */
  get ratio(): number {
    return this.#ratio.view() ?? 1
  }

  /** Whether the engine tells how many tokens it had cached. */
  get hasReported(): boolean {
    return this.#hasReported
  }

  observe(now: Instant, { expectedTokens, reportedTokens }: { expectedTokens: number; reportedTokens: number }): void {
    if (reportedTokens > 0) this.#hasReported = true
    if (!this.#hasReported || expectedTokens <= 0) return
    this.#ratio.observe(now, Math.min(1, reportedTokens / expectedTokens))
  }
}

/** Microseconds: caches are lost at once when an engine restarts, and fill within minutes. */
const MEMORY_US = 60_000_000
