/**
 * Tenants with the same promise at one pool: how many of them are at work, and who was seen last? `active-tenants.ts` says
 * what for.
 *
 * Deliberately not: no list of its tenants.
 */
export interface Promised {
  readonly group: PromiseGroup | undefined
  readonly foregroundCount: number
}

export class PromiseGroup {
  readonly promiseUs: number
  /** Tenants of which something waits or runs. */
  atWorkCount = 0
  #lastAt = Number.NEGATIVE_INFINITY
  #lastBy: Promised | undefined
  /** The last time that another tenant than `#lastBy` was seen. */
  #beforeAt = Number.NEGATIVE_INFINITY

  constructor(promiseUs: number) {
    this.promiseUs = promiseUs
  }

  see(now: number, backlog: Promised): void {
    if (backlog !== this.#lastBy) {
      this.#beforeAt = this.#lastAt
      this.#lastBy = backlog
    }
    this.#lastAt = now
  }

  hasActiveBeside(now: number, own: Promised): boolean {
    const isOwnAtWork = own.group === this && own.foregroundCount > 0
    if (this.atWorkCount - (isOwnAtWork ? 1 : 0) > 0) return true
    const seenAt = this.#lastBy === own ? this.#beforeAt : this.#lastAt
    return now - seenAt <= this.promiseUs
  }
}
