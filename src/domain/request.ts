import type { Instant } from '../base/clock.ts'
import type { Band, Key, Slo, Tenant } from './tenant.ts'

/**
 * What was asked, immutable. Text stays outside: planning, trimming and placing work on segments (a role, a number of
 * tokens, block hashes), which the gateway makes from text and the simulator from a trace. The true length of the
 * answer has no field here, so no policy can peek at it (law L10).
 */

/** One message, or one piece of a prompt, as policies see it. */
export interface Segment {
  readonly role: 'system' | 'user' | 'assistant' | 'tool' | 'passage'
  /** Estimated when made from text, exact when it comes from a trace. */
  readonly tokens: number
}

/** `embedding`: texts in, vectors out. `tensors`: named tensors in and out (Open Inference Protocol). */
export type RequestKind = 'chat' | 'completion' | 'embedding' | 'tensors'

/** Answered token by token; else in one go, without output tokens, and its segments stand each for itself. */
export const isGenerative = (kind: RequestKind): boolean => kind !== 'embedding' && kind !== 'tensors'

/**
 * The handle through which a backend gets at the text: the client's body as it was parsed. Only `wire/` and
 * `backends/` look inside.
 */
export interface RequestText {
  readonly body: Readonly<Record<string, unknown>>
}

/** Passages that the client wants to be answered from. */
export interface RetrievalWish {
  /** A corpus's id or name. */
  readonly corpus: string
  readonly passagesMax: number
  /** The question's text; nothing but the retriever looks at it. */
  readonly query: string
}

/**
 * Work that the platform does for itself: a copy of a request for a release that is being tried, or an item of a holdout
 * set. It runs on room that nobody wants, is charged to nobody, and names its release.
 */
export interface Errand {
  readonly kind: 'shadow' | 'holdout'
  readonly releaseId: string
  /** The ticket that was copied, or the item. */
  readonly of: string
}

/** A question whose answer may be given again to whoever asks the same in other words. */
export interface Cacheable {
  /** Names all that shapes the answer beside the question: the turns before it, the system prompt, every parameter. */
  readonly promptVersion: string
  /** The question's text; nothing but the answer cache looks at it. */
  readonly question: string
}

export interface Request {
  readonly id: string
  readonly tenant: Tenant
  readonly key: Key
  readonly kind: RequestKind
  /** The model's public name, aliases resolved. */
  readonly model: string
  readonly segments: readonly Segment[]
  /** Names of the prompt's leading blocks, chained and salted with the tenant, for routing by prefix. */
  readonly prefixHashes: readonly number[]
  /** Names the conversation that it belongs to, salted with the tenant; undefined when the client did not say. */
  readonly sessionHash?: number
  /** What the client will take at most, per choice; undefined when it did not say. */
  readonly outputTokensMax: number | undefined
  /** How many answers to the same prompt (`n`). */
  readonly choiceCount: number
  readonly isStreamed: boolean
  readonly band: Band
  readonly bid: number
  readonly slo: Slo
  readonly arrivedAt: Instant
  /** After this instant the answer is worth nothing to the client. */
  readonly deadlineAt: Instant
  /** A running answer ends at the deadline too; else only waiting does, and a late answer goes on. */
  readonly isCutOff?: boolean
  /** How often it was sent on from region to region, and from which it came first; absent when it came from a client. */
  readonly hops?: number
  readonly origin?: string
  readonly text: RequestText | undefined
  readonly retrieval?: RetrievalWish
  /** Headers that a rollout's rules look at, by name in lower case. */
  readonly flags?: Readonly<Record<string, string>>
  readonly errand?: Errand
  /** Absent where no answer may be kept or given again. */
  readonly cacheable?: Cacheable
  /** It may make the client act: showing it to a second release would act twice. */
  readonly hasTools?: boolean
}

export function promptTokensOf(request: Request): number {
  let tokens = 0
  for (const segment of request.segments) tokens += segment.tokens
  return tokens
}
