/**
 * Has somebody called this off? A request's own small cancellation token: an `AbortController` costs a kilobyte and
 * nine microseconds, and every request would need several. `AbortSignal` appears only at the edges that demand it.
 *
 * Cancelling is once and for all; a listener added afterwards is called at once.
 */
export class Cancellation {
  #because: string | undefined
  #listeners: Array<(because: string) => void> | undefined

  get isCancelled(): boolean {
    return this.#because !== undefined
  }

  /** Why, once cancelled. */
  get because(): string | undefined {
    return this.#because
  }

  cancel(because: string): void {
    if (this.#because !== undefined) return
    this.#because = because
    const listeners = this.#listeners
    this.#listeners = undefined
    if (listeners !== undefined) for (const listener of listeners) listener(because)
  }

  /** Calls `listener` when cancelled, or at once if that has happened. The returned function forgets it. */
  onCancel(listener: (because: string) => void): () => void {
    if (this.#because !== undefined) {
      listener(this.#because)
      return () => {}
    }
    this.#listeners ??= []
    this.#listeners.push(listener)
    return () => {
      const index = this.#listeners?.indexOf(listener) ?? -1
      if (index >= 0) this.#listeners?.splice(index, 1)
    }
  }
}
