import type { ChoiceDelta } from '../domain/delta.ts'
import type { TokenLength } from './token-length.ts'

/**
 * How many tokens does a frame of this answer have?
 *
 * Engines send one token a frame, or several: vLLM with `--stream-interval`, speculative decoding, a proxy that gathers.
 * Who counts frames believes that a token takes as long as a frame. In this order, the count is
 *
 *   the engine's   its tokens of this frame, or its running usage against that of the frame before
 *   log probs      one entry for each token
 *   the text       by how long this engine's tokens are (`token-length.ts`); its frames, where each is known to be a token
 *
 * Parts of tokens are carried to the next frame, so that rounding adds up to nothing. When the engine reports the whole,
 * `end` says how many tokens were streamed, and `TokenLength` learns.
 *
 * Example: 4 bytes a token are known. Frames of 5, 36 and 31 bytes are 1, 9 and 8 tokens: 1.25 → 1, then 10.25 → 9 more.
 */
export interface FrameTokensOptions {
  /** Tokens of all choices that were asked for; the count never passes them. */
  readonly tokensMax: number
  readonly choiceCount: number
  /** The answer begins with its prompt, whose bytes are no tokens of the answer. */
  readonly isEchoed?: boolean
}

/** What an engine says of its own count. */
export interface EngineCount {
  /** Tokens of this frame. */
  readonly tokens?: number | undefined
  /** Tokens of the answer up to this frame. */
  readonly running?: number | undefined
}

/** What an engine says of the whole answer. */
export interface EngineReport {
  readonly tokens: number
  /** Tokens among them that were spent on reasoning, which some engines do not stream. */
  readonly reasoningTokens?: number
  /** The answer was no stream: its one frame says nothing of frames. */
  readonly isOnePiece?: boolean
}

/** Before anything is known: frames with fewer bytes on average are one token each. Most tokens have 1 to 8. */
const BYTES_PER_FRAME_OF_ONE = 8

export class FrameTokens {
  readonly #tokenLength: TokenLength
  readonly #options: FrameTokensOptions
  #bytes = 0
  #frames = 0
  /** Tokens of the text by its length, before anything is known of the engine. */
  #guessed = 0
  #counted = 0
  /** What was not counted yet: a part of a token, or less than none where a part was counted as one. */
  #carried = 0
  /** Choices that ended by themselves in a frame without text: that end was a token. */
  #ends = 0
  #hasReasoning = false
  #isExact = true

  constructor(tokenLength: TokenLength, options: FrameTokensOptions) {
    this.#tokenLength = tokenLength
    this.#options = options
  }

  /** Tokens so far. */
  get counted(): number {
    return this.#counted
  }

  /** The tokens of one frame. */
  count(choices: readonly ChoiceDelta[], engine: EngineCount = {}): number {
    let pieces = 0
    let bytes = 0
    for (const choice of choices) {
      if (choice.content || choice.extra !== undefined) {
        pieces++
        bytes += this.#bytesOf(choice)
      } else if (choice.finishReason === 'stop') this.#ends++
    }
    if (pieces === 0) return 0
    this.#bytes += bytes
    this.#frames += pieces
    const exact = this.#exact(choices, engine)
    if (exact === undefined) this.#isExact = false
    this.#carried += exact ?? this.#likely(pieces, bytes)
    return this.#take()
  }

  /**
   * The engine reports `tokens` for the whole answer. Returns how many were streamed; undefined when the counts so far
   * are as good, or the report cannot be true of this text.
   */
  end({ tokens, reasoningTokens = 0, isOnePiece = false }: EngineReport): number | undefined {
    if (this.#frames === 0 || this.#options.isEchoed === true) return undefined
    const visible = tokens - (this.#hasReasoning ? 0 : reasoningTokens)
    if (visible <= 0) return undefined
    const isFrames = visible >= this.#frames && visible <= this.#frames + this.#ends
    const streamed = isFrames ? this.#frames : Math.max(1, visible - this.#ends)
    const isBelieved = this.#tokenLength.canBe(this.#bytes, streamed)
    this.#tokenLength.observe({ bytes: this.#bytes, frames: isOnePiece ? undefined : this.#frames, tokens: streamed })
    if (this.#isExact || !isBelieved) return undefined
    const corrected = Math.min(streamed, this.#options.tokensMax)
    return corrected === this.#counted ? undefined : corrected
  }

  /** The engine's own count of this frame; undefined where there is none, or none that can be true. */
  #exact(choices: readonly ChoiceDelta[], { tokens, running }: EngineCount): number | undefined {
    if (tokens !== undefined) return tokens
    // With several choices the running usage is that of one of them, or of all. A usage that stands still is none.
    if (running !== undefined && this.#options.choiceCount === 1) {
      const more = running - this.#counted - this.#carried
      if (more > 0) return more
    }
    if (this.#options.isEchoed === true) return undefined
    let listed = 0
    for (const { logprobs, content, extra } of choices) {
      if (logprobs === undefined) return undefined
      const count = listedTokens(logprobs)
      if (count === 0 && (content || extra !== undefined)) return undefined
      listed += count
    }
    return listed
  }

  #likely(pieces: number, bytes: number): number {
    const tokenLength = this.#tokenLength
    if (tokenLength.isTokenPerFrame || this.#options.isEchoed === true) return pieces
    if (tokenLength.isKnown) return bytes / tokenLength.bytesPerToken
    const isOneEach = this.#bytes <= this.#frames * BYTES_PER_FRAME_OF_ONE
    const total = isOneEach ? this.#frames : this.#bytes / tokenLength.bytesPerToken
    const more = Math.max(0, total - this.#guessed)
    this.#guessed += more
    return more
  }

  /** Whole tokens of what is carried; at least one for the first text, which has come. */
  #take(): number {
    const whole = Math.max(this.#counted === 0 ? 1 : 0, Math.floor(this.#carried + ROUNDING))
    const taken = Math.min(whole, this.#options.tokensMax - this.#counted)
    this.#carried -= whole
    this.#counted += taken
    return taken
  }

  #bytesOf({ content, extra }: ChoiceDelta): number {
    const bytes = content ? utf8Bytes(content) : 0
    if (extra === undefined) return bytes
    const reasoning = reasoningOf(extra)
    if (reasoning !== undefined) this.#hasReasoning = true
    return bytes + bytesOfText(reasoning) + bytesOfCalls(extra)
  }
}

/** Sums of fractions are a little off. */
const ROUNDING = 1e-9

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
const bytesOfText = (value: unknown): number => (typeof value === 'string' ? utf8Bytes(value) : 0)

/** Longer texts are counted faster outside JavaScript; most frames have one word. */
const COUNTED_HERE_MAX = 64

function utf8Bytes(text: string): number {
  if (text.length > COUNTED_HERE_MAX) return Buffer.byteLength(text)
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit > 0x7f) bytes += unit > 0x7_ff && (unit < 0xd8_00 || unit > 0xdf_ff) ? 2 : 1
  }
  return bytes
}

/** Some servers send the same text under both names. */
function reasoningOf(extra: Readonly<Record<string, unknown>>): unknown {
  return extra['reasoning_content'] ?? extra['reasoning']
}

/** Names and arguments; ids are made by the server. */
function bytesOfCalls(extra: Readonly<Record<string, unknown>>): number {
  let bytes = bytesOfText(extra['refusal']) + bytesOfCall(extra['function_call'])
  const calls = extra['tool_calls']
  if (Array.isArray(calls)) for (const call of calls) bytes += isObject(call) ? bytesOfCall(call['function']) : 0
  return bytes
}

const bytesOfCall = (call: unknown): number =>
  isObject(call) ? bytesOfText(call['name']) + bytesOfText(call['arguments']) : 0

/** Chat lists its tokens in `content` and `refusal`, completions list them in `tokens`. */
function listedTokens(logprobs: unknown): number {
  if (!isObject(logprobs)) return 0
  return lengthOf(logprobs['content']) + lengthOf(logprobs['refusal']) + lengthOf(logprobs['tokens'])
}

const lengthOf = (list: unknown): number => (Array.isArray(list) ? list.length : 0)
