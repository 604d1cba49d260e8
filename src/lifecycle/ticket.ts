import { Cancellation } from '../base/cancellation.ts'
import type { Instant } from '../base/clock.ts'
import type { CorpusFacts } from '../domain/corpus.ts'
import type { Delta } from '../domain/delta.ts'
import type { Lease } from '../domain/fleet.ts'
import { Gaps } from '../domain/gaps.ts'
import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import type { Patience, Prediction } from '../policy/admission/feasibility.ts'
import type { Reservation } from '../policy/budgets/budgets.ts'
import type { Offer } from '../policy/dispatch/offer.ts'
import type { AnswerRecording } from './answers/answer-recording.ts'
import type { FoundAnswer } from './ports.ts'
import type { Retrieved } from './retrieval-ports.ts'

/**
 * Our record of serving one request, from its arrival to its one ending. Only `lifecycle/` mutates it.
 *
 * Stamps are set once, in this order (law L5): arrivedAt ≤ admittedAt ≤ grantedAt ≤ firstTokenAt ≤ settledAt.
 */
export type Phase = 'arrived' | 'waiting' | 'running' | 'settled'

export class Ticket {
  readonly request: Request
  /** Called off by the client, by a stalled reader, by a deadline, or by shutdown. */
  readonly cancellation: Cancellation
  /** Among the platform's live tickets. */
  bagIndex = -1
  phase: Phase = 'arrived'
  /** The release that was chosen of the model that was asked for; `plan.releaseId` may be a smaller model's. */
  releaseId: string | undefined
  /** Why that one, where there was a choice. */
  releaseBecause: string | undefined
  plan: Plan | undefined
  poolId: string | undefined
  /** What it offered the dispatcher: its claim to a place, kept for a second try. */
  offer: Offer | undefined
  /** What admission predicted, to be held against what happens. */
  predicted: Prediction | undefined
  patience: Patience | undefined
  /** What its budgets hold for it, from admission to the end. */
  reservation: Reservation | undefined
  /** The corpus that it asked for, as it was when it came; undefined when that could not be found out. */
  corpus: CorpusFacts | undefined
  /** What looking that up took of the time for passages. */
  lookedUpUs = 0
  /** What retrieval brought, when it was asked for. */
  retrieved: Retrieved | undefined
  /** The answer that was known already, and that it got. */
  cached: Extract<FoundAnswer, { kind: 'hit' }> | undefined
  /** What it is being answered, for those who ask the same after it. */
  recording: AnswerRecording | undefined
  lease: Lease | undefined
  /** Where it ran last. */
  replicaId: string | undefined
  attempts = 0
  /** Of those, tries of a release that was being tried out: they use up none of the others. */
  canaryAttempts = 0
  /** The model answered that it will not answer. */
  isRefusedByModel = false
  admittedAt: Instant | undefined
  /** Of the last turn: a ticket that was tried twice waited until its second one. */
  grantedAt: Instant | undefined
  firstTokenAt: Instant | undefined
  lastTokenAt: Instant | undefined
  /** Tokens that went to the client: what is counted when nobody tells us the usage. */
  outputTokens = 0
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

  /** Fairness charged for the predicted length; from here on it charges as the tokens come. */
  get isLongerThanPredicted(): boolean {
    return this.plan !== undefined && this.outputTokens > this.plan.estimate.outputTokens
  }

  /** Takes note of a delta that is about to reach the client. */
  noteDelta(now: Instant, { tokens, innerGapUs, result }: Delta): void {
    // An answer in one go has no tokens: it is its own first one.
    if (tokens === 0 && result === undefined) return
    const isFirst = this.firstTokenAt === undefined
    if (isFirst) this.firstTokenAt = now
    // A delta of many tokens says how far apart they came; else the time since the last one is the only gap known.
    if (tokens > 1 && innerGapUs !== undefined) this.#observeGap(innerGapUs, isFirst ? tokens - 1 : tokens)
    else if (!isFirst) this.#observeGap(now - (this.lastTokenAt ?? now), 1)
    this.lastTokenAt = now
    this.outputTokens += tokens
  }

  #observeGap(gapUs: number, count: number): void {
    this.#gaps ??= new Gaps()
    this.#gaps.observe(gapUs, count)
  }
}
