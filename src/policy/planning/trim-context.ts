import type { Segment } from '../../domain/request.ts'

/**
 * Which part of a conversation can be left out?
 *
 * The oldest turns. A turn is a user's message and everything up to the next one (answers, tool calls and their
 * results), and it goes or stays whole, because a tool result without its call is an error to most engines. The system
 * prompt stays wherever it stands, and so does the last turn: without them the answer would be to another question.
 * Between these, turns are kept from the newest backwards while they fit (the recency rule that chat clients use).
 *
 * It does not cut inside a segment, summarise, or rank by meaning: text is outside, and what was dropped must be
 * explainable in one sentence. When what must stay is already over the target, it stays.
 *
 * Example: system 200 | u 100, a 400 | u 50, a 250 | u 80; keep half of 1,080 = 540: must stay 280; the turn before
 * fits (300 → 580 > 540: no), so only system and the last question remain: 280.
 */
export interface TrimTerms {
  readonly contextRatioMax: number
  readonly contextTokensFloor: number
}

export interface KeptContext {
  readonly segments: readonly Segment[]
  readonly indices: readonly number[]
  readonly tokens: number
  /** Tokens before the first segment that was left out: as much of a cached prefix can still be used. */
  readonly leadingTokens: number
}

export function trimContext(segments: readonly Segment[], terms: TrimTerms): KeptContext {
  let total = 0
  for (const segment of segments) total += segment.tokens
  const target = Math.max(terms.contextTokensFloor, Math.floor(total * terms.contextRatioMax))
  if (total <= target) return keepAll(segments, total)

  const lastTurnFrom = findLastTurn(segments)
  let tokens = 0
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i] as Segment
    if (i >= lastTurnFrom || segment.role === 'system') tokens += segment.tokens
  }

  // Walk backwards, a whole turn at a time; system segments inside a turn are already counted.
  let keptFrom = lastTurnFrom
  let turnTokens = 0
  for (let i = lastTurnFrom - 1; i >= 0; i--) {
    const segment = segments[i] as Segment
    if (segment.role !== 'system') turnTokens += segment.tokens
    if (segment.role !== 'user' && i > 0) continue
    if (tokens + turnTokens > target) break
    tokens += turnTokens
    turnTokens = 0
    keptFrom = i
  }
  return keepFrom(segments, keptFrom, tokens)
}

function keepAll(segments: readonly Segment[], tokens: number): KeptContext {
  return { segments, indices: allIndices(segments.length), tokens, leadingTokens: tokens }
}

/** Nearly every plan keeps everything: 0, 1, 2 … is made once for each length, and nobody may change it. */
const INDICES_KEPT_MAX = 256
const knownIndices: Array<readonly number[] | undefined> = []

function allIndices(length: number): readonly number[] {
  const known = knownIndices[length]
  if (known !== undefined) return known
  const indices = Object.freeze(Array.from({ length }, (_, index) => index))
  if (length <= INDICES_KEPT_MAX) knownIndices[length] = indices
  return indices
}

function keepFrom(segments: readonly Segment[], keptFrom: number, tokens: number): KeptContext {
  const kept: Segment[] = []
  const indices: number[] = []
  let leadingTokens = 0
  for (let i = 0; i < segments.length; i++) {
    const segment = segments[i] as Segment
    if (i < keptFrom && segment.role !== 'system') continue
    if (indices.length === i) leadingTokens += segment.tokens
    kept.push(segment)
    indices.push(i)
  }
  return { segments: kept, indices, tokens, leadingTokens }
}

/** Index of the last user segment (or of the last segment, when no user speaks). */
function findLastTurn(segments: readonly Segment[]): number {
  for (let i = segments.length - 1; i >= 0; i--) {
    if ((segments[i] as Segment).role === 'user') return i
  }
  return Math.max(0, segments.length - 1)
}
