import { assert } from '../../base/assert.ts'
import type { Estimate } from '../../domain/plan.ts'
import type { WeightFactors } from '../../domain/pool-share.ts'
import type { WaitingKeys, WeightChange } from '../../domain/share-path.ts'
import type { Band, Key, Tenant } from '../../domain/tenant.ts'
import type { Fairness, FairnessName } from '../fairness/fairness.ts'
import type { LaneOptions } from '../fairness/lane.ts'
import { makeFairness } from '../fairness/make-fairness.ts'
import type { OrgWeights } from '../fairness/tree-share.ts'
import { ActivePromises } from './active-tenants.ts'
import { BarredLanes } from './barred-lanes.ts'
import { type Candidate, PoolLane, TenantBacklog } from './candidate.ts'
import { KeptRooms } from './kept-rooms.ts'
import { LastingAnswers } from './lasting-answers.ts'
import { list } from './listed-rooms.ts'
import { PoolAnswers } from './pool-answers.ts'
import { PoolReading } from './pool-reading.ts'
import type { PoolTurns } from './pool-turns.ts'
import type { ReplicaRoom } from './replica-room.ts'
import { type RunningTurns, runningTurnsOf } from './running-turns.ts'
import type { SharedBuffer } from './shared-buffer.ts'
import { waitingKeysOf } from './waiting-keys.ts'
import { WeightScale } from './weight-scale.ts'

/**
 * What does one pool consist of right now? Its lanes in two orders of turns (one for interactive and standard, one for
 * offline, which gets what the first leaves over), its replicas and which of them have room, and the turns that are
 * owed to heads too big for the room left. Only bookkeeping: `give-turns.ts` decides who goes.
 */

/** Lanes of a pool before idle ones are looked for: together about a megabyte. */
const LANES_BEFORE_SWEEP = 1_024

/** An order of turns, and the lanes that had a turn but no room, in the order in which they were skipped. */
export interface Side {
  readonly fairness: Fairness
  readonly owed: PoolLane[]
  /** The pool's `roomGrowth` when the owed lanes were last looked at. */
  lookedAt: number
}

/** What others may know about a pool, live and without a copy. */
export interface PoolCounts {
  readonly id: string
  readonly queuedCount: number
  readonly queuedCost: number
  readonly heldCount: number
  readonly heldCost: number
  readonly readyReplicaCount: number
  /** Ready replicas, each counted by this gateway's part of it: what works off this gateway's queue. */
  readonly replicaParts: number
  readonly openReplicaCount: number
  /** How many turns run, and how many more could; undefined when nobody waits, or no replica is ready. */
  runningTurns(): RunningTurns | undefined
  /** Whose tickets wait, by key. A copy. */
  waitingKeys(keysMax: number): WaitingKeys | undefined
}

export class PoolState implements PoolCounts {
  readonly id: string
  readonly foreground: Side
  readonly leftover: Side
  readonly rooms = new Map<string, ReplicaRoom>()
  readonly open: ReplicaRoom[] = []
  /** Those of the open rooms in which nothing runs: asked for every request, and few where it counts. */
  readonly #idle: ReplicaRoom[] = []
  readonly backlogs = new Map<string, TenantBacklog>()
  readonly promises = new ActivePromises()
  readonly kept = new KeptRooms((room) => (room.isKept ? this.refreshOpen(room) : this.grown(room)))
  readonly barred = new BarredLanes()
  readonly reading = new PoolReading(this)
  readonly lasting = new LastingAnswers(this)
  readonly answers = new PoolAnswers()
  queuedCount = 0
  queuedCost = 0
  heldCount = 0
  heldCost = 0
  readyReplicaCount = 0
  /** The least part of the pool that is counted on while it is shared: a report may be out of date. */
  partMin = 0
  #partSum = 0
  /** Turns given here, and at engines that this pool has in common with others. */
  grantedCount = 0
  /** What the pool has had of the engines that it has in common with others; undefined where it has none. */
  turns: PoolTurns<PoolState> | undefined = undefined
  /** Counts every event that can have made room. */
  roomGrowth = 0
  /** KV tokens of the largest replica, as far as they are known and not guessed. */
  kvTokensMax = 0
  #laneCount = 0
  #skippedCount = 0
  /** The number of lanes at which idle ones are looked for next. */
  #sweepAt = LANES_BEFORE_SWEEP
  #sweepCount = 0
  readonly #lanes = new Map<string, Array<PoolLane | undefined>>()
  /** The weights that count here, of what the contract says. */
  readonly scale = new WeightScale()

  readonly #buffer: SharedBuffer
  readonly orgWeights: OrgWeights

  constructor(
    id: string,
    fairness: FairnessName,
    shared: { readonly buffer: SharedBuffer; readonly orgWeights: OrgWeights },
  ) {
    this.id = id
    this.#buffer = shared.buffer
    this.orgWeights = shared.orgWeights
    this.foreground = { fairness: makeFairness(fairness), owed: [], lookedAt: 0 }
    this.leftover = { fairness: makeFairness(fairness), owed: [], lookedAt: 0 }
  }

  get openReplicaCount(): number {
    return this.open.length
  }

  get replicaParts(): number {
    return Math.max(this.#partSum, this.partMin * this.readyReplicaCount)
  }

  /** Lanes whose head had a turn and no room. */
  get owedCount(): number {
    return this.foreground.owed.length + this.leftover.owed.length
  }

  get laneCount(): number {
    return this.#laneCount
  }

  sideOf(lane: PoolLane): Side {
    return lane.band === 'offline' ? this.leftover : this.foreground
  }

  laneOf(keyId: string, bandRank: number): PoolLane | undefined {
    return this.#lanes.get(keyId)?.[bandRank]
  }

  *lanes(): Iterable<PoolLane> {
    for (const bands of this.#lanes.values()) for (const lane of bands) if (lane !== undefined) yield lane
  }

  waitingKeys(keysMax: number): WaitingKeys | undefined {
    return this.queuedCount === 0 ? undefined : waitingKeysOf(this.lanes(), keysMax)
  }

  runningTurns(): RunningTurns | undefined {
    return this.queuedCount === 0 ? undefined : runningTurnsOf(this)
  }

  /** A weight of the contract changed. */
  reweigh(change: WeightChange): void {
    if (change.kind === 'key')
      for (const lane of this.#lanes.get(change.keyId) ?? []) if (lane !== undefined) lane.keyWeight = change.weight
    this.#weigh(this.scale.changeOf(change))
  }

  /** The weights that count here, of what the contract says, where several gateways share the pool. The changes made. */
  rescale(factors: WeightFactors): readonly WeightChange[] {
    const changes = this.scale.change(factors, {
      orgWeights: this.orgWeights,
      backlogs: this.backlogs,
      keyWeightOf: (keyId) => this.#lanes.get(keyId)?.find((lane) => lane !== undefined)?.keyWeight,
    })
    for (const change of changes) this.#weigh(change)
    return changes
  }

  #weigh(change: WeightChange): void {
    this.foreground.fairness.reweigh(change)
    this.leftover.fairness.reweigh(change)
  }

  laneFor(tenant: Tenant, key: Key, band: Band, bandRank: number): PoolLane {
    const known = this.#lanes.get(key.id)?.[bandRank]
    if (known !== undefined) {
      known.usedIn = this.#sweepCount
      this.#promise(known.backlog, tenant)
      return known
    }
    if (this.#laneCount >= this.#sweepAt) this.#forgetIdleLanes()
    const lane = this.#makeLane(tenant, key, band)
    this.#promise(lane.backlog, tenant)
    const bands = this.#lanes.get(key.id) ?? [undefined, undefined, undefined]
    bands[bandRank] = lane
    this.#lanes.set(key.id, bands)
    return lane
  }

  #promise(backlog: TenantBacklog, { slo }: Tenant): void {
    if (backlog.promiseUs !== slo.ttftUs) backlog.join(this.promises.groupOf(slo.ttftUs))
  }

  #makeLane(tenant: Tenant, key: Key, band: Band): PoolLane {
    let backlog = this.backlogs.get(tenant.id)
    if (backlog === undefined) {
      backlog = new TenantBacklog(tenant.id, tenant.orgId, tenant.weight)
      this.backlogs.set(tenant.id, backlog)
    }
    const name = { poolId: this.id, orgId: tenant.orgId, tenantId: tenant.id, keyId: key.id, keyWeight: key.weight }
    const lane = new PoolLane({ ...name, tenantWeight: backlog.weight, band }, backlog, this.scale)
    lane.usedIn = this.#sweepCount
    const { fairness } = this.sideOf(lane)
    fairness.attach(lane)
    this.#buffer.attach(lane)
    const factor = this.scale.tenant(tenant.id)
    if (factor !== 1)
      fairness.reweigh({ kind: 'tenant', tenantId: tenant.id, orgId: backlog.orgId, weight: backlog.weight * factor })
    this.#laneCount++
    return lane
  }

  /**
   * Forgets lanes that hold nothing, owe nothing and were not used since the last sweep, and their tenants' records
   * with them. O(lanes), but only after as many new lanes as the last sweep left: tenants that come once do not cost
   * memory for ever, and the lanes of tenants that come and go are not made anew each time.
   */
  #forgetIdleLanes(): void {
    for (const [keyId, bands] of this.#lanes) {
      let kept = 0
      for (let rank = 0; rank < bands.length; rank++) {
        const lane = bands[rank]
        if (lane === undefined) continue
        const isIdle = lane.count === 0 && lane.heldCount === 0 && lane.usedIn < this.#sweepCount
        if (isIdle && this.sideOf(lane).fairness.detach(lane)) {
          this.#buffer.detach(lane)
          bands[rank] = undefined
          this.#laneCount--
        } else kept++
      }
      if (kept === 0) this.#lanes.delete(keyId)
    }
    this.#sweepCount++
    this.#sweepAt = Math.max(LANES_BEFORE_SWEEP, 2 * this.#laneCount)
    const named = new Set<string>()
    for (const lane of this.lanes()) named.add(lane.tenantId)
    for (const tenantId of this.backlogs.keys()) if (!named.has(tenantId)) this.backlogs.delete(tenantId)
    this.promises.forgetUnused(this.backlogs.values())
  }

  /** The pool is removed, and the shared buffer's records of its lanes with it. */
  forgetLanes(): void {
    for (const lane of this.lanes()) this.#buffer.detach(lane)
    this.#lanes.clear()
    this.backlogs.clear()
    this.promises.forgetUnused([])
    this.#laneCount = 0
  }

  /** Called after anything that may change a lane's head: the order learns whether the lane has one, and which. */
  sync(lane: PoolLane): void {
    const head = lane.head()
    if (lane.barredHead !== undefined) {
      if (lane.barredHead === head) return
      this.#endBar(lane)
    }
    if (head !== lane.skippedHead && lane.skippedHead !== undefined) {
      lane.skippedHead = undefined
      if (lane.isOwed && head !== undefined) this.recall(lane)
    } else if (lane.isOwed) return
    const { fairness } = this.sideOf(lane)
    if (head !== undefined) fairness.enter(lane)
    else {
      if (lane.isOwed) this.#unlist(lane)
      this.kept.trim(lane, 0)
      fairness.leave(lane)
    }
  }

  /** The lane's head had its turn and fits nowhere now: other lanes are asked, and what this one is owed grows. */
  owe(lane: PoolLane): void {
    const side = this.sideOf(lane)
    side.fairness.pass(lane)
    lane.isOwed = true
    const head = lane.head()
    if (lane.skippedHead !== head) {
      lane.skippedHead = head
      lane.skippedSince = this.grantedCount
      lane.skippedAfter = this.#skippedCount++
    }
    // Whoever was called back in vain has its old place.
    const before = side.owed.findLastIndex(({ skippedAfter }) => skippedAfter < lane.skippedAfter)
    side.owed.splice(before + 1, 0, lane)
  }

  /** The lane's head might fit now, or has changed: the lane is asked again, where its standing puts it. */
  recall(lane: PoolLane): void {
    this.#unlist(lane)
    this.sideOf(lane).fairness.recall(lane)
  }

  #unlist(lane: PoolLane): void {
    const { owed } = this.sideOf(lane)
    owed.splice(owed.indexOf(lane), 1)
    lane.isOwed = false
  }

  // ── long prompts and lasting answers (`long-prompts.ts`, `lasting-answers.ts`) ──

  /** The lane leaves the order, and is owed nothing, until the bar ends. */
  bar(lane: PoolLane, until: number): void {
    if (lane.isOwed) this.recall(lane)
    lane.barredHead = lane.head()
    this.barred.add(lane, until)
    this.kept.trim(lane, 0)
    this.sideOf(lane).fairness.leave(lane)
  }

  /** The lanes whose bar is over are asked again. True when there were any. */
  endBars(lanes: readonly PoolLane[]): boolean {
    for (const lane of lanes) {
      this.#endBar(lane)
      this.sync(lane)
    }
    return lanes.length > 0
  }

  #endBar(lane: PoolLane): void {
    lane.barredHead = undefined
    this.barred.remove(lane)
  }

  /** Keeps the lists of open and idle rooms true after anything that may have changed this room. */
  refreshOpen(room: ReplicaRoom): void {
    this.list(room)
    if (room.engine.isCommon) room.engine.listElsewhere(room)
  }

  /** The room may take something that it did not take before. */
  grown(room: ReplicaRoom): void {
    this.refreshOpen(room)
    this.roomGrowth++
    if (room.engine.isCommon) room.engine.growElsewhere(room)
  }

  /** The same in this pool alone. */
  list(room: ReplicaRoom): void {
    const isKept = room.engine.keptBy !== undefined
    const shouldBeOpen = !isKept && room.isOpen() && this.rooms.get(room.replica.id) === room
    list(this.open, 'openIndex', room, shouldBeOpen)
    list(this.#idle, 'idleIndex', room, shouldBeOpen && room.isIdle())
  }

  /** Called after replicas came, went or changed their readiness. */
  recount(): void {
    this.readyReplicaCount = 0
    this.#partSum = 0
    this.kvTokensMax = 0
    for (const room of this.rooms.values()) {
      if (room.isReady) {
        this.readyReplicaCount++
        this.#partSum += room.part
      }
      this.kvTokensMax = Math.max(this.kvTokensMax, room.kvTokensAlone)
    }
  }

  /** False only when the pool has replicas and none is big enough even when empty. */
  canEverFit(estimate: Estimate): boolean {
    return this.rooms.size === 0 || estimate.promptTokens + estimate.outputTokens <= this.kvTokensMax
  }

  /** A second attempt does not go where the first failed, unless no other replica is ready. */
  mayUse(room: ReplicaRoom, candidate: Candidate): boolean {
    return candidate.avoidReplicaId !== room.replica.id || this.readyReplicaCount <= 1
  }

  hasIdleReplica(estimate: Estimate): boolean {
    for (const room of this.#idle) if (room.fitsAlone(estimate)) return true
    return false
  }

  assertInvariants(lanes: LaneOptions): void {
    this.foreground.fairness.assertInvariants()
    this.leftover.fairness.assertInvariants()
    for (const room of this.rooms.values()) room.assertInvariants()
    this.kept.assertInvariants()
    let count = 0
    let cost = 0
    for (const lane of this.lanes()) {
      lane.assertInvariants(lanes)
      const isBarred = lane.barredHead !== undefined
      assert(lane.isActive === (lane.readyCount > 0 && !isBarred), 'a lane with a head is in the order')
      if (isBarred) this.barred.assertEnds(lane)
      assert(lane.isAside === lane.isOwed, 'a lane that is owed a turn is not asked')
      assert(!lane.isOwed || this.sideOf(lane).owed.includes(lane), 'an owed lane is on the list')
      count += lane.count
      cost += lane.cost
    }
    assert(count === this.queuedCount, 'a pool counts what its lanes hold')
    assert(Math.abs(cost - this.queuedCost) <= 1e-6 * Math.max(1, cost), 'a pool knows the cost of what waits')
  }
}
