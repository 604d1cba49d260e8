import type { Clock } from '../base/clock.ts'
import type { ChoiceDelta, Delta, Usage } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { AnswerText } from './answers/answer-text.ts'
import type { DeltaSink, Sink } from './ports.ts'
import type { Ticket } from './ticket.ts'

/**
 * Every delta passes here once on its way from the backend to the client: stamped, counted, handed on. The answer's
 * head goes out with the first one, because until then the ticket may still be tried elsewhere or refused.
 */
export interface RelayWatcher {
  /** The first token has come. */
  begun(ticket: Ticket): void
  /** The answer is longer than predicted; heard with every delta from there on. */
  grown(ticket: Ticket): void
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

  constructor(clock: Clock, ticket: Ticket, sink: Sink, watcher: RelayWatcher) {
    this.#watcher = watcher
    this.#clock = clock
    this.#ticket = ticket
    this.#sink = sink
  }

  /** After this the client has seen something of the answer: no second try. */
  get hasStarted(): boolean {
    return this.#hasStarted
  }

  /** Somebody compares this answer with another. */
  readAlong(reader: AnswerText): void {
    this.#reader = reader
  }

  /** The ticket has ended, however. */
  over(): void {
    this.#reader?.over()
  }

  write(delta: Delta): Promise<void> | undefined {
    const ticket = this.#ticket
    if (ticket.cancellation.isCancelled) return undefined
    const isFirst = ticket.firstTokenAt === undefined
    ticket.noteDelta(this.#clock.now(), delta)
    if (delta.choices?.some(isRefusal) === true) ticket.isRefusedByModel = true
    this.#start()
    if (isFirst && ticket.firstTokenAt !== undefined) this.#watcher.begun(ticket)
    ticket.recording?.note(delta)
    if (ticket.isLongerThanPredicted) this.#watcher.grown(ticket)
    this.#reader?.write(delta)
    return this.#sink.write(delta)
  }

  #start(): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    const plan = this.#ticket.plan
    this.#sink.start({
      model: plan?.model ?? this.#ticket.request.model,
      ...(plan !== undefined && { releaseId: plan.releaseId }),
      rung: plan?.rung.name ?? 'full',
      ...(this.#ticket.retrieved !== undefined && { retrieved: this.#ticket.retrieved }),
      ...(this.#ticket.cached !== undefined && {
        cached: { similarity: this.#ticket.cached.similarity, saved: this.#ticket.cached.answer.usage },
      }),
    })
  }

  /** The answer is whole. One without a single delta still has a head. */
  finish(usage: Usage): void {
    this.#start()
    this.#sink.finish(usage)
  }

  fail(refusal: Refusal): void {
    this.#sink.fail(refusal)
  }
}
