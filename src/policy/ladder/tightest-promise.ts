import type { Slo } from '../../domain/tenant.ts'

/**
 * What is the tightest promise that the platform has given to any tenant?
 *
 * Any tenant's request may come to any pool, so what holds for all of them must hold for the tightest: the pressure of
 * the platform is the backlog against the tightest time to the first token, and a limit that aims at a time per token
 * aims at the tightest one. The two may come from different tenants.
 *
 * The promise changes when tenants or their SLOs do. Whoever needs it asks at the moment of use and keeps no copy.
 *
 * Deliberately not: no promise per pool. A pool that is dedicated to patient tenants is still held to the tightest
 * promise, because its tenants may change without the pool being made anew.
 *
 * Law: never looser than the promise of any tenant that was told last.
 * Example: tenants with 500 ms + 40 ms a token and 2 s + 25 ms a token: 500 ms and 25 ms. The second one leaves: 500 ms
 * and 40 ms.
 */
type PromisedTimes = Pick<Slo, 'ttftUs' | 'interTokenUs'>

export class TightestPromise {
  #ttftUs = Number.POSITIVE_INFINITY
  #interTokenUs = Number.POSITIVE_INFINITY

  constructor(tenants: Iterable<{ readonly slo: PromisedTimes }>) {
    this.replace(tenants)
  }

  /** Microseconds to the first token; infinite without tenants. */
  get ttftUs(): number {
    return this.#ttftUs
  }

  /** Mean microseconds per output token; infinite without tenants. */
  get interTokenUs(): number {
    return this.#interTokenUs
  }

  /** These are all tenants from now on. True when the promise is another one than before. */
  replace(tenants: Iterable<{ readonly slo: PromisedTimes }>): boolean {
    const { ttftUs: ttftBefore, interTokenUs: interTokenBefore } = this
    this.#ttftUs = Number.POSITIVE_INFINITY
    this.#interTokenUs = Number.POSITIVE_INFINITY
    for (const { slo } of tenants) {
      this.#ttftUs = Math.min(this.#ttftUs, slo.ttftUs)
      this.#interTokenUs = Math.min(this.#interTokenUs, slo.interTokenUs)
    }
    return this.#ttftUs !== ttftBefore || this.#interTokenUs !== interTokenBefore
  }
}
