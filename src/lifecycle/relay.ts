import type { Clock } from '../base/clock.ts'
import type { Delta, Usage } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { DeltaSink, Sink } from './ports.ts'
import type { Ticket } from './ticket.ts'

/**
 * Every delta passes here once on its way from the backend to the client: stamped, counted, handed on. The answer's
 * head goes out with the first one, because until then the ticket may still be tried elsewhere or refused.
 */
export class Relay implements DeltaSink {
  readonly #clock: Clock
  readonly #ticket: Ticket
  readonly #sink: Sink
  #hasStarted = false

  readonly #onLonger: (ticket: Ticket) => void

  /** `onLonger` hears of every delta beyond the predicted length. */
  constructor(clock: Clock, ticket: Ticket, sink: Sink, onLonger: (ticket: Ticket) => void) {
    this.#onLonger = onLonger
    this.#clock = clock
    this.#ticket = ticket
    this.#sink = sink
  }

  /** After this the client has seen something of the answer: no second try. */
  get hasStarted(): boolean {
    return this.#hasStarted
  }

  write(delta: Delta): Promise<void> | undefined {
    const ticket = this.#ticket
    if (ticket.cancellation.isCancelled) return undefined
    ticket.noteDelta(this.#clock.now(), delta.tokens, delta.innerGapUs)
    this.#start()
    if (ticket.isLongerThanPredicted) this.#onLonger(ticket)
    return this.#sink.write(delta)
  }

  #start(): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    const plan = this.#ticket.plan
    this.#sink.start({
      model: plan?.model ?? this.#ticket.request.model,
      rung: plan?.rung.name ?? 'full',
      ...(this.#ticket.retrieved !== undefined && { retrieved: this.#ticket.retrieved }),
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
