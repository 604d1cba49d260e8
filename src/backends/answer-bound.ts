import type { ChoiceDelta } from '../domain/delta.ts'
import type { Plan } from '../domain/plan.ts'
import { isGenerative, type Request } from '../domain/request.ts'
import type { TokenLength } from '../wire/token-length.ts'

/**
 * How much of an answer do we take from an engine?
 *
 * At most what was asked for: the plan's `outputTokensMax` for each choice, which is the bound that was sent, or what the
 * context leaves where none was. An engine that ignores its bound would otherwise be relayed for ever, at the cost of the requests that wait behind it. The engine's
 * tokenizer is not known here, so tokens are counted in four ways, and none of them counts too many:
 *
 *   frames       a frame of a stream with text is one token, or several. Where frames have under two characters on
 *                average, a proxy may have cut tokens up, and only characters count. Frames of tool calls and reasoning
 *                count too, after the first few, which may have no token.
 *   characters   a token has at most 64, on average over a whole answer; at most four times what this engine's tokens
 *                are known to have, where the answer is long.
 *   reports      an engine that reports more than twice the bound while it streams has passed the bound.
 *   bytes        of everything: text, log probabilities, empty frames.
 *
 * An answer that reaches its bound ends there with `finish_reason: length`, as it would have at a well-behaved engine. A
 * whole answer whose engine itself reports more than twice the bound keeps the same share of its text. An answer that
 * is too long in bytes before its text has begun is lost.
 *
 * Vectors and tensors have no tokens: only `WHOLE_BYTES_MAX` bounds them. What an engine reports as its usage is bounded
 * in `lifecycle/generate.ts`, for every kind of backend.
 *
 * Example: 20 tokens, one choice. The 21st frame with text is not passed on, nor is the 1,281st character of a whole
 * answer, and an answer of more than 384 KiB is not read to its end.
 */

/** Most bytes of an answer in one piece. */
const WHOLE_BYTES_MAX = 16 << 20
/** Bytes of frames that carry no token: roles, usage, keep-alive comments of a long prefill. */
const BYTES_WITHOUT_TOKENS = 64 << 10
/** A frame of one token with twenty alternatives (`top_logprobs: 20`) has about 4 KiB; four times that is no answer. */
const BYTES_PER_TOKEN_MAX = 16 << 10
/** The longest tokens are runs of blanks or dashes; no whole answer consists of these. English has about 4. */
const CHARACTERS_PER_TOKEN_MAX = 64
/** Answers with a smaller bound may consist of long tokens. */
const LEARNED_TOKENS_MIN = 64
/** How many times longer than usual the tokens of a long answer may be, on average: tables, indented code. */
const LEARNED_FACTOR = 4
/** Characters of a frame, on average, below which frames may be pieces of tokens. */
const CHARACTERS_PER_FRAME_MIN = 2
/** Characters of a token, on average, where frames may be pieces of tokens: twice what English has. */
const CHARACTERS_PER_TOKEN_LIKELY = 8
/** Frames of one choice that may have no token: the head of each of its tool calls. */
const FRAMES_WITHOUT_TOKENS = 64
/** Hosts that count with another model's tokenizer may report half as many again: up to twice the bound proves nothing. */
const REPORTED_RATIO_MIN = 2
/** Response objects of one stream (queued, created, in progress, ended), each character three bytes at most. */
const REPEATED_COUNT_MAX = 4 * 3
/** An echoed prompt has at most this many times the tokens that were estimated for it. */
const ECHOED_RATIO_MAX = 4

interface SeenOfChoice {
  textFrames: number
  otherFrames: number
  characters: number
  isOver: boolean
}

export class AnswerBound {
  readonly #tokensMax: number
  readonly #choiceCount: number
  readonly #charactersPerTokenMax: number
  readonly #seen: Array<SeenOfChoice | undefined> = []
  #bytes = 0
  #hasCut = false
  #isReportedOver = false
  /** Bytes of what an engine repeats of its request. */
  #repeatedBytes = 0

  constructor(choiceCount: number, tokensMax: number, charactersPerTokenMax = CHARACTERS_PER_TOKEN_MAX) {
    this.#choiceCount = choiceCount
    this.#tokensMax = tokensMax
    this.#charactersPerTokenMax = charactersPerTokenMax
  }

  static of(
    { kind, choiceCount, text }: Request,
    { outputTokensMax, estimate }: Plan,
    tokenLength: TokenLength | undefined,
  ): AnswerBound {
    if (!isGenerative(kind)) return new AnswerBound(choiceCount, Number.POSITIVE_INFINITY)
    // A completion with `echo` begins with its prompt, whose length is an estimate.
    const echoedTokens = text?.body['echo'] === true ? ECHOED_RATIO_MAX * estimate.promptTokens : 0
    const charactersPerTokenMax = charactersPerTokenMaxOf(tokenLength, outputTokensMax)
    return new AnswerBound(choiceCount, outputTokensMax + echoedTokens, charactersPerTokenMax)
  }

  /** Tokens of all choices together; Infinity for vectors and tensors. */
  get tokensMax(): number {
    return this.#tokensMax * this.#choiceCount
  }

  get wholeBytesMax(): number {
    return Math.min(WHOLE_BYTES_MAX, this.#streamBytesMax)
  }

  /** Whether a choice of a stream was ended here, not by its engine. */
  get hasCut(): boolean {
    return this.#hasCut
  }

  get #streamBytesMax(): number {
    return BYTES_WITHOUT_TOKENS + this.#repeatedBytes + BYTES_PER_TOKEN_MAX * this.tokensMax
  }

  /** The engine's events repeat what was asked: instructions and tools stand in each response object of a stream. */
  allowRepeated(bodyLength: number): void {
    this.#repeatedBytes = bodyLength * REPEATED_COUNT_MAX
  }

  /** The engine's own count over all choices, or over one of them. */
  noteReported(tokens: number): void {
    if (tokens > this.tokensMax * REPORTED_RATIO_MIN) this.#isReportedOver = true
  }

  /** Counts bytes of a stream. False when no answer within the bound has as many. */
  takesBytes(count: number): boolean {
    this.#bytes += count
    return this.#bytes <= this.#streamBytesMax
  }

  /** The choices of one frame that are passed on, the same list where all are: without those that were not asked for, and none beyond its bound. */
  ofFrame(choices: readonly ChoiceDelta[]): readonly ChoiceDelta[] {
    let passed: ChoiceDelta[] | undefined
    for (const [i, choice] of choices.entries()) {
      const taken = this.#take(choice)
      if (taken !== choice) passed ??= choices.slice(0, i)
      if (passed !== undefined && taken !== undefined) passed.push(taken)
    }
    return passed ?? choices
  }

  /** The choices of a whole answer, cut where their tokens end; the same list where none is. `reported` is the engine's count over all choices. */
  ofWhole(choices: readonly ChoiceDelta[], reported: number | undefined): readonly ChoiceDelta[] {
    const excess = (reported ?? 0) / this.tokensMax
    const keptRatio = excess > REPORTED_RATIO_MIN ? 1 / excess : 1
    const passed = choices.flatMap((choice) => {
      if (!this.#isRequested(choice)) return []
      const { content } = choice
      if (content === null) return [choice]
      const charactersMax = Math.min(this.#tokensMax * CHARACTERS_PER_TOKEN_MAX, Math.ceil(content.length * keptRatio))
      if (content.length <= charactersMax) return [choice]
      return [{ ...choice, content: withoutHalf(content.slice(0, charactersMax)), finishReason: 'length' }]
    })
    const isSame = passed.length === choices.length && passed.every((choice, i) => choice === choices[i])
    return isSame ? choices : passed
  }

  /** An end for every choice that the stream has not finished. */
  ends(finished: ReadonlySet<number> | undefined): readonly ChoiceDelta[] {
    this.#hasCut = true
    const indices = Array.from({ length: this.#choiceCount }, (_, index) => index)
    return indices.filter((index) => finished?.has(index) !== true).map(endOf)
  }

  /** The choice itself, its end where it has just had its bound, or nothing. */
  #take(choice: ChoiceDelta): ChoiceDelta | undefined {
    if (!this.#isRequested(choice)) return undefined
    const { index, content, extra } = choice
    this.#seen[index] ??= { textFrames: 0, otherFrames: 0, characters: 0, isOver: false }
    const seen = this.#seen[index]
    if (seen.isOver) return undefined
    if (content) {
      seen.textFrames++
      seen.characters += content.length
    } else if (extra !== undefined) seen.otherFrames++
    const isOver = this.#isReportedOver || tokensAtLeast(seen, this.#charactersPerTokenMax) > this.#tokensMax
    if (!isOver) return choice
    seen.isOver = true
    this.#hasCut = true
    return endOf(index)
  }

  /** An index beyond the requested number would only make us count further. */
  #isRequested({ index }: ChoiceDelta): boolean {
    return Number.isInteger(index) && index >= 0 && index < this.#choiceCount
  }
}

const endOf = (index: number): ChoiceDelta => ({ index, content: '', finishReason: 'length' })

/** The fewest tokens that these frames and characters can be. */
function tokensAtLeast({ textFrames, otherFrames, characters }: SeenOfChoice, charactersPerTokenMax: number): number {
  const isCutUp = characters < textFrames * CHARACTERS_PER_FRAME_MIN
  const text = isCutUp ? characters / CHARACTERS_PER_TOKEN_LIKELY : textFrames
  const other = Math.max(0, otherFrames - FRAMES_WITHOUT_TOKENS)
  return Math.max(text + other, characters / charactersPerTokenMax)
}

/** A character has a byte or more, so what is known in bytes is a bound in characters too. */
function charactersPerTokenMaxOf(tokenLength: TokenLength | undefined, tokensMax: number): number {
  if (tokenLength?.isKnown !== true || tokensMax < LEARNED_TOKENS_MIN) return CHARACTERS_PER_TOKEN_MAX
  return Math.min(CHARACTERS_PER_TOKEN_MAX, LEARNED_FACTOR * tokenLength.bytesPerToken)
}

/** Without the first half of a surrogate pair at the end, which is no character. */
function withoutHalf(text: string): string {
  return /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text
}
