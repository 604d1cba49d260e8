import type { Clock, Instant } from '../base/clock.ts'
import type { ChoiceDelta, Delta, Usage } from '../domain/delta.ts'
import { BUDGET_EMPTY, CONTENT_FILTER, type Refusal } from '../domain/outcome.ts'
import { FULL_RUNG } from '../domain/plan.ts'
import { isGenerative } from '../domain/request.ts'
import type { ScreenFinding, Screening } from '../domain/screening.ts'
import type { AnswerScreened } from '../domain/screening-entry.ts'
import type { Spend } from '../policy/budgets/quota.ts'
import type { AnswerText } from './answers/answer-text.ts'
import { AnswerMeter } from './meter-answer.ts'
import type { AnswerHead, DeltaSink, Sink } from './ports.ts'
import { ScreenedAnswer } from './screen-answer.ts'
import type { Check } from './screening/check.ts'
import { screenedHead } from './screening/screened-head.ts'
import type { AnswerScreen } from './screening-ports.ts'
import type { Admitted, Attempt, Ticket } from './ticket.ts'

/**
 * Every delta passes here once on its way from the backend to the client: stamped, counted, screened, handed on. The
 * answer's head goes out with the first delta that is released, because until then the ticket may still be tried elsewhere
 * or refused.
 */
export interface RelayWatcher {
  /** The attempt's first token has come. */
  begun(attempt: Attempt, firstTokenAt: Instant): void
  /** The attempt's first token has come, and waits for the verdict. */
  held(attempt: Attempt, at: Instant): void
  /** The attempt's answer is longer than predicted; called with every delta from there on. */
  grown(attempt: Attempt): void
  /** What was used so far, of an answer whose budgets count money or tokens. False when a hard one is empty. */
  drawOn(admitted: Admitted, used: Spend): boolean
  /** Looks at an answer on its way out; undefined where nobody does. */
  screenAnswer(screening: Screening): AnswerScreen | undefined
}

/** OpenAI's two ways to say no: a `refusal` in place of content, and an answer that the content filter ended. */
function isRefusal({ finishReason, extra }: ChoiceDelta): boolean {
  return finishReason === 'content_filter' || typeof extra?.['refusal'] === 'string'
}

export class Relay implements DeltaSink {
  readonly #clock: Clock
  readonly #ticket: Ticket
  readonly #sink: Sink
  readonly #watcher: RelayWatcher
  #hasStarted = false
  #reader: AnswerText | undefined
  #meter: AnswerMeter | undefined
  #screened: ScreenedAnswer | undefined

  constructor(clock: Clock, ticket: Ticket, sink: Sink, watcher: RelayWatcher) {
    this.#watcher = watcher
    this.#clock = clock
    this.#ticket = ticket
    this.#sink = sink
    if (ticket.request.screening !== undefined) this.#screened = this.#makeScreen(ticket.request.screening)
  }

  /** Whether the client has seen something of the answer: then there is no second try. */
  get hasStarted(): boolean {
    return this.#hasStarted
  }

  /** Hands a copy of every delta to a reader that compares this answer with another. */
  readAlong(reader: AnswerText): void {
    this.#reader = reader
  }

  /** The ticket has ended, with an answer or without. */
  over(): void {
    this.#reader?.over()
  }

  write(delta: Delta): Promise<void> | undefined {
    const watch = this.#ticket.attempt?.watch
    watch?.moved(delta.tokens)
    const wait = this.#take(delta)
    if (wait !== undefined) watch?.held(wait)
    return wait
  }

  #take(delta: Delta): Promise<void> | undefined {
    const ticket = this.#ticket
    if (ticket.cancellation.isCancelled || ticket.attempt?.isCalledOff === true) return undefined
    if (ticket.check?.isPending === true) return this.#holdBack(delta, ticket.check)
    const hadBegun = ticket.firstTokenAt !== undefined
    ticket.noteDelta(this.#clock.now(), delta)
    if (delta.choices?.some(isRefusal) === true) ticket.isRefusedByModel = true
    // An answer from the cache has no attempt, and nobody learns from its times.
    const { attempt, firstTokenAt } = ticket
    if (attempt !== undefined && !hadBegun && firstTokenAt !== undefined)
      this.#watcher.begun(attempt, attempt.readAt ?? firstTokenAt)
    if (ticket.admitted?.reservation?.isMetered === true) {
      const last = this.#metered(ticket.admitted, delta)
      if (last !== undefined) return this.#end(last)
    }
    if (hadBegun) attempt?.lesson?.grown(ticket.lastTokenAt ?? 0, attempt.tokensPerChoice)
    if (attempt?.isLongerThanPredicted === true) this.#watcher.grown(attempt)
    return this.#screened === undefined ? this.#pass(delta) : this.#passScreened(this.#screened.write(delta))
  }

  /** What the answer's screen has found so far. */
  get findings(): readonly ScreenFinding[] {
    return this.#screened?.screen.findings ?? []
  }

  /** The answer is whole: what its screen still holds goes out. Called before the ticket settles. */
  flush(): void {
    if (this.#screened !== undefined && !this.#ticket.cancellation.isCancelled)
      void this.#passScreened(this.#screened.flush())
  }

  /** What the screen of the answer found, for the journal; undefined where that is nothing. */
  screened(now: Instant): AnswerScreened | undefined {
    return this.#screened?.entryOf(now, this.#ticket)
  }

  /** The attempt is repeated: what was held of its answer is forgotten. Only while the client has seen nothing. */
  startOver(): void {
    const { screening } = this.#ticket.request
    if (screening === undefined || this.#screened === undefined) return
    this.#ticket.forgetDeltas()
    this.#meter = undefined
    this.#screened = this.#makeScreen(screening)
  }

  #makeScreen(screening: Screening): ScreenedAnswer | undefined {
    const screen = this.#watcher.screenAnswer(screening)
    if (screen === undefined) return undefined
    const { kind, choiceCount } = this.#ticket.request
    return new ScreenedAnswer(screen, isGenerative(kind) ? choiceCount : 0)
  }

  /** Whatever keeps or compares answers sees what the client sees, but for values that only the client gets. */
  #pass(delta: Delta): Promise<void> | undefined {
    if (!this.#hasStarted) this.#start()
    this.#ticket.recording?.note(delta)
    this.#reader?.write(delta)
    return this.#sink.write(delta)
  }

  #passScreened(released: Delta | undefined): Promise<void> | undefined {
    const written = released === undefined ? undefined : this.#pass(released)
    const blockedBy = this.#screened?.blockedBy
    if (blockedBy !== undefined && this.#ticket.blockedBy === undefined) {
      this.#ticket.blockedBy = blockedBy
      this.#ticket.cancellation.cancel(CONTENT_FILTER)
    }
    return written
  }

  /**
   * No byte of an answer goes out before the verdict; the engine is told to wait. A delta whose attempt has been given
   * up meanwhile, for another, is dropped.
   */
  async #holdBack(delta: Delta, check: Check): Promise<void> {
    const { attempt } = this.#ticket
    if (attempt !== undefined) this.#watcher.held(attempt, this.#clock.now())
    await check.whenOver()
    if (this.#ticket.attempt === attempt && this.#ticket.phase === 'running') await this.#take(delta)
  }

  #metered(admitted: Admitted, delta: Delta): Delta | undefined {
    this.#meter ??= new AnswerMeter(admitted, (used) => this.#watcher.drawOn(admitted, used))
    return this.#meter.lastOf(delta)
  }

  /** A budget is empty: the client gets this delta and no other, and the engine is told to stop. */
  #end(last: Delta): Promise<void> | undefined {
    const written = this.#screened === undefined ? this.#pass(last) : this.#passScreened(this.#screened.write(last))
    this.#ticket.cancellation.cancel(BUDGET_EMPTY)
    return written
  }

  #start(): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    const head = headOf(this.#ticket)
    this.#sink.start(this.#screened === undefined ? head : this.#screened.headOf(head))
  }

  /** The answer is whole. An answer without a single delta still has a head. */
  finish(usage: Usage): void {
    this.#start()
    if (this.#screened === undefined) this.#sink.finish(usage)
    else this.#sink.finish(this.#screened.screen.closing(usage), this.#screened.lateFlags)
  }

  /** The answer breaks off, or there is none. What is held stays held: half a value may be in it. */
  fail(refusal: Refusal): void {
    this.#sink.fail(this.#screened === undefined ? refusal : this.#screened.screen.refusal(refusal))
  }
}

function headOf(ticket: Ticket): AnswerHead {
  const { admitted, cached, request } = ticket
  const screened = request.screening && { screened: screenedHead(request.screening, ticket) }
  if (admitted === undefined) {
    const known = cached === undefined ? {} : { cached: { similarity: cached.similarity, saved: cached.answer.usage } }
    return { model: request.model, rung: FULL_RUNG.name, ...known, ...screened }
  }
  const { plan, retrieved } = admitted
  const found = retrieved === undefined ? {} : { retrieved }
  return { model: plan.model, releaseId: plan.releaseId, rung: plan.rung.name, ...found, ...screened }
}
