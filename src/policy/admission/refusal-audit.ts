import type { Instant } from '../../base/clock.ts'
import { SlackWindow } from './slack-window.ts'

/**
 * Would a request that was refused as too late have been in time, and everybody else as well?
 *
 * Only what happened afterwards can say so, never the prediction that refused. Two facts are waited for:
 *
 *   its own first token   a ticket of its lane that came later has its turn: the refused request would have had that
 *                         turn, and its first token came when that ticket's did, but for the longer or shorter prompt.
 *                         Or before that the pool has room that no ticket waits for: it would have begun then.
 *   everybody else's      its prompt would have put off all who came after it, by the time of the steps in which it is
 *                         read (and of their slowness lately), until the pool is calm: room, and no prompt to read. If
 *                         a ticket that came in that time was in time by less, it would have been late.
 *
 * Where a request was refused because answers that last hold the room, its own turn needs room for *it*, not only a replica
 * that is open; and the room that it would have taken comes back to those behind it only when the next answer ends.
 *
 * In time itself, and nobody late because of it: a *false reject*. Each refusal is judged by itself, as a replay of the
 * run with that one request admitted does (`bench/experiments/false-refusals.ts`). So the share says how often the
 * next request would have fitted, not how many would have fitted together: a pool that keeps a margin has many.
 *
 * Deliberately not: it changes no decision. A refusal that is undecided after `horizonUs` is judged by what is known:
 * without a turn it was right if its time is over. Memory is bounded: of more refusals than `watchedMax` in a horizon an
 * even sample is watched, and the others are counted as unjudged.
 *
 * Example: refused at 0 s with 500 ms for its first token and 40 ms of reading. The next ticket of its lane has its
 * first token at 420 ms, from a prompt as long: in time. Until the pool is calm, at 3 s, the closest first token was in
 * time by 65 ms: a false reject. By 30 ms: right, because that ticket would have been late.
 */
export const REFUSAL_AUDIT_DEFAULTS = {
  /** Refusals under watch. At 128 a second all of them, however long each takes to judge. */
  watchedMax: 1_024,
  /**
   * Microseconds in which tickets that come after it count as put off. Those that come later would have been admitted or
   * refused by a gateway that knew of it.
   */
  behindUs: 5_000_000,
  /** Microseconds after which a refusal is judged by what is known: the first tokens of those behind it have come. */
  horizonUs: 8_000_000,
}

export interface AuditedRefusal {
  readonly ticketId: string
  /** Key and band: those who come later in the same lane have their turns later. */
  readonly laneId: string
  readonly promptTokens: number
  /** From its turn to its first token on an engine that does nothing else. */
  readonly aloneUs: number
  /** From its first token to its last. */
  readonly decodeUs: number
  /** By how much it would have put off those behind it, as the engine's step times have it. */
  readonly delayUs: number
  /** And, where it found no room, by how much because the room that it would have taken comes back later. */
  readonly roomUs?: number
  /** Whether it would find room at a replica that is open; absent: it would. */
  readonly hasRoom?: () => boolean
  readonly firstTokenBy: Instant
  readonly finishBy: Instant
}

/** A first token that came, and of which attempt. */
export interface AuditedFirstToken {
  readonly ticketId: string
  readonly admittedAt: Instant
  /** From its turn to its first token, and what the engine's step times made likely; undefined where these are unknown. */
  readonly tookUs: number
  readonly expectedUs: number | undefined
  /** From a turn to a first token of its prompt on an engine that does nothing else. */
  readonly aloneUs: number
  /** What was left of the promise; negative when late, Infinity where none was given. */
  readonly slackUs: number
}

export interface RefusalAuditView {
  readonly falseRejects: number
  readonly rightRejects: number
  readonly unjudged: number
  readonly watched: number
}

interface Watched {
  readonly refusal: AuditedRefusal
  readonly at: Instant
  firstTokenAt: Instant | undefined
  /** When the pool had room and nothing to read: from then on its work puts off no ticket. */
  calmAt: Instant | undefined
  isJudged: boolean
}

export class RefusalAudit {
  /** Hears of every judgement: for experiments and tests. */
  onJudged: (refusal: AuditedRefusal, isFalse: boolean) => void = () => {}
  readonly #options: typeof REFUSAL_AUDIT_DEFAULTS
  readonly #slacks: SlackWindow
  /** Undecided, oldest first; judged ones are dropped from the front. */
  #open: Watched[] = []
  /** Without a turn, by lane, oldest first. */
  readonly #turnless = new Map<string, Watched[]>()
  /** By the ticket whose first token says when theirs would have come. */
  readonly #byWitness = new Map<string, Watched[]>()
  /** Convicted since they were last taken. */
  #wrong: AuditedRefusal[] = []
  /** What first tokens took and were expected to take, lately. */
  #tookUs = 0
  #expectedUs = 0
  #watched = 0
  #falseRejects = 0
  #rightRejects = 0
  #unjudged = 0

  constructor(options = REFUSAL_AUDIT_DEFAULTS) {
    this.#options = options
    this.#slacks = new SlackWindow(options.horizonUs)
  }

  /** Whether anything is watched: there is nothing to tell otherwise. */
  get isWatching(): boolean {
    return this.#watched > 0
  }

  refused(now: Instant, refusal: AuditedRefusal): void {
    this.#expire(now)
    if (Math.max(this.#open.length, this.#watched) >= this.#watchedMaxAt(now)) {
      this.#unjudged++
      return
    }
    const watched: Watched = { refusal, at: now, firstTokenAt: undefined, calmAt: undefined, isJudged: false }
    this.#watched++
    this.#open.push(watched)
    const lane = this.#turnless.get(refusal.laneId)
    if (lane === undefined) this.#turnless.set(refusal.laneId, [watched])
    else lane.push(watched)
  }

  /** A ticket has its turn: those of its lane that were refused before it came would have had theirs. */
  granted(ticketId: string, laneId: string, admittedAt: Instant): void {
    const lane = this.#turnless.get(laneId)
    if (lane === undefined) return
    const later = lane.findIndex((watched) => watched.at > admittedAt)
    const count = later < 0 ? lane.length : later
    if (count === 0) return
    this.#byWitness.set(ticketId, [...(this.#byWitness.get(ticketId) ?? []), ...lane.splice(0, count)])
    if (lane.length === 0) this.#turnless.delete(laneId)
  }

  began(now: Instant, { ticketId, admittedAt, aloneUs, slackUs, tookUs, expectedUs }: AuditedFirstToken): void {
    if (expectedUs !== undefined) {
      this.#tookUs = this.#tookUs * KEEP + tookUs
      this.#expectedUs = this.#expectedUs * KEEP + expectedUs
    }
    this.#slacks.observe(admittedAt, slackUs)
    const watching = this.#byWitness.get(ticketId)
    if (watching === undefined) return
    this.#byWitness.delete(ticketId)
    for (const watched of watching) this.#learnOwn(now, watched, now + watched.refusal.aloneUs - aloneUs)
  }

  /** A ticket has ended. If no token came of it, it says nothing about those who would have had its turn. */
  ended(ticketId: string): void {
    const watching = this.#byWitness.get(ticketId)
    if (watching === undefined) return
    this.#byWitness.delete(ticketId)
    for (const watched of watching) this.#drop(watched)
  }

  /**
   * The pool has room that no ticket waits for: what was refused and has had no turn would begin now, and take
   * `prefillUs` to its first token. `isCalm`: nor has a replica with room a prompt to read, so that
   * whatever was put off is caught up with.
   */
  sawRoom(now: Instant, isCalm: boolean, prefillUs: (refusal: AuditedRefusal) => number): void {
    this.#expire(now)
    let looks = 0
    // A lane that stays goes to the end, and is not asked twice.
    let toAsk = this.#turnless.size
    for (const [laneId, lane] of this.#turnless) {
      if (looks === ROOM_LOOKS_MAX || toAsk-- === 0) break
      // The lane's first speaks for all: what they ask for is alike.
      const isRoomless = lane[0]?.refusal.hasRoom?.() === false
      this.#turnless.delete(laneId)
      if (isRoomless) {
        looks++
        this.#turnless.set(laneId, lane)
      } else for (const watched of lane) this.#learnOwn(now, watched, now + prefillUs(watched.refusal))
    }
    if (!isCalm) return
    const open = this.#open
    this.#open = []
    for (const watched of open) {
      // Room that it would hold for the time of an answer is not caught up with by a calm moment.
      if ((watched.refusal.roomUs ?? 0) > 0) {
        if (!watched.isJudged) this.#open.push(watched)
        continue
      }
      watched.calmAt = now
      if (watched.firstTokenAt !== undefined) this.#judge(now, watched)
    }
  }

  /** The refusals that turned out false since the last call, as many as may be watched at most. */
  takeFalse(now: Instant): readonly AuditedRefusal[] {
    this.#expire(now)
    const wrong = this.#wrong
    this.#wrong = []
    return wrong
  }

  view(now: Instant): RefusalAuditView {
    this.#expire(now)
    return {
      falseRejects: this.#falseRejects,
      rightRejects: this.#rightRejects,
      unjudged: this.#unjudged,
      watched: this.#watched,
    }
  }

  /** The older the oldest, the more may be watched: so the watched are spread evenly over the horizon. */
  #watchedMaxAt(now: Instant): number {
    const { watchedMax, horizonUs } = this.#options
    const oldestAt = this.#open[0]?.at ?? now
    return watchedMax * Math.min(1, (now - oldestAt + SPREAD_US) / horizonUs)
  }

  /** Of what first tokens were expected to take, what they took lately. */
  get #slownessRatio(): number {
    return this.#expectedUs > 0 ? this.#tookUs / this.#expectedUs : 1
  }

  #learnOwn(now: Instant, watched: Watched, firstTokenAt: Instant): void {
    if (watched.isJudged) return
    watched.firstTokenAt = firstTokenAt
    const { firstTokenBy, finishBy, decodeUs } = watched.refusal
    const isLate = firstTokenAt > firstTokenBy || firstTokenAt + decodeUs > finishBy
    if (isLate || watched.calmAt !== undefined) this.#judge(now, watched)
  }

  /** Called with everything known that will be. */
  #judge(now: Instant, watched: Watched): void {
    if (watched.isJudged) return
    const { refusal, at, firstTokenAt, calmAt } = watched
    const { firstTokenBy, finishBy, decodeUs, delayUs, roomUs = 0 } = refusal
    const { behindUs } = this.#options
    const isInTime = firstTokenAt !== undefined && firstTokenAt <= firstTokenBy && firstTokenAt + decodeUs <= finishBy
    const isFalse =
      isInTime &&
      this.#slacks.least(at, Math.min(calmAt ?? now, at + behindUs)) >= roomUs + delayUs * this.#slownessRatio
    watched.isJudged = true
    this.#watched--
    if (isFalse) this.#falseRejects++
    else this.#rightRejects++
    if (isFalse && this.#wrong.length < this.#options.watchedMax) this.#wrong.push(refusal)
    this.onJudged(refusal, isFalse)
  }

  #drop(watched: Watched): void {
    if (watched.isJudged) return
    watched.isJudged = true
    this.#watched--
    this.#unjudged++
  }

  #expire(now: Instant): void {
    const { horizonUs } = this.#options
    let count = 0
    for (const watched of this.#open) {
      if (!watched.isJudged && watched.at + horizonUs > now) break
      count++
      if (watched.isJudged) continue
      const { firstTokenBy, finishBy, laneId } = watched.refusal
      const lane = this.#turnless.get(laneId)
      if (lane?.[0] === watched && lane.shift() !== undefined && lane.length === 0) this.#turnless.delete(laneId)
      // Its time is not over, and nobody can say when it would have had its turn.
      if (watched.firstTokenAt === undefined && Math.min(firstTokenBy, finishBy) > now) this.#drop(watched)
      else this.#judge(now, watched)
    }
    if (count > 0) this.#open.splice(0, count)
  }
}

/** First tokens of which the slowness is told: at twenty a second, those of the last seconds. */
const KEEP = 63 / 64

/** Lanes without room that are asked again at one look: the others have their turn at the next. */
const ROOM_LOOKS_MAX = 8

/** A ring that is empty takes what comes in a second. */
const SPREAD_US = 1_000_000
