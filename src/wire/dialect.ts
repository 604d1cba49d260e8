import type { ArchivedAnswer } from '../domain/archive.ts'
import type { ChoiceDelta, EngineText, Usage } from '../domain/delta.ts'
import type { CallRoute } from '../domain/key-terms.ts'
import type { NativeDialect, NativeText, RequestKind } from '../domain/request.ts'
import type { Checked } from './check.ts'
import type { ChatBody, CompletionBody } from './schemas.ts'
import type { ScreenedDialect } from './screening-exceptions.ts'

/**
 * A dialect is the words in which a client asks and is answered: OpenAI's chat and text completions, its Responses,
 * Anthropic's Messages. The story knows none of them: a dialect turns the client's body into a chat request (or a text
 * completion), and the deltas of the answer into its own documents and events. One file set per dialect; the sinks of the
 * gateway write what a dialect's writers give them.
 */
export interface Dialect {
  /** The route's name in the terms of keys. */
  readonly route: CallRoute
  readonly kind: RequestKind
  /** The list of strings that no screen rewrites. */
  readonly screenedAs: ScreenedDialect
  /** What stands in front of an answer's id. */
  readonly idPrefix: string
  /** Parameters of the platform's body that have another name here: an error names what the client sent. */
  readonly params?: Readonly<Record<string, string>>
  /** `onlyModel`: the model that a request without a name means, where there is only one. */
  read(bytes: Buffer, onlyModel?: string): Checked<Wording>
}

/** A body in the platform's words, and how its answer is put. */
export interface Wording {
  readonly body: ChatBody | CompletionBody
  /** Names of the client's fields that were left out, because no engine here can honour them. */
  readonly ignored?: readonly string[]
  /** The body as the client wrote it, in dialects that engines speak: what is not changed is sent on from here. */
  readonly raw?: string
  /** The same in a dialect that only some engines speak: those get it instead of the translation. */
  readonly native?: NativeText
  stream(identity: AnswerIdentity): StreamWriter
  whole(identity: AnswerIdentity): WholeWriter
  /** Headers beside those of every answer. */
  readonly headers?: readonly string[]
  /** The same where the client gets another text than the one that is stored; absent where nothing is stored. */
  readonly apart?: StoredApart
  /** The client does not wait: the answer as it is stored before it has begun. Absent where the client waits. */
  readonly queued?: (identity: AnswerIdentity) => QueuedResponse
}

export type QueuedResponse = Omit<ArchivedAnswer, 'tenantId' | 'expiresAtMs'>

/** Writers of an answer that is stored with placeholders, of which the client gets the values. */
export interface StoredApart extends Pick<Wording, 'stream' | 'whole'> {
  /** What is written here is stored when it is encoded. */
  store(identity: AnswerIdentity): WholeWriter
}

export interface AnswerIdentity {
  readonly kind: RequestKind
  readonly id: string
  readonly createdAtS: number
  /** The client's name for the model: an alias is returned as the alias. */
  readonly model: string
  readonly includesUsage: boolean
  /** The client wants the usage so far in every frame: an option of vLLM. */
  readonly includesRunningUsage?: boolean
  /** Tokens of the prompt as they are known before an engine has counted them. */
  readonly promptTokens?: number
}

/** Members of an engine's answer that nobody here knows. */
export type Beside = Readonly<Record<string, unknown>>

/** The frames of a streamed answer, as text. After `end` or `fail` nothing is asked any more. */
export interface StreamWriter {
  /** A degraded answer says so where the dialect has a place for it; told once, before the first chunk. */
  noteRung(rung: string): void
  /** `running`: the usage so far, where a client has asked for it in every frame. */
  chunk(choices: readonly ChoiceDelta[], running?: Usage, beside?: Beside): string
  /** The engine's own frame with what is ours put in; only for dialects in which engines speak. */
  relay?(frame: EngineText, choices: readonly ChoiceDelta[]): string
  /** The dialect of the frames that `relay` takes; absent: OpenAI's completions. */
  readonly relays?: NativeDialect
  /** A frame that carries fields of ours; clients that do not know them skip it. */
  aside(more: Readonly<Record<string, unknown>>): string
  /** Sent where nothing else has been for a while; it may come before the first chunk. */
  readonly keepAlive: string
  end(usage: Usage): string
  /** The answer breaks off. `error`: the error's document in the words of the exchange. */
  fail(error: string): string
}

/** Collects an answer that is sent as one document. */
export interface WholeWriter {
  add(choices: readonly ChoiceDelta[], beside?: Beside): void
  /** Takes the engine's own document as the answer; only for dialects in which engines speak. */
  relay?(document: EngineText): void
  /** The dialect of the document that `relay` takes; absent: OpenAI's completions. */
  readonly relays?: NativeDialect
  /** `ours` are Spillway's own fields beside the answer. */
  encode(usage: Usage, ours?: Readonly<Record<string, unknown>>): string
}
