import { type Estimate, meanEngineUsOf } from '../../domain/plan.ts'
import type { Band } from '../../domain/tenant.ts'
import type { OrgWeights } from '../fairness/tree-share.ts'
import { type ActivePromises, activeBeside } from './active-tenants.ts'
import type { Candidate, PoolLane, TenantBacklog } from './candidate.ts'
import { HeldRoom } from './held-room.ts'
import { isLongFor, READING_TIME_DEFAULTS } from './reading-time.ts'
import type { ReplicaRoom } from './replica-room.ts'
import type { WeightScale } from './weight-scale.ts'

/**
 * May this head take what somebody who is not waiting will need? And what therefore stands before a newcomer?
 *
 * One account of a pool's room answers dispatch and admission alike, so that neither has to be told of the other's rules:
 *
 *     claim    a request came: its tenant is expected to send more of its kind
 *     hold · grow · read · release    what a turn takes of memory and sequences, and of the time in which prompts are read
 *     barOn    dispatch: until when must this head leave the room to others?
 *     before   admission: how long will a newcomer wait for room that its own tenant, or everybody, holds?
 *
 * Two things are held: room, for as long as an answer lasts (`held-room.ts`), and reading time (`reading-time.ts`). The rule
 * is the same: above its share among the active tenants, a tenant takes nothing that others can be expected to need within
 * what they are promised; at or below its share it is never barred; alone it may take everything.
 *
 * A head that is barred leaves the order with its lane and is owed nothing; what waits in the lane stands before nobody
 * (law L17).
 *
 * Deliberately not: no decision about lanes (`give-turns.ts` bars them), nothing is taken back from a turn that runs.
 *
 * Laws: L6 as amended, L17.
 */
interface ClaimedPool {
  readonly rooms: ReadonlyMap<string, ReplicaRoom>
  readonly open: readonly ReplicaRoom[]
  readonly backlogs: ReadonlyMap<string, TenantBacklog>
  readonly promises: ActivePromises
  readonly readyReplicaCount: number
  readonly heldCount: number
  readonly orgWeights: OrgWeights
  readonly scale: WeightScale
  readonly answers: { readonly tokenUs: number }
  readonly barred: { untilOf(lane: PoolLane): number | undefined }
}

/** Until when a head must wait, and whether for room or for reading time. */
export interface Bar {
  readonly until: number
  readonly isRoomless: boolean
}

/** What stands before a newcomer because room, or reading time, is held. */
export interface StandingBefore {
  /** Until one more answer like this finds room; 0 where there is room now, or no replica is open. */
  readonly perAnswerUs: number
  /** The tenant's own answers keep it out, and what waits in its lane goes first. */
  readonly isBarred: boolean
  /** Until a prompt like this one may be read: its tenant has reading time, and a replica has read what it has. */
  readonly readingUs: number
}

export const ROOM_NOW: StandingBefore = { perAnswerUs: 0, isBarred: false, readingUs: 0 }

/** Pools with more open replicas than this are taken to have room: some of them has. */
const OPEN_LOOKS_MAX = 128
/** Replicas that are looked at for what they have yet to read. */
const LOOKS = 8

type Head = Pick<Candidate, 'estimate' | 'lane'>

export class Claims {
  readonly #pool: ClaimedPool
  readonly #room: HeldRoom
  /** Prompts being read that count against their tenants' reading time. */
  #hinderingCount = 0

  constructor(pool: ClaimedPool) {
    this.#pool = pool
    this.#room = new HeldRoom(pool)
  }

  claim(now: number, tenantId: string, estimate: Estimate): void {
    const own = this.#pool.backlogs.get(tenantId)
    if (own === undefined) return
    this.#room.claim(now, own, estimate)
    const reading = this.#reading()
    if (reading !== undefined) own.readingTime.ask(now, reading.readUs(uncachedOf(estimate)))
  }

  barOn(now: number, head: Head): Bar | undefined {
    const readingUntil = this.#readingUntil(now, head)
    if (readingUntil !== undefined) return { until: readingUntil, isRoomless: false }
    const until = this.#room.barredUntil(now, head)
    return until === undefined ? undefined : { until, isRoomless: true }
  }

  hold(now: number, candidate: Candidate, room: ReplicaRoom): void {
    this.#room.hold(now, candidate)
    candidate.isLong = isLongFor(room.reading, candidate.estimate)
    if (candidate.isLong) {
      const tokens = uncachedOf(candidate.estimate)
      room.engine.long = { tokens, since: now, takesUs: room.reading?.readUs(tokens) ?? 0 }
    }
    candidate.isHindering = this.#hinders(now, candidate)
    if (!candidate.isHindering) return
    this.#hinderingCount++
    candidate.lane.backlog.readingTime.start(now, this.#earned(now, candidate))
  }

  grow(now: number, candidate: Candidate, outputTokens: number): void {
    this.#room.grow(now, candidate, outputTokens)
  }

  /** The prompt was read, or given up. True when lanes that are barred may go now. */
  read(now: number, candidate: Candidate, room: ReplicaRoom): boolean {
    if (candidate.isLong) room.engine.long = undefined
    if (!candidate.isHindering) return false
    this.#hinderingCount--
    const earned = this.#earned(now, candidate)
    candidate.lane.backlog.readingTime.end(now, earned, now - candidate.grantedAt)
    return true
  }

  release(now: number, candidate: Candidate, outputTokens: number | undefined): void {
    this.#room.release(now, candidate, outputTokens)
  }

  /**
   * Many answers of a time T run, and one of them ends every T ÷ their number: of the tenant itself, where it is its own
   * answers that keep it out, since what others give back others take; else of the whole pool.
   *
   * Worked example: 16 answers of 40 s run, and one more must wait for one of them to end: 2.5 s. With two tickets in the
   * lane before it, 7.5 s.
   */
  before(
    now: number,
    asked: { readonly lane: PoolLane | undefined; readonly band: Band; readonly estimate: Estimate },
  ): StandingBefore {
    const { lane, band, estimate } = asked
    const { open, heldCount } = this.#pool
    const ownReadingUs = lane === undefined || band === 'offline' ? 0 : this.#readingWaitUs(now, lane, estimate)
    const readingUs = Math.ceil(Math.max(ownReadingUs, open.length === 0 ? this.#unreadUs(now) : 0))
    const meanUs = meanEngineUsOf(estimate)
    const ownCount = lane?.backlog.room.heldCount ?? 0
    if (lane !== undefined && ownCount > 0) {
      // A lane is asked only while something waits in it: of an empty one, its last head says nothing.
      const isBarred =
        (lane.count > 0 && lane.isRoomless) || this.#room.barredUntil(now, { lane, estimate }) !== undefined
      const lastsUs = Math.max(meanUs, lane.backlog.room.lastsUs(now))
      if (isBarred) return { perAnswerUs: Math.ceil(lastsUs / ownCount), isBarred, readingUs }
    }
    // Where no replica is open it is places that are missing, which come back as steps allow: admission counts work for it.
    if (open.length === 0 || hasMemoryFor(open, estimate))
      return readingUs === 0 ? ROOM_NOW : { ...ROOM_NOW, readingUs }
    return { perAnswerUs: Math.ceil(meanUs / Math.max(1, heldCount)), isBarred: false, readingUs }
  }

  #reading() {
    const [room] = this.#pool.rooms.values()
    return room?.reading
  }

  #readingUntil(now: number, head: Head): number | undefined {
    if (!this.#hinders(now, head)) return undefined
    const isLastFree = this.#hinderingCount + 1 >= this.#pool.readyReplicaCount
    return head.lane.backlog.readingTime.barredUntil(now, this.#earned(now, head), isLastFree)
  }

  /** Until the first of a few replicas has read what keeps it closed: a step of prompts may be unread in an open one. */
  #unreadUs(now: number): number {
    let looks = 0
    let leastUs = Number.POSITIVE_INFINITY
    for (const room of this.#pool.rooms.values()) {
      if (!room.isReady || room.reading === undefined) continue
      const tokens = room.unreadTokens(now) - room.reading.stepTokens
      leastUs = Math.min(leastUs, tokens > 0 ? room.reading.readUs(tokens) : 0)
      if (++looks === LOOKS) break
    }
    return looks === 0 ? 0 : leastUs
  }

  /** The bar of the lane's head, what the hindering prompts between them cost of the share, and the newcomer's own. */
  #readingWaitUs(now: number, lane: PoolLane, estimate: Estimate): number {
    const reading = this.#reading()
    if (reading === undefined) return 0
    const isHindering = this.#hinders(now, { estimate, lane })
    // A bar that has just ended is put on again when the lane is next asked: until then the last verdict counts.
    const head = lane.isCounted || lane.isRoomless ? undefined : lane.head()
    if (head === undefined) {
      const until = isHindering ? this.#readingUntil(now, { estimate, lane }) : undefined
      if (until === undefined) return 0
      const earned = this.#earned(now, { lane, estimate })
      return Number.isFinite(until) ? until - now : reading.readUs(uncachedOf(estimate)) / earned
    }
    const earned = this.#earned(now, head as Candidate)
    const headUs = reading.readUs(uncachedOf((head as Candidate).estimate))
    const headUntil = this.#pool.barred.untilOf(lane) ?? Number.POSITIVE_INFINITY
    const untilUs = Number.isFinite(headUntil) ? Math.max(0, headUntil - now) : headUs / earned
    // The lane's prompts are taken to be like its head: its line may be long, and is not looked through.
    const betweenCount = lane.count - 1 + (isHindering ? 1 : 0)
    return untilUs + headUs + (betweenCount * headUs) / earned
  }

  /** Whether it leaves the others time for theirs within what they are promised. */
  #isMild(now: number, { estimate, lane }: Head): boolean {
    const readUs = this.#reading()?.readUs(uncachedOf(estimate)) ?? 0
    return readUs <= READING_TIME_DEFAULTS.mildRatio * this.#pool.promises.tightestBeside(now, lane.backlog)
  }

  /** Whether reading the prompt takes long enough to break what another active tenant is promised. */
  #hinders(now: number, { estimate, lane }: Head): boolean {
    const reading = this.#reading()
    if (reading === undefined || !isLongFor(reading, estimate)) return false
    const readUs = reading.readUs(uncachedOf(estimate))
    return readUs > this.#pool.promises.tightestBeside(now, lane.backlog) * READING_TIME_DEFAULTS.promiseRatio
  }

  /**
   * Microseconds of reading that the tenant earns per microsecond: its share of the replicas. Prompts that leave others time
   * for theirs may have what others leave over, too.
   */
  #earned(now: number, { lane, estimate }: Head): number {
    const active = activeBeside(now, lane.backlog, this.#pool.backlogs.values())
    const replicas = Math.max(1, this.#pool.readyReplicaCount)
    let asked = 0
    for (let i = 1; i < active.length; i++) asked += (active[i] as TenantBacklog).readingTime.asked(now)
    const leftOver = 1 - (READING_TIME_DEFAULTS.spareTimes * asked) / replicas
    if (lane.band === 'offline')
      return Math.max(READING_TIME_DEFAULTS.offlineMin, leftOver * READING_TIME_DEFAULTS.offlineRatio) * replicas
    const share = this.#pool.scale.sharesAmong(active, this.#pool.orgWeights)[0] as number
    const readUs = this.#reading()?.readUs(uncachedOf(estimate)) ?? 0
    const promiseUs = this.#pool.promises.tightestBeside(now, lane.backlog)
    if (this.#isMild(now, { lane, estimate })) return Math.max(share, leftOver) * replicas
    const isBreaking = replicas === 1 && readUs > READING_TIME_DEFAULTS.breakingFrom * promiseUs
    return (isBreaking ? share * READING_TIME_DEFAULTS.breakingRatio : share) * replicas
  }
}

const uncachedOf = ({ promptTokens, cachedTokens }: Estimate): number => promptTokens - cachedTokens

/** Memory alone: what else a limit may say against the answer changes from step to step. */
function hasMemoryFor(open: readonly ReplicaRoom[], estimate: Estimate): boolean {
  if (open.length > OPEN_LOOKS_MAX) return true
  for (const { ledger, kvTokensMax } of open)
    if (ledger.sequences === 0 || ledger.kvTokensWith(estimate) <= kvTokensMax) return true
  return false
}
