import type { Delta, Usage } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { AnswerHead, Sink } from '../lifecycle/ports.ts'
import { JoinedDeltas } from '../wire/joined-deltas.ts'

/**
 * A sink that passes an answer on and collects it on the way, for the archive. The client comes first: what is collected
 * is handed over after the answer has finished. An answer that fails or is cancelled is not handed over; one that grows
 * too large is dropped at once, and told.
 */
export interface KeepingSinkOptions {
  readonly sizeMax: number
  readonly onFinished: (answer: ReturnType<JoinedDeltas['whole']>, usage: Usage, head: AnswerHead | undefined) => void
  readonly onTooLarge: () => void
}

export class KeepingSink implements Sink {
  readonly #sink: Sink
  readonly #options: KeepingSinkOptions
  #head: AnswerHead | undefined
  #answer: JoinedDeltas | undefined = new JoinedDeltas()

  constructor(sink: Sink, options: KeepingSinkOptions) {
    this.#sink = sink
    this.#options = options
  }

  start(head: AnswerHead): void {
    this.#head = head
    this.#sink.start(head)
  }

  write(delta: Delta): Promise<void> | undefined {
    if (delta.choices !== undefined) this.#answer?.add(delta.choices)
    if (this.#answer !== undefined && this.#answer.size > this.#options.sizeMax) this.#answer = undefined
    return this.#sink.write(delta)
  }

  finish(usage: Usage): void {
    this.#sink.finish(usage)
    if (this.#answer === undefined) this.#options.onTooLarge()
    else this.#options.onFinished(this.#answer.whole(), usage, this.#head)
    this.#answer = undefined
  }

  fail(refusal: Refusal): void {
    this.#answer = undefined
    this.#sink.fail(refusal)
  }
}
