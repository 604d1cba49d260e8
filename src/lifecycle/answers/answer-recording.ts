import type { Delta } from '../../domain/delta.ts'
import type { AnswerAsk, FoundAnswer } from '../ports.ts'

/**
 * A copy of an answer, made beside the stream for the next request that asks the same. Only a plain answer is worth
 * keeping: one choice of text that ended by itself. An answer that calls tools, has anything but text, was cut off or is
 * very long is forgotten on the way.
 */

/** Characters, about sixteen thousand tokens: more than any answer that is asked for twice. */
const CHARACTERS_MAX = 64 * 1024

export class AnswerRecording {
  readonly ask: AnswerAsk
  /** The answer that the cache would have given; the ticket is served anew to compare. */
  readonly known: Extract<FoundAnswer, { kind: 'hit' }> | undefined
  #text = ''
  #hasText = false
  #isPlain = true
  #finishReason: string | null = null

  constructor(ask: AnswerAsk, known?: Extract<FoundAnswer, { kind: 'hit' }>) {
    this.ask = ask
    this.known = known
  }

  note({ choices = [], kept = choices }: Delta): void {
    if (!this.#isPlain) return
    for (const { index, content, finishReason, extra, logprobs } of kept) {
      this.#hasText = true
      if (content !== null) this.#text += content
      this.#finishReason = finishReason ?? this.#finishReason
      if (index !== 0 || logprobs !== undefined || hasMore(extra)) this.#isPlain = false
    }
    if (this.#text.length > CHARACTERS_MAX) this.#isPlain = false
    if (!this.#isPlain) this.#text = ''
  }

  /** Whether the answer, now ended, is worth keeping. Simulated answers have no text and are kept. */
  get isWhole(): boolean {
    if (!this.#isPlain) return false
    return !this.#hasText || (this.#finishReason === 'stop' && this.#text.trim() !== '')
  }

  get content(): string | undefined {
    return this.#hasText ? this.#text : undefined
  }
}

/** Whether a delta has more than text. Engines send some fields empty: an empty list of tool calls is nothing. */
function hasMore(extra: Readonly<Record<string, unknown>> | undefined): boolean {
  if (extra === undefined) return false
  return Object.values(extra).some(
    (value) => value !== null && value !== '' && !(Array.isArray(value) && value.length === 0),
  )
}
