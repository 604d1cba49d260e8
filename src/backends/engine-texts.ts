import type { AheadFrame, ChoiceDelta, Delta, EngineText, Result, Usage } from '../domain/delta.ts'
import type { NativeDialect } from '../domain/request.ts'
import type { Call } from '../lifecycle/ports.ts'
import { besideAnswer, type UpstreamAnswer, withBeside } from '../wire/upstream.ts'

/**
 * Which of an engine's own texts go with its answer to the client?
 *
 * A delta has the text that it was read from, where the engine speaks OpenAI's words and nothing was changed here; else
 * what the engine said beside its choices. Frames without a token (a role, the result of a filter) are passed on beside
 * the others. Those before the first token wait for it: until then the request can still be tried elsewhere. The frame
 * with the usage alone waits for the end, where it is known which usage counts.
 *
 * Bounds: eight frames wait for the first token, and 256 without a token are passed on in all. Of an engine that speaks
 * the client's own dialect none may be missing: the 65th event begins the answer, and bytes are the bound (`AnswerBound`).
 */
export interface RelayTerms {
  /** See `EngineText`. */
  readonly keepsModel: boolean
  /** The engine speaks the client's own dialect. Every event of it counts there, so none is left out. */
  readonly dialect?: NativeDialect
}

/** A frame, or a whole answer, as it came and as it was parsed. */
export interface Said {
  readonly text: string
  readonly json: unknown
  /** A frame of a stream. */
  readonly isFrame: boolean
}

/** Frames before the first token that wait for it: engines send one or two. */
const FRAMES_AHEAD_MAX = 8
/** Frames without a token that are passed on: an engine that sends nothing else must not go on. */
const FRAMES_ASIDE_MAX = 256
/** Events of the client's own dialect that wait for the first token; then the answer begins without one. */
const NATIVE_AHEAD_MAX = 64

export class EngineTexts {
  readonly #call: Call
  readonly #terms: RelayTerms | undefined
  /** Frames that came before the first token. Made with the first of them. */
  #ahead: AheadFrame[] | undefined
  #asideCount = 0
  #hasWritten = false
  /** What the usage was read from. */
  #usageSource: { readonly source: EngineText; readonly isAlone: boolean } | undefined

  /** Without terms, no text is passed on. */
  constructor(call: Call, terms: RelayTerms | undefined) {
    this.#call = call
    this.#terms = terms
  }

  /** The text of an answer that may be passed on: a frame where a stream was asked for, or a document. */
  of({ isRelayable, choices }: UpstreamAnswer, said: Said | undefined): EngineText | undefined {
    if (this.#terms === undefined || said === undefined || isRelayable !== true) return undefined
    if (said.isFrame !== this.#call.request.isStreamed) return undefined
    if (!said.isFrame && choices.some(({ finishReason }) => finishReason === null)) return undefined
    const { keepsModel, dialect } = this.#terms
    return dialect === undefined ? { json: said.text, keepsModel } : { json: said.text, keepsModel, dialect }
  }

  /** Writes a delta, after the frames that waited for it. `frame` is its text where that may be passed on. */
  write(
    tokens: number,
    choices: readonly ChoiceDelta[],
    frame: EngineText | undefined,
    said: Said | undefined,
  ): Promise<void> | undefined {
    const delta = frame === undefined ? this.#built(tokens, choices, said) : { tokens, choices, frame }
    this.#hasWritten = true
    const ahead = this.#ahead
    if (ahead === undefined) return this.#call.sink.write(delta)
    this.#ahead = undefined
    return this.#call.sink.write({ ...delta, ahead })
  }

  /** A whole answer of a model that does not stream. */
  writeResult(result: Result, said: Said | undefined): Promise<void> | undefined {
    const terms = this.#terms
    if (terms === undefined || said === undefined) return this.#call.sink.write({ tokens: 0, result })
    return this.#call.sink.write({ tokens: 0, result, frame: { json: said.text, keepsModel: terms.keepsModel } })
  }

  /** An answer has ended without a token: what waited for one goes out alone. */
  writeAhead(): void {
    if (this.#ahead !== undefined) void this.write(0, [], undefined, undefined)
  }

  #built(tokens: number, choices: readonly ChoiceDelta[], said: Said | undefined): Delta {
    if (this.#terms === undefined || said === undefined) return { tokens, choices }
    const beside = besideAnswer(said.json)
    const told = withBeside(choices, said.json)
    return beside === undefined ? { tokens, choices: told } : { tokens, choices: told, beside }
  }

  /** A frame without a token and without an end. */
  pass(choices: readonly ChoiceDelta[], frame: EngineText): Promise<void> | undefined {
    const { source, isAlone = false } = this.#usageSource ?? {}
    if (isAlone && source?.json === frame.json) return undefined
    const isNative = frame.dialect !== undefined
    if (++this.#asideCount > FRAMES_ASIDE_MAX && !isNative) return undefined
    if (this.#hasWritten) return this.#call.sink.write({ tokens: 0, choices, frame })
    this.#ahead ??= []
    if (isNative && this.#ahead.length >= NATIVE_AHEAD_MAX) return this.write(0, choices, frame, undefined)
    if (isNative || this.#ahead.length < FRAMES_AHEAD_MAX) this.#ahead.push({ choices, frame })
    return undefined
  }

  noteUsage({ choices }: UpstreamAnswer, said: Said | undefined): void {
    if (this.#terms === undefined || said === undefined || !hasUsage(said.json)) return
    const source = { json: said.text, keepsModel: this.#terms.keepsModel }
    this.#usageSource = { source, isAlone: said.isFrame && choices.length === 0 }
  }

  /** The usage with the engine's own words for it. */
  toldUsage(usage: Usage | undefined): Usage | undefined {
    if (usage === undefined || this.#usageSource === undefined) return usage
    return { ...usage, told: { ...usage, ...this.#usageSource } }
  }
}

function hasUsage(json: unknown): boolean {
  const { usage } = json as { usage?: unknown }
  return typeof usage === 'object' && usage !== null
}
