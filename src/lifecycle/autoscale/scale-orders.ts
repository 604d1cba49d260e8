import type { Instant } from '../../base/clock.ts'
import type { Fence } from '../../domain/leader.ts'
import { whoLeaves } from '../../policy/autoscale/who-leaves.ts'
import type { Actuator, CellDrains, ScaleAnswer, ScaleOrder } from '../autoscale-ports.ts'
import type { PoolPolicies } from '../fleet/pool-policies.ts'
import type { LeaderRole } from '../ports.ts'
import type { ScalingParts } from './scaling-parts.ts'

/**
 * How does the leader bring one pool to the number that is wanted?
 *
 *   more:  ordered at once; replicas that were being drained stay first
 *   fewer: choose who goes ─▶ drain ─▶ nothing runs there (or DRAIN_US_MAX) ─▶ order, naming them ─▶ gone, or kept after all
 *
 * One call at a time. A call that failed is made again after a pause that doubles, and nothing counts as ordered that was
 * not. A pool whose replicas do not come is ordered again after a while: the order is a number, and harmless twice. What
 * was drained for an order and is still there a minute after it was carried out survived (the other side chose another
 * one), and is used again.
 *
 * Only the gateway that leads orders; one that stops leading tries no further, forgets what it was about and gives back what
 * it drained. The next one begins with the number that the actuator reads. Where it cannot be read, what is ready may be
 * less than what was ordered, so the next leader orders once whatever it wants, even as many as are ready.
 * Bounds: one call, as many drained replicas as the pool has.
 */
export interface OrdersParts {
  readonly platform: ScalingParts
  readonly known: PoolPolicies
  readonly actuator: () => Actuator | undefined
  readonly drains: CellDrains | undefined
}

/** Longest wait for answers at replicas that go: longer than most answers, shorter than a bill. */
const DRAIN_US_MAX = 300_000_000
/** A replica that is still ready this long after its order to go was not chosen. */
const SURVIVED_US = 60_000_000
const PAUSE_US_MIN = 1_000_000
const PAUSE_US_MAX = 60_000_000
/** Replicas that were ordered and did not come are ordered again after so long, or three cold starts. */
const AGAIN_US_MIN = 120_000_000

export class ScaleOrders {
  readonly #parts: OrdersParts
  /** Being drained, since when; and those whose order was carried out. */
  readonly #leaving = new Map<string, Instant>()
  readonly #gone = new Map<string, Instant>()
  #isCalling = false
  /** How many were ordered before this gateway led could not be found out. */
  #isUnsure = false
  #pauseUs = PAUSE_US_MIN
  #notBefore: Instant = Number.NEGATIVE_INFINITY
  #shortSince: Instant | undefined
  /** In a dry run, what was journalled last. */
  #journalled: number | undefined

  constructor(parts: OrdersParts) {
    this.#parts = parts
  }

  /** Whether an order of late failed: then nobody should count on one. */
  get isFailing(): boolean {
    return this.#pauseUs > PAUSE_US_MIN
  }

  step(now: Instant): void {
    const { known, platform } = this.#parts
    const { scaler } = known
    const role = platform.world.leadership.role()
    this.#takeBack(now)
    if (role.kind !== 'leads') {
      this.#standDown()
      return
    }
    if (this.#isCalling || now < this.#notBefore) return
    if (scaler.terms.isDryRun) this.#journalOnly(now)
    else if (scaler.ordered === undefined) void this.#findOut(now)
    else this.#follow(now, role, scaler.ordered, scaler.view.desired)
  }

  #follow(now: Instant, role: LeaderRole, ordered: number, desired: number): void {
    if (desired >= ordered) this.#keepLeaving('more is asked for again')
    if (desired > ordered) void this.#order(now, role, desired, [])
    else if (desired < ordered) this.#shrink(now, role, desired)
    else if (this.#isUnsure) void this.#order(now, role, desired, [])
    else this.#insist(now, role)
  }

  #standDown(): void {
    this.#keepLeaving('this gateway does not lead any more')
    this.#parts.known.scaler.forgetOrdered()
    this.#shortSince = undefined
  }

  async #findOut(now: Instant): Promise<void> {
    this.#isCalling = true
    const actuator = this.#parts.actuator()
    const found = await actuator?.read?.()
    const { known, platform } = this.#parts
    this.#isCalling = false
    this.#isUnsure = actuator !== undefined && found === undefined
    const there = found ?? known.scaler.view.readyCount
    if (platform.world.leadership.role().kind === 'leads') known.scaler.setOrdered(now, there)
  }

  #journalOnly(now: Instant): void {
    const { desired, current } = this.#parts.known.scaler.view
    if (desired === (this.#journalled ?? current)) return
    const from = this.#journalled ?? current
    this.#journalled = desired
    this.#journal(
      now,
      { from, to: desired, leaving: [] },
      { outcome: 'dry-run', because: 'orders are only journalled' },
    )
  }

  #shrink(now: Instant, role: LeaderRole, desired: number): void {
    const { readyCount } = this.#parts.known.scaler.view
    this.#drainMore(now, Math.max(0, readyCount + this.#leaving.size - desired) - this.#leaving.size)
    const isOver = [...this.#leaving].every(([id, since]) => this.#heldAt(id) === 0 || now - since >= DRAIN_US_MAX)
    if (isOver) void this.#order(now, role, desired, [...this.#leaving.keys()])
  }

  #drainMore(now: Instant, count: number): void {
    if (count <= 0) return
    const { platform, known } = this.#parts
    const { placer, health } = platform.policies
    const soleHot = placer.soleHotBlocks(now)
    const candidates = known.pool.replicas.flatMap((replica, place) => {
      const kind = health.kindOf(replica.id)
      if (kind === undefined || kind === 'away' || kind === 'draining') return []
      return [{ id: replica.id, heldCount: this.#heldAt(replica.id), soleHotBlocks: soleHot(replica.id), place }]
    })
    for (const { id } of whoLeaves(candidates, count)) {
      this.#leaving.set(id, now)
      this.#setDrained(id, true, 'fewer replicas are needed')
    }
  }

  /** Of all gateways that share it, as last told. */
  #heldAt(replicaId: string): number {
    return this.#parts.platform.policies.dispatcher.holdingsOf(replicaId)?.held ?? 0
  }

  /** What was ordered has not come: perhaps an order was lost on the other side. */
  #insist(now: Instant, role: LeaderRole): void {
    const { scaler } = this.#parts.known
    const { readyCount, coldStartUs } = scaler.view
    const ordered = scaler.ordered ?? 0
    if (readyCount >= ordered) {
      this.#shortSince = undefined
      return
    }
    this.#shortSince ??= now
    if (now - this.#shortSince < Math.max(AGAIN_US_MIN, 3 * coldStartUs)) return
    this.#shortSince = now
    scaler.starts.ordered(now, ordered - readyCount)
    void this.#order(now, role, ordered, [])
  }

  async #order(now: Instant, role: LeaderRole, to: number, leaving: readonly string[]): Promise<void> {
    const { known, platform, actuator } = this.#parts
    const { scaler } = known
    const from = scaler.ordered ?? 0
    const fence = role.kind === 'leads' ? role.fence : undefined
    const because = `${to > from ? 'more' : to < from ? 'fewer' : 'as many'} replicas are needed`
    this.#isCalling = true
    scaler.setOrdered(now, to)
    const order: ScaleOrder = { poolId: known.pool.id, from, to, leaving, fence, because }
    const isOver = (): boolean => !this.#isLedWith(fence)
    const answer = await (actuator()?.scale(order, isOver) ?? Promise.resolve(NO_ACTUATOR))
    this.#isCalling = false
    const doneAt = platform.world.clock.now()
    if (answer.kind === 'done') {
      this.#pauseUs = PAUSE_US_MIN
      this.#isUnsure = false
      for (const id of leaving) {
        this.#leaving.delete(id)
        this.#gone.set(id, doneAt)
        scaler.starts.left(id)
      }
    } else {
      scaler.setOrdered(doneAt, from)
      this.#notBefore = doneAt + this.#pauseUs
      this.#pauseUs = Math.min(PAUSE_US_MAX, 2 * this.#pauseUs)
    }
    // Whoever ordered in between is the one to be asked.
    if (isOver()) scaler.forgetOrdered()
    const outcome = answer.kind
    this.#journal(doneAt, order, {
      outcome,
      because: answer.kind === 'failed' ? answer.because : (answer.note ?? because),
    })
  }

  /** Whether this gateway still leads, in the same term: in between another one may have ordered. */
  #isLedWith(fence: Fence | undefined): boolean {
    const role = this.#parts.platform.world.leadership.role()
    return role.kind === 'leads' && role.fence?.number === fence?.number
  }

  /** Those that have gone are forgotten; those that are listed and away, or were not chosen, may be used again. */
  #takeBack(now: Instant): void {
    const { known, platform } = this.#parts
    for (const [id, since] of this.#gone) {
      const replica = platform.policies.fleet.replica(id)
      if (replica !== undefined && known.reports.isReady(replica) && now - since < SURVIVED_US) continue
      this.#gone.delete(id)
      if (replica !== undefined) this.#setDrained(id, false, 'the order to go was carried out, and it is still listed')
    }
  }

  #keepLeaving(because: string): void {
    for (const id of this.#leaving.keys()) this.#setDrained(id, false, because)
    this.#leaving.clear()
  }

  #setDrained(replicaId: string, isDrained: boolean, because: string): void {
    const { platform, drains } = this.#parts
    const kind = isDrained ? 'drain-replica' : 'undrain-replica'
    if (drains !== undefined) drains.set(replicaId, isDrained, because)
    else platform.changeFleet({ kind, replicaId }, { by: 'autoscale', because })
  }

  #journal(
    at: Instant,
    { from, to, leaving }: Pick<ScaleOrder, 'from' | 'to' | 'leaving'>,
    told: { readonly outcome: ScaleAnswer['kind'] | 'dry-run'; readonly because: string },
  ): void {
    const { platform, known } = this.#parts
    const leavingCount = leaving.length
    platform.world.journal.record({ kind: 'scale-ordered', at, poolId: known.pool.id, from, to, leavingCount, ...told })
  }
}

const NO_ACTUATOR: ScaleAnswer = {
  kind: 'failed',
  because: 'the pool has no actuator. Set autoscale.actuator, or autoscale.dryRun',
}
