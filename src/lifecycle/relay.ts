import type { Clock, Instant } from '../base/clock.ts'
import type { ChoiceDelta, Delta, Usage } from '../domain/delta.ts'
import { BUDGET_EMPTY, type Refusal } from '../domain/outcome.ts'
import { FULL_RUNG } from '../domain/plan.ts'
import type { Spend } from '../policy/budgets/quota.ts'
import type { AnswerText } from './answers/answer-text.ts'
import { AnswerMeter } from './meter-answer.ts'
import type { AnswerHead, DeltaSink, Sink } from './ports.ts'
import type { Admitted, Attempt, Ticket } from './ticket.ts'

/**
 * Every delta passes here once on its way from the backend to the client: stamped, counted, handed on. The answer's
 * head goes out with the first delta, because until then the ticket may still be tried elsewhere or refused.
 */
export interface RelayWatcher {
  /** The attempt's first token has come. */
  begun(attempt: Attempt, firstTokenAt: Instant): void
  /** The attempt's answer is longer than predicted; called with every delta from there on. */
  grown(attempt: Attempt): void
  /** What was used so far, of an answer whose budgets count money or tokens. False when a hard one is empty. */
  drawOn(admitted: Admitted, used: Spend): boolean
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

  constructor(clock: Clock, ticket: Ticket, sink: Sink, watcher: RelayWatcher) {
    this.#watcher = watcher
    this.#clock = clock
    this.#ticket = ticket
    this.#sink = sink
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
    const ticket = this.#ticket
    if (ticket.cancellation.isCancelled) return undefined
    const hadBegun = ticket.firstTokenAt !== undefined
    ticket.noteDelta(this.#clock.now(), delta)
    if (delta.choices?.some(isRefusal) === true) ticket.isRefusedByModel = true
    this.#start()
    // An answer from the cache has no attempt, and nobody learns from its times.
    const { attempt, firstTokenAt } = ticket
    if (attempt !== undefined && !hadBegun && firstTokenAt !== undefined) this.#watcher.begun(attempt, firstTokenAt)
    if (ticket.admitted?.reservation?.isMetered === true) {
      const last = this.#metered(ticket.admitted, delta)
      if (last !== undefined) return this.#end(last)
    }
    ticket.recording?.note(delta)
    if (hadBegun) attempt?.lesson?.grown(ticket.lastTokenAt ?? 0, attempt.tokensPerChoice)
    if (attempt?.isLongerThanPredicted === true) this.#watcher.grown(attempt)
    this.#reader?.write(delta)
    return this.#sink.write(delta)
  }

  #metered(admitted: Admitted, delta: Delta): Delta | undefined {
    this.#meter ??= new AnswerMeter(admitted, (used) => this.#watcher.drawOn(admitted, used))
    return this.#meter.lastOf(delta)
  }

  /** A budget is empty: the client gets this delta and no other, and the engine is told to stop. */
  #end(last: Delta): Promise<void> | undefined {
    this.#reader?.write(last)
    const written = this.#sink.write(last)
    this.#ticket.cancellation.cancel(BUDGET_EMPTY)
    return written
  }

  #start(): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    this.#sink.start(headOf(this.#ticket))
  }

  /** The answer is whole. An answer without a single delta still has a head. */
  finish(usage: Usage): void {
    this.#start()
    this.#sink.finish(usage)
  }

  fail(refusal: Refusal): void {
    this.#sink.fail(refusal)
  }
}

function headOf({ admitted, cached, request }: Ticket): AnswerHead {
  if (admitted === undefined) {
    const known = cached === undefined ? {} : { cached: { similarity: cached.similarity, saved: cached.answer.usage } }
    return { model: request.model, rung: FULL_RUNG.name, ...known }
  }
  const { plan, retrieved } = admitted
  const found = retrieved === undefined ? {} : { retrieved }
  return { model: plan.model, releaseId: plan.releaseId, rung: plan.rung.name, ...found }
}
