import type { NativeDialect } from './request.ts'
import type { TransitHead } from './transit.ts'

/**
 * A delta is one piece of an answer on its way to the client. Live engines send one for each token, or one for several;
 * how many is counted where the frame is read (`wire/frame-tokens.ts`). The simulated backend sends a few per answer, each
 * with a count and the statistics of the gaps inside it, so that metrics, ledger and partial counts come out the same.
 */
export interface Delta {
  /** Output tokens in this delta, over all choices; 0 for text that ends no token. */
  readonly tokens: number
  /** Gap between the tokens inside this delta, if it has more than one. */
  readonly innerGapUs?: number
  /** What the client sees; absent in simulation. */
  readonly choices?: readonly ChoiceDelta[]
  /** The same choices with placeholders in place of values, for whatever keeps or compares answers; absent: `choices`. */
  readonly kept?: readonly ChoiceDelta[]
  /** What an engine says beside its choices, where its own text cannot be passed on as it is. */
  readonly beside?: Readonly<Record<string, unknown>>
  /** The whole answer of a model that does not stream; such a delta has no tokens. */
  readonly result?: Result
  /** A piece of an answer that passes through unread; its head came before, as the `result`. */
  readonly bytes?: Uint8Array
  /** The engine's own text of this delta, where it can be passed on as it is. */
  readonly frame?: EngineText
  /** Frames without a token that came before this delta, and go out with it. */
  readonly ahead?: readonly AheadFrame[]
}

export interface AheadFrame {
  readonly choices: readonly ChoiceDelta[]
  readonly frame: EngineText
}

/** What an engine wrote: a frame of a stream or a whole answer, as JSON text. Numbers and unknown members are as they came. */
export interface EngineText {
  readonly json: string
  /** The engine was asked for the model by the client's own name for it, so its name for it is for the client, too. */
  readonly keepsModel: boolean
  /** Whose words they are; absent: those of OpenAI's completions. */
  readonly dialect?: NativeDialect
}

/** Vectors, one per text; named tensors, as the protocol writes them; or the head of an answer that passes through. */
export type Result =
  | {
      readonly kind: 'vectors'
      readonly vectors: readonly Float32Array[]
      /** Whether the engine wrote every vector as base64, or every vector as numbers; absent where it mixed them. */
      readonly encoding?: 'base64' | 'float'
    }
  | { readonly kind: 'tensors'; readonly document: Readonly<Record<string, unknown>> }
  | { readonly kind: 'transit'; readonly head: TransitHead }

/**
 * One choice's share of a delta. `content` is plain text, or null. Everything else that an engine says about the choice
 * (tool calls, log probabilities, reasoning) is passed on unchanged in `extra`.
 */
export interface ChoiceDelta {
  readonly index: number
  readonly content: string | null
  readonly finishReason: string | null
  readonly extra?: Readonly<Record<string, unknown>>
  readonly logprobs?: unknown
  /** What an engine says beside the message, where its own text cannot be passed on as it is. */
  readonly beside?: Readonly<Record<string, unknown>>
  /** The stop sequence at which the text ended, where the engine tells it. */
  readonly stopSequence?: string
}

/** Measured work, as reported by the engine. */
export interface Usage {
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  /** The engine's own words for it; absent where we counted, and in the journal. */
  readonly told?: ToldUsage
  /** What it is sold at in dollars, as decimal text; for clients of tenants that want to be told. */
  readonly priceUsd?: string
}

/** The `usage` of an engine with all its details, and the numbers that were read from it. */
export interface ToldUsage {
  /** The frame, or the whole answer, that has the engine's `usage`. */
  readonly source: EngineText
  /** That frame has no choice, and is not passed on by itself. */
  readonly isAlone: boolean
  readonly promptTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
}

export const NO_USAGE: Usage = { promptTokens: 0, cachedTokens: 0, outputTokens: 0 }
