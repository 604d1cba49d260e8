import { assert } from '../../base/assert.ts'
import type { NoPlace } from '../../domain/no-place.ts'
import type { Estimate } from '../../domain/plan.ts'
import type { PoolFigures, PoolShare } from '../../domain/pool-share.ts'
import type { BackloggedTenant, SharePath, WeightChange } from '../../domain/share-path.ts'
import { BANDS, type Band } from '../../domain/tenant.ts'
import { type Debt, type FairnessName, NO_DEBT } from '../fairness/fairness.ts'
import type { LaneOptions } from '../fairness/lane.ts'
import type { Gauges, Ledger, Load } from '../limits/ledger.ts'
import type { BacklogListener } from './backlog-listener.ts'
import { backloggedOf } from './backlogged.ts'
import { Book } from './book.ts'
import { evictTail, NOTHING_MAY_WAIT, neverFits, offerRefusal, overBounds, whoYields } from './bounds.ts'
import { type CallOff, callOffFor, type WasteOf } from './call-off.ts'
import { type BacklogView, Candidate, PoolLane } from './candidate.ts'
import { DISPATCHER_DEFAULTS, type DispatcherOptions } from './dispatch-options.ts'
import { type DispatcherView, viewOf } from './dispatcher-view.ts'
import { EffectBuffer } from './effect-buffer.ts'
import { FleetState, type ReplicaChange } from './fleet-state.ts'
import { assertNoIdleRoom, TurnGiver } from './give-turns.ts'
import { likelyLoadOf } from './likely-load.ts'
import { type Effect, type Measured, NO_EFFECTS, type Offer, type Offered, type PlaceSeeker } from './offer.ts'
import { LeastLoaded, type Placer } from './placer.ts'
import { figuresOf } from './pool-figures.ts'
import type { PoolCounts, PoolState } from './pool-state.ts'
import type { ReplicaFacts } from './replica-room.ts'
import { type RoomWait, roomWaitOf } from './room-wait.ts'

/**
 * Now: who goes, and where?
 *
 * The machine between admission and the replicas. Tickets are offered to a pool's lanes; whenever a ticket, a slot or
 * a piece of news arrives, turns are given until nothing that waits fits anywhere: fairness says whose turn it is, the
 * rooms say where it fits, the placer says which. Everything that happens comes back as effects, in order.
 *
 *     offer ─▶ lane ──(its turn, and room)──▶ granted: a lease ──▶ release
 *                └──▶ expired · evicted · withdrawn
 *
 * Big heads: a head that fits nowhere at the moment is passed over and *owed* its turn, without losing its place in the
 * order; after `skipsMax` turns of others, or when its tenant has missed more than it may, a replica is kept free for it
 * while the rest backfill. Idea from EASY backfilling (Lifka, 1995). Buffer fairness is in `shared-buffer.ts`, ageing in
 * `lane.ts`.
 *
 * Deliberately not: no clock, no promises, no retries of its own, no admission: what is offered is wanted.
 *
 * Laws: L2 every lease is granted once and returned once, and none is granted beyond limit, allowance or KV room;
 * L3 lanes and the whole queue within bounds; L6 no ready head waits while a room that is kept for nobody fits it
 * (as far as `lookAheadMax` heads that did not fit), but for heads that are barred (`long-prompts.ts`); L7 by the order chosen. `assertInvariants` checks them.
 *
 * Worked example: two slots. a offers three tickets, b one, all of cost 100: a₁ and a₂ go at once; when a₁ comes back,
 * b's is granted (a owes two quanta, b none), then a₃.
 */
export interface DispatcherParts {
  readonly options?: Partial<DispatcherOptions>
  readonly placer?: Placer
  readonly listener?: BacklogListener
}

export class Dispatcher {
  readonly #options: DispatcherOptions
  /** The bounds that lanes are kept within: `options.lanes`, or none in observe-only mode. */
  readonly #lanes: LaneOptions
  readonly #effects = new EffectBuffer()
  readonly #book: Book
  readonly #turns: TurnGiver
  readonly #fleet: FleetState
  #sequence = 0

  constructor(parts: DispatcherParts = {}) {
    this.#options = { ...DISPATCHER_DEFAULTS, ...parts.options }
    const { lanes, areLaneBoundsKept } = this.#options
    this.#lanes = areLaneBoundsKept ? lanes : { ...lanes, ...NO_LANE_BOUNDS }
    this.#book = new Book(this.#options, parts.listener)
    this.#fleet = new FleetState(this.#book)
    this.#turns = new TurnGiver(this.#book, this.#options, parts.placer ?? new LeastLoaded(), this.#effects)
  }

  // ── tickets ──

  /**
   * Would this be refused if it were offered now, and why? Changes nothing. What is refused here, `offer` refuses for
   * the same reason; the reverse holds but for a ticket that might have its turn at once and then has not. The time to
   * wait is not asked: the caller has judged it itself.
   */
  noPlaceFor(poolId: string, seeker: PlaceSeeker, estimate: Estimate, isReady: boolean): NoPlace | undefined {
    const pool = this.#fleet.pools.get(poolId)
    const never = neverFits(pool, poolId, estimate)
    if (pool === undefined || never !== undefined) return never
    const bandRank = BANDS.indexOf(seeker.band)
    const lane = pool.laneOf(seeker.key.id, bandRank)
    const over = overBounds(this.#book, this.#options.lanes, lane, { seeker, bandRank, estimate })
    if (over === undefined || (isReady && this.#turns.mightGoNow(pool, lane, seeker, estimate))) return undefined
    return over
  }

  /** Queued: exactly one effect will end the wait, now or later, unless `withdraw` comes first. */
  offer(now: number, offer: Offer): Offered {
    const pool = this.#fleet.pools.get(offer.poolId)
    const refusal = offerRefusal(now, pool, offer)
    if (pool === undefined || refusal !== undefined) return refusal as Offered
    const candidate = this.#enqueue(now, pool, offer, false)
    this.#turns.give(now, pool)
    if (candidate.state === 'held') return { kind: 'queued', effects: this.#effects.take() }
    if (offer.mayNotWait === true) return this.#turnAway(now, candidate)
    const yields = whoYields(this.#book, this.#lanes, candidate)
    if (yields === undefined) return { kind: 'queued', effects: this.#effects.take() }
    if (yields instanceof PoolLane) {
      this.#evict(now, yields, 'queue-full')
      return { kind: 'queued', effects: this.#effects.take() }
    }
    this.#leave(now, candidate)
    return { kind: 'refused', ...yields, effects: this.#effects.take() }
  }

  /**
   * A ticket whose attempt came to nothing goes to the head of its lane, with its first `arrivedAt`. The ticket's lease
   * has been released with a measured cost of 0, so nothing is charged twice. The ticket is not refused for want of a
   * place: the last ticket of its own lane, or of the longest, yields.
   */
  offerAgain(now: number, offer: Offer): Offered {
    const pool = this.#fleet.pools.get(offer.poolId)
    const refusal = offerRefusal(now, pool, offer)
    if (pool === undefined || refusal !== undefined) return refusal as Offered
    const candidate = this.#enqueue(now, pool, offer, true)
    const { lane } = candidate
    this.#turns.give(now, pool)
    if (offer.mayNotWait === true && candidate.state !== 'held') return this.#turnAway(now, candidate)
    while (!lane.isWithin(this.#lanes)) this.#evict(now, lane, 'lane-full')
    const longest = this.#book.buffer.isOver ? this.#book.buffer.longest() : undefined
    if (longest !== undefined) this.#evict(now, longest, 'queue-full')
    return { kind: 'queued', effects: this.#effects.take() }
  }

  /** Retrieval and screening are done: the ticket may have its turn, with the estimate as it is known now. */
  ready(now: number, ticketId: string, estimate?: Estimate): readonly Effect[] {
    const candidate = this.#book.waiting(ticketId)
    if (candidate === undefined || candidate.state !== 'unready') return NO_EFFECTS
    const pool = this.#poolOf(candidate.lane)
    this.#book.markReady(now, pool, candidate, estimate ?? candidate.estimate)
    pool.sync(candidate.lane)
    this.#turns.give(now, pool)
    return this.#effects.take()
  }

  /** The ticket no longer wants a turn. A ticket that has its lease already gives the lease back through `release`. */
  withdraw(now: number, ticketId: string): readonly Effect[] {
    const candidate = this.#book.waiting(ticketId)
    if (candidate === undefined) return NO_EFFECTS
    this.#leave(now, candidate)
    return this.#effects.take()
  }

  /** The lease's first token has come: its prompt no longer stands before others at its replica. */
  begin(now: number, leaseId: number): readonly Effect[] {
    const candidate = this.#book.held(leaseId)
    if (candidate?.room === undefined) return NO_EFFECTS
    this.#book.begin(now, this.#poolOf(candidate.lane), candidate)
    return this.#giveIn(now, this.#fleet.grow(candidate.room))
  }

  /** Output so far: tokens beyond the prediction are charged as they come. */
  progress(_now: number, leaseId: number, outputTokens: number): readonly Effect[] {
    const candidate = this.#book.held(leaseId)
    if (candidate !== undefined) this.#book.progress(this.#poolOf(candidate.lane), candidate, outputTokens)
    return NO_EFFECTS
  }

  /** The lease goes back, once, with what the attempt turned out to be. */
  release(now: number, leaseId: number, measured: Measured): readonly Effect[] {
    const candidate = this.#book.held(leaseId)
    assert(candidate !== undefined, 'L2: a lease is returned once')
    const pool = this.#poolOf(candidate.lane)
    const room = this.#book.giveBack(now, pool, candidate, leaseId, measured)
    return this.#giveIn(now, this.#fleet.grow(room))
  }

  /** Which offline leases give way to this ticket? The caller ends their attempts; they come back through `release`. */
  callOff(ticketId: string, wasteOf: WasteOf, tokensMax: number): CallOff | undefined {
    const waiting = this.#book.waiting(ticketId)
    return waiting && callOffFor(this.#book, this.#poolOf(waiting.lane), waiting, { wasteOf, tokensMax })
  }

  // ── replicas ──

  addPool(poolId: string, fairness: FairnessName = this.#options.fairness): void {
    this.#fleet.addPool(poolId, fairness)
  }

  /** Adds the replica's pool too, if that is new. */
  addReplica(now: number, facts: ReplicaFacts): readonly Effect[] {
    return this.#giveIn(now, this.#fleet.add(facts, this.#options.fairness))
  }

  /** No further lease is granted at the replica. Leases that are out come back through `release` as always. */
  removeReplica(now: number, replicaId: string): readonly Effect[] {
    return this.#giveIn(now, this.#fleet.remove(replicaId))
  }

  /** The pool must be empty: its replicas removed, nothing waiting, every lease returned. */
  removePool(poolId: string): void {
    this.#fleet.removePool(poolId)
  }

  /** Leases that are out at a replica. */
  heldAt(replicaId: string): number {
    return this.#fleet.heldAt(replicaId)
  }

  /** KV memory of a replica that is booked: by our answers, by other gateways' and by strangers'. */
  kvTokensAt(replicaId: string): number {
    return this.#fleet.ledgerOf(replicaId)?.kvTokens ?? 0
  }

  /** The replica became ready or stopped being so, or this gateway's allowance there or its known memory changed. */
  replicaChanged(now: number, replicaId: string, change: ReplicaChange): readonly Effect[] {
    return this.#giveIn(now, this.#fleet.change(replicaId, change))
  }

  /** Load that the engine reports; the report corrects the ledger until it lapses. */
  report(now: number, replicaId: string, gauges: Gauges): readonly Effect[] {
    return this.#giveIn(now, this.#fleet.report(now, replicaId, gauges))
  }

  // ── weights ──

  /**
   * A weight changed, or a tenant moved to another org: counts from the next turn on, for queued tickets too. An org's
   * weight counts in pools that are added later, too: a tenant does not bring it.
   */
  reweigh(change: WeightChange): void {
    this.#fleet.reweigh(change)
    this.#book.reweigh([...this.#fleet.pools.values()], change)
  }

  // ── several gateways ──

  /** This gateway's part of a pool that several share: its room, what the others have in flight, and scaled weights. */
  share(now: number, poolId: string, share: PoolShare): readonly Effect[] {
    const pool = this.#fleet.share(now, poolId, share)
    if (pool !== undefined) this.#book.rescale(pool, share.factors)
    return this.#giveIn(now, pool)
  }

  /** What this gateway tells the others about a pool. A copy. */
  figuresOf(poolId: string): PoolFigures | undefined {
    const pool = this.#fleet.pools.get(poolId)
    return pool && figuresOf(pool, this.#book.orgWeights)
  }

  /** A path in the tree of shares with the weights that count in this pool, at this gateway. */
  scaledShare(poolId: string, share: SharePath): SharePath {
    return this.#fleet.pools.get(poolId)?.scale.pathOf(share) ?? share
  }

  // ── time ──

  /** When `onWakeup` should be called at the latest. */
  nextWakeupAt(): number | undefined {
    const expiryAt = this.#book.nextExpiryAt()
    return earliest(earliest(expiryAt, this.#fleet.nextLapseAt()), this.#fleet.nextBarEndAt())
  }

  onWakeup(now: number): readonly Effect[] {
    const changed = new Set<PoolState>()
    for (let due = this.#book.nextExpired(now); due !== undefined; due = this.#book.nextExpired(now)) {
      const pool = this.#poolOf(due.lane)
      this.#turns.expire(pool, due)
      changed.add(pool)
    }
    this.#fleet.lapse(now, changed)
    this.#fleet.endBars(now, changed)
    for (const pool of changed) this.#turns.give(now, pool)
    return this.#effects.take()
  }

  // ── what others may know ──

  /** Live facts, not a copy. */
  poolFacts(poolId: string): PoolCounts | undefined {
    return this.#fleet.pools.get(poolId)
  }

  /** Live facts, not a copy; undefined when the tenant has had nothing here lately. */
  backlogOf(poolId: string, tenantId: string): BacklogView | undefined {
    return this.#fleet.pools.get(poolId)?.backlogs.get(tenantId)
  }

  /** Who waits at a pool, and each one's share of it. A copy. */
  backlogged(poolId: string, tenantsMax: number): readonly BackloggedTenant[] {
    const pool = this.#fleet.pools.get(poolId)
    return pool === undefined ? [] : backloggedOf(pool.backlogs.values(), this.#book.orgWeights, tenantsMax)
  }

  /** What this gateway, and those that share the replica with it, have in flight there. A copy. */
  holdingsOf(replicaId: string): Pick<Ledger, 'held' | 'heldContextTokens'> | undefined {
    return this.#fleet.holdingsOf(replicaId)
  }

  /** Turns of this gateway at a replica, and the KV tokens that were predicted for them. Live facts, not a copy. */
  leasedAt(replicaId: string): Pick<Ledger, 'held' | 'leasedKvTokens'> | undefined {
    return this.#fleet.ownLedgerOf(replicaId)
  }

  /** What is in flight at a replica's engine. Live facts, not a copy. */
  loadOf(replicaId: string): Load | undefined {
    return this.#fleet.ledgerOf(replicaId)
  }

  /** What is in flight at the replica that the pool's next ticket probably gets; undefined when none is ready. */
  likelyLoadAt(poolId: string): Load | undefined {
    const pool = this.#fleet.pools.get(poolId)
    return pool && likelyLoadOf(pool)
  }

  hasIdleReplica(poolId: string, estimate: Estimate): boolean {
    return this.#fleet.pools.get(poolId)?.hasIdleReplica(estimate) ?? false
  }

  /** Service that one key, its tenant and its org have had ahead of others and must wait for. */
  debtOf(poolId: string, keyId: string, band: Band): Debt {
    const pool = this.#fleet.pools.get(poolId)
    const lane = pool?.laneOf(keyId, BANDS.indexOf(band))
    return pool === undefined || lane === undefined ? NO_DEBT : pool.sideOf(lane).fairness.debtOf(lane)
  }

  /** When a ticket that comes now would find room that others hold (`room-wait.ts`). */
  roomWait(
    now: number,
    poolId: string,
    { key, band }: Pick<PlaceSeeker, 'key' | 'band'>,
    estimate: Estimate,
  ): RoomWait {
    const pool = this.#fleet.pools.get(poolId)
    return roomWaitOf(now, pool, { lane: pool?.laneOf(key.id, BANDS.indexOf(band)), band, estimate })
  }

  /** What waits in one key's lane. */
  laneOf(poolId: string, keyId: string, band: Band): Pick<PoolLane, 'count' | 'cost' | 'engineUs'> | undefined {
    return this.#fleet.pools.get(poolId)?.laneOf(keyId, BANDS.indexOf(band))
  }

  view(): DispatcherView {
    const pools = [...this.#fleet.pools.values()].map((pool) => viewOf(pool))
    return { queuedCount: this.#book.buffer.count, queueRequestsMax: this.#options.queueRequestsMax, pools }
  }

  assertInvariants(): void {
    this.#book.assertInvariants(this.#fleet.pools.values())
    for (const pool of this.#fleet.pools.values()) {
      pool.assertInvariants(this.#lanes)
      assertNoIdleRoom(pool, this.#options.lookAheadMax)
    }
  }

  #poolOf(lane: PoolLane): PoolState {
    return this.#fleet.pools.get(lane.poolId) as PoolState
  }

  #enqueue(now: number, pool: PoolState, offer: Offer, isAgain: boolean): Candidate {
    const lane = pool.laneFor(offer.tenant, offer.key, offer.band, BANDS.indexOf(offer.band))
    const { agingUsPerBid } = this.#options.lanes
    const orgWeight = this.#book.orgWeights.get(offer.tenant.orgId)
    const candidate = new Candidate(offer, { lane, isAgain, sequence: this.#sequence++, agingUsPerBid, orgWeight })
    this.#book.enqueue(now, pool, candidate)
    pool.sync(lane)
    return candidate
  }

  #leave(now: number, candidate: Candidate): void {
    const pool = this.#poolOf(candidate.lane)
    const wasHead = candidate.lane.head() === candidate
    this.#book.dismiss(pool, candidate)
    pool.sync(candidate.lane)
    // A smaller ticket may stand behind a big head that left, and fit.
    if (wasHead) this.#turns.give(now, pool)
  }

  /** The ticket may not wait and got no turn: it leaves as it came. */
  #turnAway(now: number, candidate: Candidate): Offered {
    this.#leave(now, candidate)
    return { kind: 'refused', ...NOTHING_MAY_WAIT, effects: this.#effects.take() }
  }

  #evict(now: number, lane: PoolLane, code: 'queue-full' | 'lane-full'): void {
    const pool = this.#poolOf(lane)
    if (evictTail(this.#book, pool, lane, code, this.#effects)) this.#turns.give(now, pool)
  }

  #giveIn(now: number, pool: PoolState | undefined): readonly Effect[] {
    if (pool === undefined || (pool.queuedCount === 0 && pool.turns === undefined)) return NO_EFFECTS
    this.#turns.give(now, pool)
    return this.#effects.take()
  }
}

function earliest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a
}

const NO_LANE_BOUNDS = { depthMax: Number.POSITIVE_INFINITY, engineUsMax: Number.POSITIVE_INFINITY }
