import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import { Ewma } from '../../base/ewma.ts'
import type { Rung } from '../../domain/plan.ts'
import type { RungTerms } from '../../domain/rung.ts'
import type { Tenant } from '../../domain/tenant.ts'
import { givesUpPassagesOnly } from './rungs.ts'

/**
 * How much should we give up right now, and for whom?
 *
 * Each (tenant, pool) dwells on a rung, driven by that tenant's own pressure: whoever presses is degraded, not those
 * beside him. The dwelling rung is where a request's walk through the rungs begins; a single request may go deeper on
 * its own, which changes nothing here. Only a change of the dwelling rung is a rung change.
 *
 * Pressure is smoothed over a second. It deepens by one rung when it is at or above the next rung's entry, and relaxes
 * by one when it is at or below the present rung's exit, which lies well below (hysteresis), and when besides the
 * demand in full would be carried (`demand.ts`): a queue that is short only because answers are cut does not count.
 * Between two changes it stays put for a minimum dwell, longer on the way back than on the way down. A tenant that
 * goes silent counts as without pressure. So an oscillation that is faster than the dwell, or smaller than the gap,
 * moves nothing.
 *
 * A rung that would give up nothing is no step: who has asked for no passages goes past `trim-retrieval`, both ways.
 * A tenant whose contract says `reject` always dwells on `full`. Changes are returned as values, for the journal.
 * Memory: only those under some pressure are kept, up to a bound; everybody else is on `full` by not being here.
 * It does not decide on requests (admission does) and does not look at the platform (`offline-shedding.ts` does).
 *
 * Example: entries 0.7 and 0.8, exits 0.4 and 0.5. Pressure 0.9 from t = 0: the first rung at 1 s, the second at 2 s.
 * It then swings between 0.45 and 0.75: nothing happens. It falls to 0.1: the first rung within 2 s, full a second later.
 */
export const LADDER_DEFAULTS = {
  /** Pressure at which rung 1, 2, … is entered; rungs beyond the list take the last. Refusals begin at 1. */
  enterAt: [0.7, 0.8, 0.9, 1] as readonly number[],
  /** A rung is left this far below its entry: more than the half that trimming usually saves at rung 1. */
  hysteresis: 0.3,
  /** Least time on a rung before going deeper: a few answers must have felt the last change. */
  deepenDwellUs: 1_000_000,
  /** Least time before going back: five rungs in five seconds, so that recovery stays inside ten. */
  relaxDwellUs: 1_000_000,
  /** Memory of the smoothed pressure. */
  memoryUs: 1_000_000,
  /** No sample for so long counts as pressure 0. */
  silenceUs: 1_000_000,
  /** Below this pressure a tenant on `full` need not be remembered. */
  rememberFrom: 0.3,
  /** (tenant, pool) pairs remembered at most; about 300 bytes each. */
  statesMax: 16_384,
}

export type LadderOptions = typeof LADDER_DEFAULTS

export interface RungChange {
  readonly at: Instant
  readonly tenantId: string
  readonly poolId: string
  readonly from: Rung
  readonly to: Rung
  readonly pressure: number
  readonly because: string
}

export interface PressureSample {
  readonly tenant: Tenant
  readonly poolId: string
  readonly pressure: number
  /** Demand in full ÷ fair share; 0 when nobody measures it. */
  readonly demand: number
  /** Whether the request asked for passages. */
  readonly hasPassages?: boolean
}

interface Dwelling {
  readonly tenantId: string
  readonly poolId: string
  readonly pressure: Ewma
  depth: number
  changedAt: Instant
  sampledAt: Instant
  demand: number
  /** Whether it has asked for passages since it is remembered. */
  hasPassages: boolean
}

export class Ladder {
  readonly #rungs: readonly RungTerms[]
  readonly #options: LadderOptions
  readonly #dwellings = new Map<string, Dwelling>()

  constructor(rungs: readonly RungTerms[], options: Partial<LadderOptions> = {}) {
    this.#rungs = rungs
    this.#options = { ...LADDER_DEFAULTS, ...options }
    assert(this.#options.enterAt.length > 0, 'the first rung has an entry')
  }

  get size(): number {
    return this.#dwellings.size
  }

  depthOf(tenant: Tenant, poolId: string): number {
    // On an ordinary day nobody is remembered, and nobody's name has to be put together.
    if (tenant.contract === 'reject' || this.#dwellings.size === 0) return 0
    return this.#dwellings.get(nameOf(tenant.id, poolId))?.depth ?? 0
  }

  /** One prediction for one tenant: at each decision on a request, and on each tick for those with a backlog. */
  observe(now: Instant, sample: PressureSample): RungChange | undefined {
    const { tenant, poolId } = sample
    if (tenant.contract === 'reject') return this.#leave(now, nameOf(tenant.id, poolId))
    const dwelling = this.#dwellingOf(now, sample)
    if (dwelling === undefined) return undefined
    dwelling.pressure.observe(now, sample.pressure)
    dwelling.sampledAt = now
    dwelling.demand = sample.demand
    if (sample.hasPassages === true) dwelling.hasPassages = true
    return this.#step(now, dwelling)
  }

  /** Who went silent relaxes, and who has nothing to remember is forgotten. */
  tick(now: Instant): readonly RungChange[] {
    const changes: RungChange[] = []
    for (const [name, dwelling] of this.#dwellings) {
      if (now - dwelling.sampledAt >= this.#options.silenceUs) {
        dwelling.pressure.observe(now, 0)
        dwelling.demand = 0
        const change = this.#step(now, dwelling)
        if (change !== undefined) changes.push(change)
      }
      if (dwelling.depth === 0 && pressureIn(dwelling) < this.#options.rememberFrom) this.#dwellings.delete(name)
    }
    return changes
  }

  /** The pool is gone: who dwelt there dwells nowhere. */
  forgetPool(poolId: string): void {
    for (const [name, dwelling] of this.#dwellings) if (dwelling.poolId === poolId) this.#dwellings.delete(name)
  }

  #step(now: Instant, dwelling: Dwelling): RungChange | undefined {
    const { deepenDwellUs, relaxDwellUs, hysteresis } = this.#options
    const pressure = pressureIn(dwelling)
    const dwelledUs = now - dwelling.changedAt
    const deeper = this.#beside(dwelling, 1)
    if (deeper < this.#rungs.length && pressure >= this.#entryOf(deeper)) {
      if (dwelledUs < deepenDwellUs) return undefined
      return this.#move(now, dwelling, { depth: deeper, because: 'pressure is above the next rung’s entry' })
    }
    if (dwelling.depth === 0 || pressure > this.#entryOf(dwelling.depth) - hysteresis) return undefined
    if (dwelledUs < relaxDwellUs || dwelling.demand > 1) return undefined
    const depth = this.#beside(dwelling, -1)
    return this.#move(now, dwelling, { depth, because: 'pressure is below this rung’s exit' })
  }

  /** The next rung that way which gives something up, or `full`. */
  #beside(dwelling: Dwelling, step: 1 | -1): number {
    let depth = dwelling.depth + step
    while (depth > 0 && !dwelling.hasPassages && givesUpPassagesOnly(this.#rungs, depth)) depth += step
    return depth
  }

  #move(now: Instant, dwelling: Dwelling, to: { readonly depth: number; readonly because: string }): RungChange {
    const from = this.#rungAt(dwelling.depth)
    dwelling.depth = to.depth
    dwelling.changedAt = now
    const { tenantId, poolId } = dwelling
    const pressure = pressureIn(dwelling)
    return { at: now, tenantId, poolId, from, to: this.#rungAt(to.depth), pressure, because: to.because }
  }

  /** The contract was changed to `reject` while the tenant dwelt on a rung. */
  #leave(now: Instant, name: string): RungChange | undefined {
    const dwelling = this.#dwellings.get(name)
    if (dwelling === undefined) return undefined
    this.#dwellings.delete(name)
    if (dwelling.depth === 0) return undefined
    return this.#move(now, dwelling, { depth: 0, because: 'the tenant’s contract refuses degradation' })
  }

  #dwellingOf(now: Instant, sample: PressureSample): Dwelling | undefined {
    if (this.#dwellings.size === 0 && sample.pressure < this.#options.rememberFrom) return undefined
    const name = nameOf(sample.tenant.id, sample.poolId)
    const known = this.#dwellings.get(name)
    if (known !== undefined || sample.pressure < this.#options.rememberFrom) return known
    if (this.#dwellings.size >= this.#options.statesMax && !this.#makeRoom()) return undefined
    const dwelling: Dwelling = {
      tenantId: sample.tenant.id,
      poolId: sample.poolId,
      pressure: new Ewma(this.#options.memoryUs),
      depth: 0,
      changedAt: now,
      sampledAt: now,
      demand: 0,
      hasPassages: false,
    }
    this.#dwellings.set(name, dwelling)
    return dwelling
  }

  /** Full: the oldest that is on `full` goes. When all are degraded, newcomers stay on `full` until some recover. */
  #makeRoom(): boolean {
    for (const [name, dwelling] of this.#dwellings) {
      if (dwelling.depth > 0) continue
      this.#dwellings.delete(name)
      return true
    }
    return false
  }

  #entryOf(depth: number): number {
    const { enterAt } = this.#options
    return enterAt[Math.min(depth, enterAt.length) - 1] as number
  }

  #rungAt(depth: number): Rung {
    const rung = this.#rungs[depth] as RungTerms
    return { name: rung.name, depth: rung.depth }
  }
}

const nameOf = (tenantId: string, poolId: string): string => `${poolId}\u0000${tenantId}`

const pressureIn = (dwelling: Dwelling): number => dwelling.pressure.view() ?? 0
