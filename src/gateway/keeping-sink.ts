import type { Delta, EngineText, Usage } from '../domain/delta.ts'
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
  /** Frames are pieces of the answer; otherwise a frame is the whole answer. */
  readonly isStreamed: boolean
  readonly onFinished: (answer: Collected, usage: Usage, head: AnswerHead | undefined) => void
  readonly onTooLarge: () => void
}

export interface Collected {
  readonly joined: JoinedDeltas
  /** The engine's own document, of an answer that it did not stream. */
  readonly document: EngineText | undefined
}

export class KeepingSink implements Sink {
  readonly #sink: Sink
  readonly #options: KeepingSinkOptions
  #head: AnswerHead | undefined
  #joined: JoinedDeltas | undefined = new JoinedDeltas()
  #document: EngineText | undefined

  constructor(sink: Sink, options: KeepingSinkOptions) {
    this.#sink = sink
    this.#options = options
  }

  start(head: AnswerHead): void {
    this.#head = head
    this.#sink.start(head)
  }

  write(delta: Delta): Promise<void> | undefined {
    if (delta.choices !== undefined) this.#collect(delta)
    return this.#sink.write(delta)
  }

  finish(usage: Usage, flagged?: readonly string[]): void {
    this.#sink.finish(usage, flagged)
    const joined = this.#joined
    this.#joined = undefined
    if (joined === undefined) this.#options.onTooLarge()
    else this.#options.onFinished({ joined, document: this.#document }, usage, this.#head)
  }

  fail(refusal: Refusal): void {
    this.#joined = undefined
    this.#sink.fail(refusal)
  }

  #collect(delta: Delta): void {
    if (this.#joined === undefined) return
    if (!this.#options.isStreamed && delta.frame !== undefined) this.#document = delta.frame
    else this.#joined.add(delta)
    if (Math.max(this.#joined.size, this.#document?.json.length ?? 0) <= this.#options.sizeMax) return
    this.#joined = undefined
    this.#document = undefined
  }
}
