import type { Passage } from '../../domain/corpus.ts'
import type { PassageRoom } from '../../domain/plan.ts'
import type { Request } from '../../domain/request.ts'
import type { RungTerms } from '../../domain/rung.ts'

/**
 * How much may retrieval add to a prompt?
 *
 * As many passages as were asked for, less on a rung that trims them, and no more tokens than the model's context has
 * left beside the prompt and the answer. Before anything was found a passage counts as a typical one, so that admission
 * sees the work coming; once they are there they count as they are.
 *
 * Example: top_k 5 on a rung that allows 2, with 1,000 tokens left: two passages, 1,000 tokens at most, 340 expected.
 */
const TYPICAL_TOKENS = 170
/** A passage may be this long; more room than that would never be used. */
const PASSAGE_TOKENS_MAX = 512

export function passageRoom(request: Request, rung: RungTerms, tokensLeft: number): PassageRoom | undefined {
  if (request.retrieval === undefined) return undefined
  const passagesMax = Math.min(request.retrieval.passagesMax, rung.passagesMax ?? Number.POSITIVE_INFINITY)
  return { passagesMax, tokensMax: Math.max(0, Math.min(tokensLeft, passagesMax * PASSAGE_TOKENS_MAX)) }
}

/** The best that the room takes, in the order in which they came. */
export function fitPassages(
  passages: readonly Passage[] | undefined,
  room: PassageRoom | undefined,
): readonly Passage[] | undefined {
  if (passages === undefined || room === undefined) return undefined
  let tokensLeft = room.tokensMax
  const kept = new Set<Passage>()
  for (const passage of passages.toSorted((a, b) => b.score - a.score)) {
    if (kept.size >= room.passagesMax) break
    if (passage.tokens > tokensLeft) continue
    kept.add(passage)
    tokensLeft -= passage.tokens
  }
  return passages.filter((passage) => kept.has(passage))
}

export function passageTokens(room: PassageRoom | undefined, found: readonly Passage[] | undefined): number {
  if (found !== undefined) return found.reduce((sum, passage) => sum + passage.tokens, 0)
  return room === undefined ? 0 : Math.min(room.tokensMax, room.passagesMax * TYPICAL_TOKENS)
}
