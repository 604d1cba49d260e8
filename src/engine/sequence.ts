import type { Instant } from '../base/clock.ts'
import { SequenceTime } from './sequence-time.ts'

/**
 * One prompt on its way to an answer, as the engine sees it: no tenant, no text, only counts and names of blocks.
 *
 * vLLM's idea removes the two modes: there is no prefill and no decode, only computed tokens catching up with known
 * ones. A sequence that lags by more than one token is prefilling; one that lags by exactly one is decoding; one that
 * was preempted knows its prompt and everything it has already said, and has computed nothing of it.
 *
 * `outputTokens` is the true length of the answer. It exists only here and in the simulated client's script (law L10).
 */

/** `few`: the first token and the end. `every-step`: each step's tokens, for a client that watches them come. */
export type ReportPace = 'few' | 'every-step'

export interface SequenceSpec {
  readonly id: string
  readonly promptTokens: number
  readonly outputTokens: number
  /** Blocks are shared only between sequences of one salt (a tenant). */
  readonly salt?: string
  /** Chained names of the prompt's leading cache units; may go on into the answer, whose units are then reusable. */
  readonly prefixHashes?: readonly number[]
  readonly reports?: ReportPace
}

export type SequencePlace = 'waiting' | 'prefilling' | 'decoding' | 'ended'

/** Not yet. Instants are never negative, and a number field that changes type would cost the engine its speed. */
export const NEVER: Instant = -1

const NO_HASHES: readonly number[] = []

export class Sequence {
  readonly id: string
  /** Order of arrival. */
  readonly ordinal: number
  readonly arrivedAt: Instant
  readonly promptTokens: number
  readonly outputTokens: number
  readonly salt: string
  readonly prefixHashes: readonly number[]
  readonly isReportedEveryStep: boolean

  place: SequencePlace = 'waiting'
  /** Static batching: it is a member of the batch that runs. */
  isInBatch = false
  /** Tokens whose keys and values are in blocks. While decoding, the decode set knows better. */
  computedTokens = 0
  /** Output tokens made so far. While decoding, the decode set knows better. */
  generatedTokens = 0
  /** Output tokens that an event has told of. */
  reportedTokens = 0
  /** This step's share of the token budget; zero outside a step. */
  plannedTokens = 0
  /** Blocks held by this sequence alone, without a name. While decoding, the decode set knows better. */
  ownBlocks = 0
  /** Cache units held, in prompt order; shared or named by this sequence. */
  readonly units: number[] = []
  /** Prompt tokens found in the cache when it first ran: what the client's bill calls cached. */
  cachedTokens = NEVER
  preemptions = 0
  /** Tokens that were computed before the last preemption: up to here it computes again. */
  reachedTokens = 0
  /** What it took of the engine's time. */
  readonly time = new SequenceTime()
  firstTokenAt: Instant = NEVER

  /** Where the decode set keeps it. */
  slot = -1
  previous: Sequence | undefined = undefined
  next: Sequence | undefined = undefined

  constructor(spec: SequenceSpec, ordinal: number, arrivedAt: Instant) {
    this.id = spec.id
    this.ordinal = ordinal
    this.arrivedAt = arrivedAt
    this.promptTokens = spec.promptTokens
    this.outputTokens = spec.outputTokens
    this.salt = spec.salt ?? ''
    this.prefixHashes = spec.prefixHashes ?? NO_HASHES
    this.isReportedEveryStep = spec.reports === 'every-step'
  }

  /** Prompt and answer so far. Not while decoding. */
  get knownTokens(): number {
    return this.promptTokens + this.generatedTokens
  }
}
