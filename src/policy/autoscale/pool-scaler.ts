import type { Instant } from '../../base/clock.ts'
import type { AutoscaleTerms, PoolSeen } from '../../domain/autoscale.ts'
import { HpaRule } from './hpa-rules.ts'
import { PredictRule } from './predict-rule.ts'
import { withinBounds } from './recommend.ts'
import { type ReplicaLook, ReplicaStarts } from './replica-starts.ts'
import type { ScalingRule } from './scaling-rule.ts'

/**
 * How many replicas should one pool have, and how does that follow from what is seen of it?
 *
 * Looks once a tick. The rule says a number; the operator's bounds, the pool's idleness and what is on its way make it a
 * wanted number, which the leader carries out (`lifecycle/autoscale`) or somebody outside reads. Nothing is ordered twice:
 * what was ordered counts as there.
 *
 *   asleep (0) ──anything is asked──▶ at least one ──rule──▶ … ──nothing is asked for idleToZero──▶ asleep
 *
 * With `minWarm` above zero a pool never sleeps. Deliberately not: it orders nothing and names no replica.
 * Example: minWarm 0, idleToZero 600 s: a request at 0 s wants one; the last one at 40 s: zero again at 640 s.
 */
export interface ScalerLook extends Omit<PoolSeen, 'pendingCount' | 'coldStartUs'> {
  readonly replicas: readonly ReplicaLook[]
}

export interface ScalerView {
  readonly desired: number
  /** What is there or ordered. */
  readonly current: number
  readonly readyCount: number
  readonly pendingCount: number
  readonly demandPerUs: number
  /** Seconds that the ready replicas need for what waits; of a pool without one, that one replica would need. */
  readonly backlogUs: number
  readonly queuedCount: number
  /** Something is asked of the pool, or was within `idleToZero`. */
  readonly isActive: boolean
  readonly coldStartUs: number
}

export class PoolScaler {
  readonly terms: AutoscaleTerms
  readonly starts: ReplicaStarts
  readonly #rule: ScalingRule
  /** What the writer has ordered; undefined before it was known, and where another one orders. */
  #ordered: number | undefined
  #askedAt: Instant
  /** Orders come to nothing: nobody should wait for one. */
  isFailing = false
  #view: ScalerView

  constructor(terms: AutoscaleTerms, now: Instant) {
    this.terms = terms
    this.starts = new ReplicaStarts(terms.coldStartUs)
    this.#rule = ruleOf(terms)
    this.#askedAt = now
    this.#view = { ...NOTHING_SEEN, desired: terms.minWarm, coldStartUs: terms.coldStartUs }
  }

  get view(): ScalerView {
    return this.#view
  }

  get ordered(): number | undefined {
    return this.#ordered
  }

  /** Another one orders from now on. */
  forgetOrdered(): void {
    this.#ordered = undefined
  }

  /**
   * Until a replica should be there, of a pool that has none and will have one; undefined when none is to be expected:
   * nobody writes the number, orders fail, or they are only journalled.
   */
  wakingUs(now: Instant): number | undefined {
    const { writer, isDryRun, max } = this.terms
    if (writer === 'none' || isDryRun || max === 0 || this.isFailing) return undefined
    return this.starts.nextReadyUs(now)
  }

  /** The writer found, or ordered, so many. */
  setOrdered(now: Instant, count: number): void {
    const before = this.#ordered
    this.#ordered = count
    if (before === undefined) return
    if (count > before) this.starts.ordered(now, count - before)
    else this.starts.calledBack(Math.min(before - count, this.starts.pendingCount(now)))
  }

  look(now: Instant, look: ScalerLook): ScalerView {
    this.starts.look(now, look.replicas)
    const pendingCount = this.starts.pendingCount(now)
    const { coldStartUs } = this.starts
    const current = this.#ordered ?? look.readyCount + pendingCount
    if (look.offeredCost > 0 || look.queuedCount > 0 || look.heldCount > 0) this.#askedAt = now
    const ruled = this.#rule.wanted(now, { ...look, pendingCount, coldStartUs }, current)
    const { queuedCount, readyCount, backlogCost, drainPerReplicaUs } = look
    this.#view = {
      desired: this.#desired(now, ruled),
      current,
      readyCount,
      pendingCount,
      demandPerUs: this.#rule.demandPerUs,
      backlogUs: backlogCost === 0 ? 0 : backlogCost / (drainPerReplicaUs * Math.max(1, readyCount)),
      queuedCount,
      isActive: now - this.#askedAt < this.terms.idleToZeroUs,
      coldStartUs,
    }
    return this.#view
  }

  /** Something is asked of a pool that sleeps: what must be ordered now, without waiting for the next look. */
  wake(now: Instant): number | undefined {
    const { max } = this.terms
    this.#askedAt = now
    if (max === 0 || this.#view.current > 0 || (this.#ordered ?? 0) > 0) return undefined
    const desired = Math.max(1, this.#view.desired)
    this.#view = { ...this.#view, desired, isActive: true }
    return desired
  }

  #desired(now: Instant, ruled: number): number {
    const { minWarm, idleToZeroUs } = this.terms
    const isIdle = now - this.#askedAt >= idleToZeroUs
    const atLeast = minWarm === 0 && isIdle ? 0 : Math.max(1, minWarm)
    return isIdle && minWarm === 0 ? 0 : withinBounds(Math.max(atLeast, ruled), this.terms)
  }
}

const NOTHING_SEEN: Omit<ScalerView, 'desired' | 'coldStartUs'> = {
  current: 0,
  readyCount: 0,
  pendingCount: 0,
  demandPerUs: 0,
  backlogUs: 0,
  queuedCount: 0,
  isActive: true,
}

function ruleOf(terms: AutoscaleTerms): ScalingRule {
  if (terms.rule === 'predict') return new PredictRule(terms)
  return new HpaRule(terms, terms.rule === 'hpa-queue' ? 'queue' : 'work')
}
