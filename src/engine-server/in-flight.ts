import type { Cancellation } from '../base/cancellation.ts'

/** The running answers of an engine server, so that it can wait for their end, or cancel them. */
export class InFlight {
  readonly #open = new Set<Cancellation>()
  #onEmpty: (() => void) | undefined

  get size(): number {
    return this.#open.size
  }

  add(cancellation: Cancellation): void {
    this.#open.add(cancellation)
  }

  delete(cancellation: Cancellation): void {
    this.#open.delete(cancellation)
    if (this.#open.size === 0) this.#onEmpty?.()
  }

  /** Resolves when no answer is running. */
  ended(): Promise<void> {
    if (this.#open.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#onEmpty = resolve
    })
  }

  cancelAll(because: string): void {
    for (const cancellation of this.#open) cancellation.cancel(because)
  }
}
