import type { Instant } from '../../base/clock.ts'
import { Ewma } from '../../base/ewma.ts'

/**
 * Is a pool so full that nobody's offline work should be taken?
 *
 * The only thing that platform-wide pressure may do: it never degrades a tenant for what others do, but work that
 * nobody waits for can come back later. One switch per pool, with the ladder's smoothing, hysteresis and dwell.
 *
 * Example: shed from 1, take again from 0.6: pressure 1.2 for a second switches it on; 0.8 leaves it on; 0.5 for two
 * seconds switches it off.
 */
export const OFFLINE_SHEDDING_DEFAULTS = {
  shedFrom: 1,
  takeBelow: 0.6,
  /** Least time in a state before shedding, and before taking again. */
  shedDwellUs: 1_000_000,
  takeDwellUs: 2_000_000,
  memoryUs: 1_000_000,
}

export type OfflineSheddingOptions = typeof OFFLINE_SHEDDING_DEFAULTS

export interface SheddingChange {
  readonly at: Instant
  readonly poolId: string
  readonly isShed: boolean
  readonly pressure: number
  readonly because: string
}

export class OfflineShedding {
  readonly #poolId: string
  readonly #options: OfflineSheddingOptions
  readonly #pressure: Ewma
  #isShed = false
  #changedAt: Instant

  constructor(now: Instant, poolId: string, options: Partial<OfflineSheddingOptions> = {}) {
    this.#poolId = poolId
    this.#options = { ...OFFLINE_SHEDDING_DEFAULTS, ...options }
    this.#pressure = new Ewma(this.#options.memoryUs)
    this.#changedAt = now
  }

  get isShed(): boolean {
    return this.#isShed
  }

  /** On each tick. */
  observe(now: Instant, pressure: number): SheddingChange | undefined {
    this.#pressure.observe(now, pressure)
    const smoothed = this.#pressure.view() ?? 0
    const { shedFrom, takeBelow, shedDwellUs, takeDwellUs } = this.#options
    const isTurning = this.#isShed ? smoothed <= takeBelow : smoothed >= shedFrom
    if (!isTurning || now - this.#changedAt < (this.#isShed ? takeDwellUs : shedDwellUs)) return undefined
    this.#isShed = !this.#isShed
    this.#changedAt = now
    const because = this.#isShed
      ? 'the pool’s backlog is over what it can do in time'
      : 'the pool’s backlog is short again'
    return { at: now, poolId: this.#poolId, isShed: this.#isShed, pressure: smoothed, because }
  }
}
