import type { Clock } from '../base/clock.ts'
import type { Fence, LeaderStore, LeaseAnswer, LeaseAsk } from '../domain/leader.ts'

/** Leaders in memory: for simulations and tests, and as the plain twin of the SQL ones. */
export class MemoryLeaderStore implements LeaderStore {
  readonly #clock: Pick<Clock, 'now'>
  readonly #rows = new Map<string, { readonly holder: string; readonly fence: number; expiresAt: number }>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  acquire({ name, holder, termUs }: LeaseAsk): Promise<LeaseAnswer> {
    const now = this.#clock.now()
    const row = this.#rows.get(name)
    if (row !== undefined && row.expiresAt > now && row.holder !== holder) return this.#other(name)
    const fence = (row?.fence ?? 0) + 1
    this.#rows.set(name, { holder, fence, expiresAt: now + termUs })
    return Promise.resolve({ kind: 'held', fence })
  }

  renew({ name, holder, termUs, fence }: LeaseAsk & { readonly fence: number }): Promise<LeaseAnswer> {
    const row = this.#rows.get(name)
    if (row === undefined || !this.isHeld({ name, holder, number: fence })) return this.#other(name)
    row.expiresAt = this.#clock.now() + termUs
    return Promise.resolve({ kind: 'held', fence })
  }

  release(fence: Fence): Promise<void> {
    const row = this.#rows.get(fence.name)
    if (row !== undefined && this.isHeld(fence)) row.expiresAt = this.#clock.now()
    return Promise.resolve()
  }

  isHeld({ name, holder, number }: Fence): boolean {
    const row = this.#rows.get(name)
    return row !== undefined && row.holder === holder && row.fence === number && row.expiresAt > this.#clock.now()
  }

  #other(name: string): Promise<LeaseAnswer> {
    const { holder = '', expiresAt = 0 } = this.#rows.get(name) ?? {}
    return Promise.resolve({ kind: 'other', holder, leftUs: expiresAt - this.#clock.now() })
  }
}
