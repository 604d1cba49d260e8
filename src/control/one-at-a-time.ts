/**
 * One change of the settings after the other: each is checked against what the one before it left. A reload, an edit of
 * the registry and what another gateway has written all wait here.
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

  /** Resolves when what was asked for until now has ended, well or badly. */
  async idle(): Promise<void> {
    await this.#last.catch(() => {})
  }
}
