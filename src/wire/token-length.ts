/**
 * What is a token of this engine, in bytes of text and in frames of a stream?
 *
 * Its tokenizer is not known here, and tokenizing each frame would cost more than passing it on. But an engine that
 * reports its usage says at the end of each answer how many tokens those bytes and frames were. The median of the last
 * answers is taken: a few wrong reports, or answers in which some tokens were not streamed, do not move it.
 *
 * Example: answers of 400 bytes in 13 frames with 100 tokens: 4 bytes a token, and frames of several tokens. With 100
 * frames instead, a frame is a token, and frames are counted, not bytes.
 */
const TOKEN_LENGTH_DEFAULTS = {
  /** Answers that it remembers. */
  samplesMax: 31,
  /** Bytes of a token before anything is known: English and code in the tokenizers of today, Chinese too. */
  bytesPerToken: 4.5,
}

/** Shorter answers say little: their end, which has no text, is a token too. */
const TOKENS_MIN = 8
/** No text has more tokens than bytes, but for a few marks around it. */
const PER_BYTE_MAX = 1
/** The longest tokens are runs of blanks or dashes; no whole answer consists of these. */
const PER_BYTE_MIN = 1 / 64
/** A report that is so many times off what the engine usually says counts tokens that were not streamed, or is wrong. */
const FACTOR_MAX = 4
/** A frame is a token where there are about as many of both: some tokens have no text of their own. */
const PER_FRAME = { min: 0.95, max: 1.1 }

export interface AnswerLength {
  readonly bytes: number
  /** Undefined for an answer in one piece. */
  readonly frames: number | undefined
  readonly tokens: number
}

export class TokenLength {
  readonly #perByte: RecentMedian
  readonly #perFrame: RecentMedian
  readonly #bytesPerTokenAtFirst: number

  constructor({ samplesMax, bytesPerToken } = TOKEN_LENGTH_DEFAULTS) {
    this.#perByte = new RecentMedian(samplesMax)
    this.#perFrame = new RecentMedian(samplesMax)
    this.#bytesPerTokenAtFirst = bytesPerToken
  }

  /** Whether any answer has said how long its tokens are. */
  get isKnown(): boolean {
    return this.#perByte.value !== undefined
  }

  get bytesPerToken(): number {
    const perByte = this.#perByte.value
    return perByte === undefined ? this.#bytesPerTokenAtFirst : 1 / perByte
  }

  /** Whether each frame is known to be one token. */
  get isTokenPerFrame(): boolean {
    const perFrame = this.#perFrame.value
    return perFrame !== undefined && perFrame >= PER_FRAME.min && perFrame <= PER_FRAME.max
  }

  /** Whether so much text can be so many tokens of this engine. */
  canBe(bytes: number, tokens: number): boolean {
    if (!isPossible(bytes, tokens)) return false
    const times = this.isKnown ? (tokens * this.bytesPerToken) / bytes : 1
    return times <= FACTOR_MAX && times >= 1 / FACTOR_MAX
  }

  /** An answer of so much text had so many tokens, by its engine's own count. */
  observe({ bytes, frames, tokens }: AnswerLength): void {
    if (tokens < TOKENS_MIN || !isPossible(bytes, tokens)) return
    this.#perByte.add(tokens / bytes)
    if (frames !== undefined) this.#perFrame.add(tokens / frames)
  }
}

const isPossible = (bytes: number, tokens: number): boolean =>
  tokens <= bytes * PER_BYTE_MAX && tokens >= bytes * PER_BYTE_MIN

/** The median of the last few numbers, kept in order as they come. */
class RecentMedian {
  readonly #sizeMax: number
  readonly #recent: number[] = []
  readonly #sorted: number[] = []
  #next = 0

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax
  }

  get value(): number | undefined {
    return this.#sorted[this.#sorted.length >> 1]
  }

  add(number: number): void {
    const oldest = this.#recent[this.#next]
    if (oldest !== undefined) this.#sorted.splice(this.#sorted.indexOf(oldest), 1)
    this.#recent[this.#next] = number
    this.#next = (this.#next + 1) % this.#sizeMax
    const at = this.#sorted.findIndex((other) => other > number)
    this.#sorted.splice(at < 0 ? this.#sorted.length : at, 0, number)
  }
}

/** How long the tokens of each model of one server are. */
export class TokenLengths {
  readonly #modelsMax: number
  readonly #byModel = new Map<string, TokenLength>()

  /** More models than one address has; beyond them the oldest is forgotten and learned again. */
  constructor(modelsMax = 64) {
    this.#modelsMax = modelsMax
  }

  of(model: string): TokenLength {
    const known = this.#byModel.get(model)
    if (known !== undefined) return known
    const made = new TokenLength()
    const [oldest] = this.#byModel.keys()
    if (oldest !== undefined && this.#byModel.size >= this.#modelsMax) this.#byModel.delete(oldest)
    this.#byModel.set(model, made)
    return made
  }

  get size(): number {
    return this.#byModel.size
  }
}
