import type { Delta } from '../../domain/delta.ts'
import type { AnswerAsk, FoundAnswer } from '../ports.ts'

/**
 * What is being answered, kept beside the stream for whoever asks the same next. Only a plain answer is worth keeping:
 * one choice of text that ended by itself. One that calls tools, brings anything but text, was cut off or is very long
 * is forgotten on the way.
 */

/** Sixteen thousand tokens: more than any answer that is asked for twice. */
const CHARACTERS_MAX = 64 * 1024

export class AnswerRecording {
  readonly ask: AnswerAsk
  /** The answer that the cache would have given: this ticket is served anew, to compare. */
  readonly known: Extract<FoundAnswer, { kind: 'hit' }> | undefined
  #text = ''
  #hasText = false
  #isPlain = true
  #finishReason: string | null = null

  constructor(ask: AnswerAsk, known?: Extract<FoundAnswer, { kind: 'hit' }>) {
    this.ask = ask
    this.known = known
  }

  note(delta: Delta): void {
    if (!this.#isPlain) return
    for (const { index, content, finishReason, extra, logprobs } of delta.choices ?? []) {
      this.#hasText = true
      if (content !== null) this.#text += content
      this.#finishReason = finishReason ?? this.#finishReason
      if (index !== 0 || logprobs !== undefined || hasMore(extra)) this.#isPlain = false
    }
    if (this.#text.length > CHARACTERS_MAX) this.#isPlain = false
    if (!this.#isPlain) this.#text = ''
  }

  /** Worth keeping, now that it has ended? Simulated answers have no text, and are. */
  get isWhole(): boolean {
    if (!this.#isPlain) return false
    return !this.#hasText || (this.#finishReason === 'stop' && this.#text.trim() !== '')
  }

  get content(): string | undefined {
    return this.#hasText ? this.#text : undefined
  }
}

/** Engines send some fields empty: a list without tool calls is none. */
function hasMore(extra: Readonly<Record<string, unknown>> | undefined): boolean {
  if (extra === undefined) return false
  return Object.values(extra).some(
    (value) => value !== null && value !== '' && !(Array.isArray(value) && value.length === 0),
  )
}
