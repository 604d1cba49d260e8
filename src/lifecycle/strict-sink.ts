import type { Delta, Usage } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { AnswerHead, Sink } from './ports.ts'

/**
 * A sink that opens when the decision on its request is on the disk: until then nothing goes out, neither an answer nor a
 * refusal. The wait begins with the first thing that would go out, so a commit that was done while the engine read the
 * prompt costs no time.
 *
 *   held ──committed──▶ open            what was held goes out in its order
 *     └────not in time─▶ refused        the ticket is called off, and the client is told why
 *
 * A writer gets the promise of the gate as backpressure, so little is ever held.
 */
export interface StrictGate {
  /** Called once. True when the decision is on the disk; false when it could not be in time. Never rejects. */
  committed(): Promise<boolean>
  /** Calls off the ticket. */
  refuse(): void
  readonly refusal: Refusal
}

export class StrictSink implements Sink {
  readonly #sink: Sink
  readonly #gate: StrictGate
  #state: 'held' | 'open' | 'refused' = 'held'
  #held: (() => unknown)[] = []
  #opening: Promise<void> | undefined
  #hasEnded = false

  constructor(sink: Sink, gate: StrictGate) {
    this.#sink = sink
    this.#gate = gate
  }

  start(head: AnswerHead): void {
    void this.#pass(() => this.#sink.start(head))
  }

  write(delta: Delta): Promise<void> | undefined {
    if (this.#state === 'open') return this.#sink.write(delta)
    return this.#pass(() => this.#sink.write(delta))
  }

  finish(usage: Usage, flagged?: readonly string[]): void {
    this.#end(() => this.#sink.finish(usage, flagged))
  }

  fail(refusal: Refusal): void {
    this.#end(() => this.#sink.fail(refusal))
  }

  #end(send: () => void): void {
    this.#hasEnded = true
    if (this.#state === 'refused') this.#sink.fail(this.#gate.refusal)
    else void this.#pass(send)
  }

  #pass(send: () => unknown): Promise<void> | undefined {
    if (this.#state === 'open') send()
    if (this.#state !== 'held') return undefined
    this.#held.push(send)
    this.#opening ??= this.#open()
    return this.#opening
  }

  async #open(): Promise<void> {
    const isCommitted = await this.#gate.committed()
    const held = this.#held
    this.#held = []
    this.#state = isCommitted ? 'open' : 'refused'
    if (isCommitted) {
      for (const send of held) send()
      return
    }
    // What ended meanwhile has told its client nothing yet; what runs ends by being called off.
    if (this.#hasEnded) this.#sink.fail(this.#gate.refusal)
    else this.#gate.refuse()
  }
}
