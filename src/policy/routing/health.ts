import { assert } from '../../base/assert.ts'

/**
 * Which replicas may be used, and how much?
 *
 * A machine beside the dispatcher: it hears what probes report and how attempts ended, and says, as effects, whether a
 * replica takes anything (`isReady`) and how many at once (`allowance`). Outlier ejection as in Envoy, half-open trials
 * as in Nygard's circuit breaker, slow start as in TCP:
 *
 *   away ──ready──▶ warming ──doublings──▶ steady ──failures──▶ ejected (a lease) ──expires──▶ trial (one at a time)
 *     ▲                ▲                                            ▲                            │        │
 *     └── not ready ───┴───────────── success ──────────────────────┼────────────────────────────┘        │
 *                                                                   └───────────── failure: twice as long ┘
 *   draining: nothing more goes there, whatever else is true; what runs, ends.
 *
 * An ejection is a lease: it always ends by itself, and the next attempt finds out. Never more than `ejectedRatioMax`
 * of a pool: when most of it fails the fault is not the replica's, and shutting it would only help the outage. The only
 * replica of a pool is ejected where its failures are proven: lost attempts in a row of tenants of two orgs, or a question
 * of ours that it does not answer either. Its clients are then refused at once, in place of one lost attempt after another.
 *
 * A stalled replica (`progress.ts`) is away until it has made progress, however healthy its probe says it is.
 *
 * Deliberately not: what a refusal means (the backend says whether the replica failed), and how slow is too slow (the
 * placer's slowness sends less to a slow one). An attempt that began before the present state says nothing about it.
 *
 * Laws: L2 closing a replica takes no lease away. Example: five failures in a row eject for 10 s; then one ticket is
 * tried; it fails: 20 s; the next succeeds: 16 at once, after 1 s 32, … after 5 s as many as its limit allows.
 */
export const HEALTH_DEFAULTS = {
  /** In a row: with one in a hundred failing by chance, five in a row come once in 10^10 attempts. */
  failuresInRowMax: 5,
  /** Of the recent attempts, once there are `attemptsMin`: for a replica that fails every other time. */
  failedRatioMax: 0.5,
  attemptsMin: 20,
  /** Counts are halved this often: what happened minutes ago says little. */
  halveUs: 30_000_000,
  /** A process restarts in about ten seconds; doubled with every failed trial. */
  ejectUs: 10_000_000,
  ejectUsMax: 300_000_000,
  /** Of a pool's replicas, rounded down: a pool of one loses it only where its failures are proven. */
  ejectedRatioMax: 0.5,
  /**
   * A new replica compiles kernels and fills caches with its first answers. Four seconds to a full batch: after a
   * blackout the whole fleet warms at once, and every second of it is capacity that is not there.
   */
  warmFrom: 16,
  warmStepUs: 1_000_000,
  warmDoublings: 5,
}

export type HealthOptions = typeof HEALTH_DEFAULTS

export type HealthKind = 'away' | 'warming' | 'steady' | 'ejected' | 'trial' | 'draining'

/** What the dispatcher should do about a replica. */
export interface HealthChange {
  readonly replicaId: string
  readonly kind: HealthKind
  readonly isReady: boolean
  /** How many at once; Infinity leaves it to the limit. */
  readonly allowance: number
  readonly because: string
}

export interface HealthAttempt {
  readonly grantedAt: number
  /** The replica refused or was lost; a cancelled attempt or a fault of the request's is not told at all. */
  readonly isFailed: boolean
  /** It was lost, not refused: an engine that refuses is there. */
  readonly isLost?: boolean
  /** Whose attempt it was. */
  readonly orgId?: string
}

interface State {
  readonly replicaId: string
  readonly poolId: string
  kind: HealthKind
  isFounding: boolean
  since: number
  /** When the present state ends by itself; Infinity when it does not. */
  until: number
  isProbedReady: boolean
  isDraining: boolean
  /** Why it makes no progress; undefined when it does. */
  stalledBecause: string | undefined
  lostInRow: number
  /** Of the attempts lost in a row: the org of the first, and whether another org had one. */
  lostOrgId: string | undefined
  isLostByTwo: boolean
  failuresInRow: number
  failed: number
  attempts: number
  halvedAt: number
  ejections: number
  doublings: number
  /** Why the engine denies us, until it answers again. */
  deniedBecause: string | undefined
}

export class Health {
  readonly #options: HealthOptions
  readonly #states = new Map<string, State>()

  constructor(options: Partial<HealthOptions> = {}) {
    this.#options = { ...HEALTH_DEFAULTS, ...options }
  }

  /**
   * Known from here on; takes nothing until a probe says that it is ready. One that was there before we were
   * (`isFounding`) has long been warm: a gateway that restarts must not slow its whole fleet down.
   */
  add(now: number, replicaId: string, poolId: string, isFounding = false): readonly HealthChange[] {
    assert(!this.#states.has(replicaId), 'a replica joins once')
    const state: State = {
      replicaId,
      poolId,
      kind: 'away',
      isFounding,
      since: now,
      until: Number.POSITIVE_INFINITY,
      isProbedReady: false,
      isDraining: false,
      stalledBecause: undefined,
      lostInRow: 0,
      lostOrgId: undefined,
      isLostByTwo: false,
      failuresInRow: 0,
      failed: 0,
      attempts: 0,
      halvedAt: now,
      ejections: 0,
      doublings: 0,
      deniedBecause: undefined,
    }
    this.#states.set(replicaId, state)
    return [changeOf(state, 'it has not been probed yet', this.#options)]
  }

  remove(replicaId: string): void {
    this.#states.delete(replicaId)
  }

  kindOf(replicaId: string): HealthKind | undefined {
    return this.#states.get(replicaId)?.kind
  }

  /** Whether something may go there now. */
  isUsable(replicaId: string): boolean {
    const kind = this.kindOf(replicaId)
    return kind === 'steady' || kind === 'warming' || kind === 'trial'
  }

  /** What a probe said. A replica that was away comes back slowly; an ejected one stays ejected until its time is up. */
  report(now: number, replicaId: string, isReady: boolean): readonly HealthChange[] {
    const state = this.#states.get(replicaId)
    if (state === undefined || state.isProbedReady === isReady) return NO_CHANGES
    state.isProbedReady = isReady
    state.stalledBecause = undefined
    if (state.isDraining) return NO_CHANGES
    if (!isReady) return this.#enter(now, state, 'away', 'its probe says that it is not ready')
    state.failuresInRow = 0
    if (state.isFounding) {
      state.isFounding = false
      return this.#enter(now, state, 'steady', 'it was ready when we started')
    }
    return this.#enter(now, state, 'warming', 'it is ready again: slow start')
  }

  observe(now: number, replicaId: string, attempt: HealthAttempt): readonly HealthChange[] {
    const state = this.#states.get(replicaId)
    if (state === undefined || attempt.grantedAt < state.since) return NO_CHANGES
    if (state.kind === 'trial') return this.#endTrial(now, state, attempt.isFailed)
    if (state.kind !== 'steady' && state.kind !== 'warming') return NO_CHANGES
    this.#count(now, state, attempt)
    const because = this.#whyEject(state)
    if (because === undefined) return NO_CHANGES
    const isProven = this.isInDoubt(replicaId) && state.isLostByTwo
    return isProven || this.#mayEject(state.poolId) ? this.#eject(now, state, because) : NO_CHANGES
  }

  /** Whether it is the only one of its pool and lost as many attempts in a row as would eject another. */
  isInDoubt(replicaId: string): boolean {
    const state = this.#states.get(replicaId)
    if (state === undefined || state.lostInRow < this.#options.failuresInRowMax) return false
    return this.#isOnly(state) && (state.kind === 'steady' || state.kind === 'warming')
  }

  /** It is in doubt, and did not answer a question of ours either. */
  confirm(now: number, replicaId: string): readonly HealthChange[] {
    const state = this.#states.get(replicaId)
    if (state === undefined || !this.isInDoubt(replicaId)) return NO_CHANGES
    return this.#eject(now, state, 'it failed several times in a row, and does not answer our question')
  }

  /** It has work and makes no progress, or sleeps. */
  stall(now: number, replicaId: string, because: string): readonly HealthChange[] {
    const state = this.#states.get(replicaId)
    if (state === undefined || !state.isProbedReady || state.stalledBecause !== undefined) return NO_CHANGES
    state.stalledBecause = because
    return state.isDraining ? NO_CHANGES : this.#enter(now, state, 'away', because)
  }

  /** A stalled replica has made progress. */
  resume(now: number, replicaId: string): readonly HealthChange[] {
    const state = this.#states.get(replicaId)
    if (state?.stalledBecause === undefined) return NO_CHANGES
    state.stalledBecause = undefined
    return state.isDraining ? NO_CHANGES : this.#enter(now, state, 'warming', 'it makes progress again: slow start')
  }

  /** The engine denies us (a reason) or answers (undefined). True when that is news: the operator is told once. */
  noteDenial(replicaId: string, because: string | undefined): boolean {
    const state = this.#states.get(replicaId)
    if (state === undefined || state.deniedBecause === because) return false
    state.deniedBecause = because
    return true
  }

  /** Why the replica's engine denies us: a wrong key or address, a used-up quota. Undefined when it does not. */
  deniedBecause(replicaId: string): string | undefined {
    return this.#states.get(replicaId)?.deniedBecause
  }

  /** The reasons of all replicas that are denied. */
  *denials(): Iterable<string> {
    for (const { deniedBecause } of this.#states.values()) if (deniedBecause !== undefined) yield deniedBecause
  }

  /** Nothing more goes there until `undrain`. */
  drain(now: number, replicaId: string): readonly HealthChange[] {
    const state = this.#states.get(replicaId)
    if (state === undefined || state.isDraining) return NO_CHANGES
    state.isDraining = true
    return this.#enter(now, state, 'draining', 'it is being drained')
  }

  undrain(now: number, replicaId: string): readonly HealthChange[] {
    const state = this.#states.get(replicaId)
    if (state === undefined || !state.isDraining) return NO_CHANGES
    state.isDraining = false
    if (!state.isProbedReady) return this.#enter(now, state, 'away', 'its probe says that it is not ready')
    if (state.stalledBecause !== undefined) return this.#enter(now, state, 'away', state.stalledBecause)
    return this.#enter(now, state, 'warming', 'it is no longer drained: slow start')
  }

  nextWakeupAt(): number | undefined {
    let at = Number.POSITIVE_INFINITY
    for (const state of this.#states.values()) if (state.until < at) at = state.until
    return at === Number.POSITIVE_INFINITY ? undefined : at
  }

  onWakeup(now: number): readonly HealthChange[] {
    const changes: HealthChange[] = []
    for (const state of this.#states.values()) if (state.until <= now) changes.push(...this.#moveOn(now, state))
    return changes
  }

  assertInvariants(): void {
    for (const state of this.#states.values()) {
      assert(state.kind !== 'ejected' || Number.isFinite(state.until), 'every ejection is a lease that ends')
      assert(!state.isDraining || state.kind === 'draining', 'what is drained takes nothing')
      const isStalled = state.stalledBecause !== undefined
      assert(
        (state.isProbedReady && !isStalled) || state.kind === 'away' || state.kind === 'draining',
        'what is not ready, or stalled, is away',
      )
    }
  }

  /** A time ran out: an ejection becomes a trial, a warming replica gets twice as much. */
  #moveOn(now: number, state: State): readonly HealthChange[] {
    if (state.kind === 'ejected') return this.#enter(now, state, 'trial', 'its ejection is over: one at a time')
    state.doublings++
    if (state.doublings >= this.#options.warmDoublings) return this.#enter(now, state, 'steady', 'it is warm')
    state.until = now + this.#options.warmStepUs
    return [changeOf(state, 'slow start: twice as many', this.#options)]
  }

  #endTrial(now: number, state: State, isFailed: boolean): readonly HealthChange[] {
    if (isFailed) return this.#eject(now, state, 'its trial failed')
    state.ejections = 0
    return this.#enter(now, state, 'warming', 'its trial succeeded: slow start')
  }

  #eject(now: number, state: State, because: string): readonly HealthChange[] {
    const { ejectUs, ejectUsMax } = this.#options
    const changes = this.#enter(now, state, 'ejected', because)
    // While its only replica is out a pool serves nobody: trials of it stay frequent.
    const doublings = this.#isOnly(state) ? 0 : Math.min(20, state.ejections)
    state.until = now + Math.min(ejectUsMax, ejectUs * 2 ** doublings)
    state.ejections++
    return changes
  }

  #enter(now: number, state: State, kind: HealthKind, because: string): readonly HealthChange[] {
    state.kind = kind
    state.since = now
    state.until = kind === 'warming' ? now + this.#options.warmStepUs : Number.POSITIVE_INFINITY
    state.doublings = 0
    state.failuresInRow = 0
    forgetLost(state)
    if (kind !== 'steady') {
      state.failed = 0
      state.attempts = 0
    }
    return [changeOf(state, because, this.#options)]
  }

  #count(now: number, state: State, { isFailed, isLost = false, orgId }: HealthAttempt): void {
    while (now - state.halvedAt >= this.#options.halveUs && state.attempts > 0.5) {
      state.failed /= 2
      state.attempts /= 2
      state.halvedAt += this.#options.halveUs
    }
    if (state.attempts <= 0.5) state.halvedAt = now
    state.attempts++
    if (isFailed) state.failed++
    state.failuresInRow = isFailed ? state.failuresInRow + 1 : 0
    if (!isLost) {
      forgetLost(state)
      return
    }
    state.lostInRow++
    state.lostOrgId ??= orgId
    if (state.lostOrgId !== orgId) state.isLostByTwo = true
  }

  #whyEject(state: State): string | undefined {
    const { failuresInRowMax, failedRatioMax, attemptsMin } = this.#options
    if (state.failuresInRow >= failuresInRowMax) return 'it failed several times in a row'
    if (state.attempts >= attemptsMin && state.failed / state.attempts >= failedRatioMax)
      return 'it fails too large a share of its attempts'
    return undefined
  }

  /** No other replica of its pool is there, proven or not. */
  #isOnly(state: State): boolean {
    for (const other of this.#states.values()) {
      if (other === state || other.poolId !== state.poolId) continue
      if (other.kind !== 'away' && other.kind !== 'draining') return false
    }
    return true
  }

  /** Replicas on trial count as ejected: they are not proven yet. */
  #mayEject(poolId: string): boolean {
    let total = 0
    let out = 0
    for (const state of this.#states.values()) {
      if (state.poolId !== poolId || state.kind === 'away' || state.kind === 'draining') continue
      total++
      if (state.kind === 'ejected' || state.kind === 'trial') out++
    }
    return out + 1 <= Math.floor(total * this.#options.ejectedRatioMax)
  }
}

function forgetLost(state: State): void {
  state.lostInRow = 0
  state.lostOrgId = undefined
  state.isLostByTwo = false
}

const NO_CHANGES: readonly HealthChange[] = Object.freeze([])

function changeOf(state: State, because: string, options: HealthOptions): HealthChange {
  const { replicaId, kind } = state
  const isReady = kind === 'warming' || kind === 'steady' || kind === 'trial'
  return { replicaId, kind, isReady, allowance: allowanceOf(state, options), because }
}

function allowanceOf(state: State, options: HealthOptions): number {
  if (state.kind === 'steady') return Number.POSITIVE_INFINITY
  if (state.kind === 'warming') return options.warmFrom * 2 ** state.doublings
  return state.kind === 'trial' ? 1 : 0
}
