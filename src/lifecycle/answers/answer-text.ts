import type { ChoiceDelta, Delta } from '../../domain/delta.ts'
import type { Sink } from '../ports.ts'

/**
 * Reads an answer along, to compare or to score it: the first choice's text, up to a bound. The text is kept no longer
 * than the comparison takes (`rollout/keep-outputs.ts` says whose is), and never goes into the journal.
 */

/** Characters, about sixteen thousand tokens: enough to compare or to score any answer. */
const CHARACTERS_MAX = 65_536

export class AnswerText implements Sink {
  #text = ''
  /** Whether some of the answer came as text; in simulation none does. */
  hasText = false
  /** Why the first choice ended; null while it has not. */
  finishReason: string | null = null
  #onEnd: (() => void) | undefined
  #isOver = false

  get text(): string {
    return this.#text
  }

  get isOver(): boolean {
    return this.#isOver
  }

  start(): void {}

  write({ choices = [], kept = choices }: Delta): undefined {
    for (const choice of kept) if (choice.index === 0) this.#add(choice)
    return undefined
  }

  finish(): void {}
  fail(): void {}

  /** The answer has ended, whole or not: nothing more will come. */
  over(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#onEnd?.()
  }

  whenOver(then: () => void): void {
    if (this.#isOver) then()
    else this.#onEnd = then
  }

  #add({ content, finishReason }: ChoiceDelta): void {
    this.hasText = true
    this.finishReason ??= finishReason
    if (content !== null && this.#text.length < CHARACTERS_MAX)
      this.#text += content.slice(0, CHARACTERS_MAX - this.#text.length)
  }
}
