import type { Delta, Usage } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { AnswerHead, Sink } from '../lifecycle/ports.ts'
import type { WholeWriter } from '../wire/dialect.ts'

/**
 * A sink of an answer whose client gets values and whose store gets placeholders. The client comes first: the answer is
 * stored when it has finished. One that fails is not.
 */
export class StoredApartSink implements Sink {
  readonly #sink: Sink
  readonly #store: WholeWriter

  constructor(sink: Sink, store: WholeWriter) {
    this.#sink = sink
    this.#store = store
  }

  start(head: AnswerHead): void {
    this.#sink.start(head)
  }

  write(delta: Delta): Promise<void> | undefined {
    const { choices = [], kept = choices, beside } = delta
    this.#store.add(kept, beside)
    return this.#sink.write(delta)
  }

  finish(usage: Usage, flagged?: readonly string[]): void {
    this.#sink.finish(usage, flagged)
    this.#store.encode(usage)
  }

  fail(refusal: Refusal): void {
    this.#sink.fail(refusal)
  }
}
