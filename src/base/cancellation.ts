/**
 * A small cancellation token of a request: an `AbortController` costs a kilobyte and nine microseconds, and every
 * request would need several. `AbortSignal` appears only at I/O edges that demand it.
 *
 * A token is cancelled once; a listener added afterwards is called at once.
 */
export class Cancellation {
  #because: string | undefined
  #listeners: Array<((because: string) => void) | undefined> | undefined

  get isCancelled(): boolean {
    return this.#because !== undefined
  }

  /** The reason, once cancelled. */
  get because(): string | undefined {
    return this.#because
  }

  /** Calls every listener, even if one of them throws; the first error is then thrown on. */
  cancel(because: string): void {
    if (this.#because !== undefined) return
    this.#because = because
    const listeners = this.#listeners ?? []
    const errors: unknown[] = []
    for (let i = 0; i < listeners.length; i++) {
      try {
        listeners[i]?.(because)
      } catch (error) {
        errors.push(error)
      }
    }
    this.#listeners = undefined
    if (errors.length > 0) throw errors[0]
  }

  /** Calls `listener` on cancellation, or at once if it has happened. The returned function removes the listener. */
  onCancel(listener: (because: string) => void): () => void {
    if (this.#because !== undefined) {
      listener(this.#because)
      return () => {}
    }
    this.#listeners ??= []
    this.#listeners.push(listener)
    return () => this.#forget(listener)
  }

  #forget(listener: (because: string) => void): void {
    const listeners = this.#listeners
    const index = listeners?.indexOf(listener) ?? -1
    if (listeners === undefined || index < 0) return
    // While listeners are being called, their places must not shift.
    if (this.isCancelled) listeners[index] = undefined
    else listeners.splice(index, 1)
  }
}
