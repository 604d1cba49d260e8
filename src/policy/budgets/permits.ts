import type { Instant } from '../../base/clock.ts'

/**
 * How many requests of a scope may run at once here? All of its limit where this process has it alone; a part where several
 * gateways share it (`policy/sharing/leased-permits.ts`). The scope's budget counts what runs; this only says how many may.
 */
export interface Permits {
  /** Of all gateways together. */
  readonly limit: number
  allowed(now: Instant): number
  /** The number that runs here has changed. */
  hold(now: Instant, held: number): void
  retune(now: Instant, limit: number): void
  /** A request has no place here: true when the store of shared limits may have one, and is asked with the next call. */
  askFor(now: Instant): boolean
  readonly isAsking: boolean
}

/** `name` tells the limit from all others, at every gateway alike. */
export type MakePermits = (now: Instant, name: string, limit: number) => Permits

export const makeOwnPermits: MakePermits = (_now, _name, limit) => new OwnPermits(limit)

class OwnPermits implements Permits {
  limit: number
  readonly isAsking = false

  constructor(limit: number) {
    this.limit = limit
  }

  allowed(): number {
    return this.limit
  }

  hold(): void {}

  retune(_now: Instant, limit: number): void {
    this.limit = limit
  }

  askFor(): boolean {
    return false
  }
}
