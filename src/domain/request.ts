import type { Instant } from '../base/clock.ts'
import type { TraceContext } from '../base/trace-context.ts'
import type { Screening } from './screening.ts'
import type { Band, Key, Slo, Tenant } from './tenant.ts'
import type { Transit } from './transit.ts'

/**
 * A request is what the client asked for, immutable. Text stays outside: planning, trimming and placing work on
 * segments (a role, a number of tokens, block hashes), which the gateway makes from text and the simulator from a
 * trace. The true length of the answer has no field here, so no policy can see it (law L10).
 */

/** One message, or one piece of a prompt, as policies see it. */
export interface Segment {
  readonly role: 'system' | 'user' | 'assistant' | 'tool' | 'passage'
  /** Estimated for text, exact for a trace. */
  readonly tokens: number
}

/**
 * `embedding`: texts in, vectors out. `tensors`: named tensors in and out (Open Inference Protocol). `transit`: bytes in
 * and out, unread.
 */
export type RequestKind = 'chat' | 'completion' | 'embedding' | 'tensors' | 'transit'

/**
 * Whether the request is answered token by token. The others are answered without streaming and without output tokens,
 * and each of their segments is computed alone.
 */
export const isGenerative = (kind: RequestKind): boolean =>
  kind !== 'embedding' && kind !== 'tensors' && kind !== 'transit'

/**
 * The handle through which a backend reads the text: the client's parsed body. Only `wire/` and `backends/` look
 * inside.
 */
export interface RequestText {
  readonly body: Readonly<Record<string, unknown>>
  /** The same as the client wrote it; absent where the body was made here. */
  readonly raw?: string | undefined
  /** The body in the client's own dialect, before it was translated; absent where engines must get the translation. */
  readonly native?: NativeText | undefined
}

/** Dialects beside OpenAI's completions that some engines speak themselves. */
export type NativeDialect = 'responses' | 'messages'

export interface NativeText {
  readonly dialect: NativeDialect
  /** As the client wrote it. */
  readonly raw: string
}

/** The client's wish to be answered from passages. */
export interface RetrievalWish {
  /** A corpus's id or name. */
  readonly corpus: string
  readonly passagesMax: number
  /** The question's text; only the retriever reads it. */
  readonly query: string
}

/**
 * An errand is the platform's own work: a copy of a request for a release on trial, an item of a holdout set, or a
 * question to the guard model. An errand is charged to no tenant, is never screened, and names its release. It runs on
 * spare room, but for the guard's, which somebody waits for.
 */
export interface Errand {
  readonly kind: 'shadow' | 'holdout' | 'guard'
  readonly releaseId: string
  /** The copied ticket, the holdout item, or the ticket that is judged. */
  readonly of: string
}

/** A question whose answer may be repeated for the same question in other words. */
export interface Cacheable {
  /** Hash of all that shapes the answer beside the question: earlier turns, system prompt, every parameter. */
  readonly promptVersion: string
  /** The question's text; only the answer cache reads it. */
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
  /** Prompt tokens beside the segments, which no rung trims: tools, schemas, the head of the answer. */
  readonly fixedTokens?: number | undefined
  /**
   * Token counts are guesses from text. A guess is corrected by the tenant's ratio and refuses nothing for its size;
   * absent, the counts are true, from a tokenizer or a trace.
   */
  readonly isEstimated?: boolean
  /** Names of the prompt's leading blocks, chained and salted with the cache scope, for routing by prefix. */
  readonly prefixHashes: readonly number[]
  /** The client's own salt of the prefix cache, inside that of its tenant; absent or empty when it sent none. */
  readonly cacheSalt?: string | undefined
  /** Hash of the conversation, salted with the tenant; undefined when the client named none. */
  readonly sessionHash?: number | undefined
  /** Most output tokens per choice that the client wants; undefined when it set no limit. */
  readonly outputTokensMax: number | undefined
  /** Number of answers to the same prompt (`n`). */
  readonly choiceCount: number
  readonly isStreamed: boolean
  readonly band: Band
  readonly bid: number
  readonly slo: Slo
  readonly arrivedAt: Instant
  /** The instant after which the answer is worth nothing to the client. */
  readonly deadlineAt: Instant
  /** A running answer ends at the deadline too. Otherwise only waiting ends there, and a late answer goes on. */
  readonly isCutOff?: boolean | undefined
  /** How often the request was sent from region to region, and its first region; absent when it came from a client. */
  readonly hops?: number | undefined
  readonly origin?: string | undefined
  /** Public names of the models that may answer; absent: any. */
  readonly modelsAllowed?: readonly string[] | undefined
  readonly text: RequestText | undefined
  /** Names what is asked: the same when the client asks again. Made when it is needed; absent where it cannot be told. */
  readonly askName?: (() => string) | undefined
  /** Where a request of kind `transit` goes, and its bytes. */
  readonly transit?: Transit
  readonly retrieval?: RetrievalWish | undefined
  /** Headers that a rollout's rules look at, by name in lower case. */
  readonly flags?: Readonly<Record<string, string>> | undefined
  readonly errand?: Errand
  /**
   * The end user whom the client named (`user`, `safety_identifier`); absent when it named none, and where the tenant has
   * no budget for each of its users: a name that nobody needs is not kept.
   */
  readonly endUser?: string | undefined
  /** Absent where no answer may be stored or repeated. */
  readonly cacheable?: Cacheable | undefined
  /** The answer may make the client act: a shadow on a second release would act twice. */
  readonly hasTools?: boolean | undefined
  /** What was found in the text and what is left to look for; absent where the tenant has no screens. */
  readonly screening?: Screening | undefined
  /** The caller's trace; absent when it named none. */
  readonly trace?: TraceContext | undefined
  /** An answer without its end cannot be used (a tool call, a JSON document): no rung shortens it. */
  readonly mustEndWhole?: boolean | undefined
}

/** Whether another attempt could send the same request: bytes of a transit that have gone through are not kept. */
export const canRepeat = ({ transit }: Request): boolean => transit?.body.canOpen !== false

/** Whether the client still sends while its engine works: the answer's times then say nothing about the engine. */
export const isFedByClient = ({ transit }: Request): boolean => transit?.body.isUpload === true

/**
 * The cache scope: requests of the same scope may find each other's prompts in an engine's prefix cache, and no others
 * (law L13). Scopes of a tenant, an org and all never have the same name; what the client adds stays within its own.
 */
export function cacheScopeOf({ tenant, cacheSalt = '' }: Pick<Request, 'tenant' | 'cacheSalt'>): string {
  const { id, orgId, prefixCache } = tenant
  const whose = prefixCache === undefined ? `tenant ${id}` : prefixCache === 'org' ? `org ${orgId}` : 'shared'
  return cacheSalt === '' ? whose : `${whose}\u0000${cacheSalt}`
}

export const promptTokensOf = ({ segments, fixedTokens = 0 }: Request): number =>
  fixedTokens + tokensOfSegments(segments)

export function tokensOfSegments(segments: readonly Segment[]): number {
  let tokens = 0
  for (const segment of segments) tokens += segment.tokens
  return tokens
}
