import { type Clock, type Instant, secondsToUs } from '../base/clock.ts'
import type { ToldReadiness } from '../gateway/routes/operate.ts'

/** How far the life of an engine server is: it loads its weights, serves, tells routers to look elsewhere, closes. */
export class ServingState {
  readonly #clock: Clock
  readonly #loadedAt: Instant
  #stopping: 'no' | 'leaving' | 'closing' = 'no'

  constructor(clock: Clock, loadSeconds = 0) {
    this.#clock = clock
    this.#loadedAt = clock.now() + secondsToUs(loadSeconds)
  }

  /** An engine that leaves still answers, because routers notice late. */
  get takesRequests(): boolean {
    return this.#stopping !== 'closing' && this.#isLoaded
  }

  readiness(): ToldReadiness {
    if (this.#stopping !== 'no') return { isReady: false, because: 'shutting down' }
    if (!this.#isLoaded) return { isReady: false, because: 'the weights are being loaded' }
    return { isReady: true, because: 'the weights are loaded' }
  }

  leave(): void {
    this.#stopping = 'leaving'
  }

  close(): void {
    this.#stopping = 'closing'
  }

  get #isLoaded(): boolean {
    return this.#clock.now() >= this.#loadedAt
  }
}
