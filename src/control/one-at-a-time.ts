/**
 * A queue for changes of the settings: each change is checked against what the change before it left. Reloads, edits of
 * the registry and revisions of other gateways all wait here.
 */
export class OneAtATime {
  #waiting = 0
  #last: Promise<unknown> = Promise.resolve()

  /** Changes that run or wait. */
  get count(): number {
    return this.#waiting
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting++
    const mine = this.#last.catch(() => {}).then(work)
    this.#last = mine
    try {
      return await mine
    } finally {
      this.#waiting--
    }
  }

  /** Resolves when every change that was asked for until now has ended, well or badly. */
  async idle(): Promise<void> {
    await this.#last.catch(() => {})
  }
}
