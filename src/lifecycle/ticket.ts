import { Cancellation } from '../base/cancellation.ts'
import type { Instant } from '../base/clock.ts'
import type { CorpusFacts } from '../domain/corpus.ts'
import type { ChoiceDelta, Delta, Usage } from '../domain/delta.ts'
import type { Lease } from '../domain/fleet.ts'
import { Gaps } from '../domain/gaps.ts'
import type { ModelPrice } from '../domain/ledger.ts'
import type { Placement } from '../domain/placement.ts'
import type { Plan } from '../domain/plan.ts'
import { isGenerative, type Request } from '../domain/request.ts'
import type { ScreenFinding } from '../domain/screening.ts'
import type { Patience, Prediction } from '../policy/admission/feasibility.ts'
import type { Reservation } from '../policy/budgets/budgets.ts'
import type { Offer } from '../policy/dispatch/offer.ts'
import { FREE } from '../policy/money/price-list.ts'
import type { AnswerRecording } from './answers/answer-recording.ts'
import type { Lesson } from './learning/lesson.ts'
import type { FoundAnswer } from './ports.ts'
import type { Retrieved } from './retrieval-ports.ts'
import type { PickedRelease } from './rollout/pick-release.ts'
import type { Check } from './screening/check.ts'

/**
 * Our record of serving one request, from its arrival to its one ending, in three stages:
 *
 *   Ticket ──admission──▶ Admitted ──a turn──▶ Attempt (again for a second try)
 *
 * A stage exists once its step has happened, and each stage knows the one before. So a function that runs after
 * admission takes an `Admitted`, one that runs after the grant takes an `Attempt`, and neither asks whether that step
 * has happened. Only `lifecycle/` writes to the stages.
 *
 * Law L5: the stamps are in order, arrivedAt ≤ admitted.at ≤ attempt.grantedAt ≤ firstTokenAt ≤ settledAt.
 *
 * Example: a ticket whose first replica is lost has one `Admitted` and, one after the other, two `Attempt`s;
 * `ticket.attempt` is the last of them. A ticket that is rejected has neither.
 */
export type Phase = 'arrived' | 'waiting' | 'running' | 'settled'

export class Ticket {
  readonly request: Request
  /** Cancelled by the client, by a stalled reader, by a deadline, or by shutdown. */
  readonly cancellation: Cancellation
  /** Place in the platform's bag of live tickets. */
  bagIndex = -1
  phase: Phase = 'arrived'
  /** What it is sold at, as the list was when it arrived. */
  price: ModelPrice = FREE
  /** The release chosen for the model that the request names; a plan on a lower rung may use a smaller model's. */
  release: PickedRelease | undefined
  /** The corpus that the request names, as it was on arrival; undefined when the lookup gave no answer. */
  corpus: CorpusFacts | undefined
  /** Microseconds of the retrieval budget that the lookup of the corpus took. */
  lookedUpUs = 0
  /** The answer from the cache that this ticket was given. */
  cached: CachedAnswer | undefined
  /** The answer as it is written, to be kept in the cache. */
  recording: AnswerRecording | undefined
  /** The judging of the request; undefined where nothing is judged. */
  check: Check | undefined
  /** What was found in passages of a corpus, and whether they could not be judged. */
  passageFindings: readonly ScreenFinding[] = []
  passagesUnjudged = false
  /** What a request holds of its budgets that was blocked before it was admitted. */
  counted: Reservation | undefined
  admitted: Admitted | undefined
  /** The last attempt: the one that runs, or the one that ended the ticket. */
  attempt: Attempt | undefined
  attempts = 0
  /** Attempts of a release that was on trial: these do not count against `ATTEMPTS_MAX`. */
  canaryAttempts = 0
  /** Waits for an engine that had no room: each of them adds an attempt. */
  roomWaits = 0
  /** Attempts that were called off for an online ticket: these do not count against `ATTEMPTS_MAX` either. */
  callOffs = 0
  /** The model's answer was a refusal to answer. */
  isRefusedByModel = false
  /** What the answer was ended for by its screen. */
  blockedBy: ScreenFinding | undefined
  firstTokenAt: Instant | undefined
  lastTokenAt: Instant | undefined
  /** Tokens that went to the client: the usage, when the engine reports none. */
  outputTokens = 0
  /** Tokens of one choice that came with the first delta: no gap lies before them. */
  #firstTokens = 0
  /** When the last delta came that had a whole token. */
  #countedAt: Instant = 0
  #gaps: Gaps | undefined

  constructor(request: Request, cancellation: Cancellation = new Cancellation()) {
    this.request = request
    this.cancellation = cancellation
  }

  get id(): string {
    return this.request.id
  }

  get gaps(): Gaps | undefined {
    return this.#gaps
  }

  /** Takes note of a delta that is about to reach the client. */
  noteDelta(now: Instant, { tokens, innerGapUs, choices, result }: Delta): void {
    // An answer in one piece has no tokens, and counts as its own first token.
    if (tokens === 0 && result === undefined) {
      // A part of a token, or a token beyond the bound by a count that was too high: the answer still goes on.
      if (this.firstTokenAt !== undefined && choices?.some(hasText) === true) this.lastTokenAt = now
      return
    }
    const isFirst = this.firstTokenAt === undefined
    if (isFirst) {
      this.firstTokenAt = now
      this.#firstTokens = tokens / Math.max(1, choices?.length ?? 1)
    }
    // A delta of many tokens may say how far apart they came; else they share the time since the last delta.
    if (tokens > 1 && innerGapUs !== undefined) this.#observeGap(innerGapUs, isFirst ? tokens - 1 : tokens)
    else if (!isFirst) {
      const count = Math.max(1, tokens)
      this.#observeGap(Math.round((now - this.#countedAt) / count), count)
    }
    this.lastTokenAt = now
    this.#countedAt = now
    this.outputTokens += tokens
  }

  /** The attempt whose deltas were noted is repeated, and its client has seen none of them. */
  forgetDeltas(): void {
    this.isRefusedByModel = false
    this.firstTokenAt = undefined
    this.lastTokenAt = undefined
    this.outputTokens = 0
    this.#firstTokens = 0
    this.#countedAt = 0
    this.#gaps = undefined
  }

  /** The deltas had this many tokens in all, by the engine's own count: each had its share. Returns the correction. */
  trueUp(streamedTokens: number): number {
    if (this.outputTokens === 0) return 1
    const ratio = streamedTokens / this.outputTokens
    this.#firstTokens *= ratio
    this.outputTokens = streamedTokens
    return ratio
  }

  /** Gaps between the tokens of one choice, from its first delta to its last. */
  get gapCount(): number {
    return Math.max(0, this.outputTokens / this.request.choiceCount - this.#firstTokens)
  }

  #observeGap(gapUs: number, count: number): void {
    this.#gaps ??= new Gaps()
    this.#gaps.observe(gapUs, count)
  }
}

const hasText = ({ content, extra }: ChoiceDelta): boolean => Boolean(content) || extra !== undefined

/** The one reason for which the platform itself calls off tenants' tickets; all others are the client's. */
const SHUTTING_DOWN = 'shutting-down'

export const isCalledOffByPlatform = (because: string): boolean => because === SHUTTING_DOWN

type CachedAnswer = Extract<FoundAnswer, { kind: 'hit' }> & {
  /** The request counts against its budgets, without tokens. */
  readonly reservation: Reservation
}

/** What admission decided: exists from the verdict to the ticket's end. */
export class Admitted {
  readonly ticket: Ticket
  readonly at: Instant
  /** How long the first token and the finish may take, counted from `at`. */
  readonly patience: Patience
  /** What is held of the budgets; undefined for a tenant over its budget in observe-only mode. */
  readonly reservation: Reservation | undefined
  /** Made again with the passages that were found, for a lighter second try, or for another release. */
  plan: Plan
  /** The claim to a place in the queue, kept for a move to another pool and for a second try. */
  offer: Offer
  /** What admission predicted for the release of its verdict; undefined after a change of release. */
  predicted: Prediction | undefined
  /** What retrieval found, for requests that ask for passages. */
  retrieved: Retrieved | undefined
  /** Why there is an attempt after the first; undefined before the first. */
  again: string | undefined

  constructor(ticket: Ticket, verdict: AdmittedFacts) {
    this.ticket = ticket
    this.at = verdict.at
    this.patience = verdict.patience
    this.reservation = verdict.reservation
    this.plan = verdict.plan
    this.offer = verdict.offer
    this.predicted = verdict.predicted
  }

  /** The pool whose queue the ticket joined last. */
  get poolId(): string {
    return this.offer.poolId
  }

  /** From the next offer on, the ticket's pool is this one. */
  sendTo(poolId: string): void {
    this.offer = { ...this.offer, poolId }
  }
}

type AdmittedFacts = Pick<Admitted, 'at' | 'patience' | 'reservation' | 'plan' | 'offer' | 'predicted'>

/** Whether the replica of an attempt makes progress (`fleet/liveness.ts`). */
export interface AttemptWatch {
  /** Why the attempt was ended; undefined while it was not. */
  readonly stalledBecause: string | undefined
  /** A part of the answer has come. */
  moved(tokens: number): void
  /** Its reader takes nothing more until then. */
  held(until: Promise<void>): void
}

/** One turn on one replica. The lease is ours from the grant until `isOver`. */
export class Attempt {
  readonly admitted: Admitted
  readonly lease: Lease
  /** The numbers behind the choice of the replica; undefined where a plain rule chose it. */
  readonly placement: Placement | undefined
  readonly grantedAt: Instant
  /** The plan that this attempt runs. */
  readonly plan: Plan
  /** 1 for the first attempt. */
  readonly nth: number
  isOver = false
  /** The platform called it off, for an online ticket that would have waited: its ticket takes another turn. */
  isCalledOff = false
  /** From the turn to the first token, as the replica's load at the turn makes likely; undefined where steps are unknown. */
  firstTokenExpectedUs: number | undefined
  /** Whether its replica makes progress; undefined where that is not watched. */
  watch: AttemptWatch | undefined
  /** What it teaches of an engine whose steps are learned. */
  lesson: Lesson | undefined
  /** When the first token came that the relay held for the verdict: then its engine had read the prompt. */
  readAt: Instant | undefined
  /** Streams of its pool are handed over only when they are whole. */
  isBuffered = false
  /** Tokens that the engine worked on for this attempt, as far as is known; undefined until the attempt is over. */
  used: Usage | undefined
  /** Weighted tokens of the attempt that no tenant pays for. */
  unpaidCost = 0
  /** The tenant pays for it, or it still runs; else the platform does. */
  isPaid = true

  constructor(admitted: Admitted, turn: Pick<Attempt, 'lease' | 'placement' | 'grantedAt' | 'nth'>) {
    this.admitted = admitted
    this.lease = turn.lease
    this.placement = turn.placement
    this.grantedAt = turn.grantedAt
    this.plan = admitted.plan
    this.nth = turn.nth
  }

  get ticket(): Ticket {
    return this.admitted.ticket
  }

  get tokensPerChoice(): number {
    return this.ticket.outputTokens / this.ticket.request.choiceCount
  }

  /**
   * A whole answer in one piece does not say when its first token came, nor does a stream that was gathered. The price
   * of a transit is in tokens, but no engine reads it as a prompt.
   */
  get isTelling(): boolean {
    if (this.isBuffered) return false
    const { request, gaps } = this.ticket
    if (request.kind === 'transit') return false
    return request.isStreamed || gaps !== undefined || !isGenerative(request.kind)
  }

  /** Fairness charged the predicted length at the grant; tokens beyond it are charged as they come. */
  get isLongerThanPredicted(): boolean {
    return this.ticket.outputTokens > this.plan.estimate.outputTokens
  }
}
