import { type CancelTimer, type Clock, secondsToUs } from '../base/clock.ts'
import { makeSecretPart } from '../base/live-ids.ts'
import type { GatewayStore } from '../domain/gateways.ts'

/**
 * Secrets that gateways on one database have in common. Each offers a random one of its own and uses the first that was
 * offered; until the store has answered it uses its own, and asks again.
 */
const RETRY_US = secondsToUs(5)

export class CellSecrets {
  readonly #clock: Clock
  readonly #store: Pick<GatewayStore, 'secret'>
  readonly #timers = new Set<CancelTimer>()
  #isClosed = false

  constructor(clock: Clock, store: Pick<GatewayStore, 'secret'>) {
    this.#clock = clock
    this.#store = store
  }

  of(name: string): () => string {
    let secret = makeSecretPart()
    const ask = async (): Promise<void> => {
      try {
        secret = await this.#store.secret(name, secret)
      } catch {
        this.#later(ask)
      }
    }
    void ask()
    return () => secret
  }

  close(): void {
    this.#isClosed = true
    for (const cancel of this.#timers) cancel()
  }

  #later(ask: () => Promise<void>): void {
    if (this.#isClosed) return
    const cancel = this.#clock.at(this.#clock.now() + RETRY_US, () => {
      this.#timers.delete(cancel)
      void ask()
    })
    this.#timers.add(cancel)
  }
}
