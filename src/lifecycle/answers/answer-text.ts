import type { ChoiceDelta, Delta } from '../../domain/delta.ts'
import type { Sink } from '../ports.ts'

/**
 * Reads an answer along, to compare or to score it: the first choice's text, as much of it as tells enough. Nothing of it
 * is kept longer than that takes, or goes into the journal.
 */
const CHARACTERS_MAX = 65_536

export class AnswerText implements Sink {
  #text = ''
  /** Some of the answer came as text; in simulation none does. */
  hasText = false
  #onEnd: (() => void) | undefined
  #isOver = false

  get text(): string {
    return this.#text
  }

  get isOver(): boolean {
    return this.#isOver
  }

  start(): void {}

  write(delta: Delta): undefined {
    for (const choice of delta.choices ?? []) if (choice.index === 0) this.#add(choice)
    return undefined
  }

  finish(): void {}
  fail(): void {}

  /** Nothing more will come, however it ended. */
  over(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#onEnd?.()
  }

  whenOver(then: () => void): void {
    if (this.#isOver) then()
    else this.#onEnd = then
  }

  #add({ content }: ChoiceDelta): void {
    this.hasText = true
    if (content !== null && this.#text.length < CHARACTERS_MAX)
      this.#text += content.slice(0, CHARACTERS_MAX - this.#text.length)
  }
}
