import type { EngineSpeed } from '../../domain/engine-speed.ts'
import type { Estimate } from '../../domain/plan.ts'

/**
 * How much of a prompt can an engine have read when its attempt ends before the first token?
 *
 * At most the uncached part of the prompt, and at most what the engine reads in the time from the grant to the end: an
 * attempt that was called off after a third of its reading time has had a third of its prompt read. The speed is that
 * of the engine alone, the fastest that it can have been, because the engine does not say how far it got; of an engine
 * whose step times are unknown, the speed that was observed.
 *
 * What is read is charged to the tenant that gave up (docs/adr/0022): otherwise a tenant whose clients hang up before
 * their first tokens has whole engines for nothing, and no order of turns can see it.
 *
 * Deliberately not: no look into the engine, so a prompt that waited there behind another is charged as if it had been
 * read; the whole step that an abandoned chunk keeps busy is not charged beyond the time that has passed.
 *
 * Example: 4,000 tokens, none cached, take 160 ms alone. Called off after 60 ms: 4,000 × 60 ÷ 160 = 1,500 tokens.
 */
export function readTokensOf(
  speed: EngineSpeed,
  estimate: Pick<Estimate, 'promptTokens' | 'cachedTokens'>,
  elapsedUs: number,
): number {
  const uncachedTokens = Math.max(0, Math.ceil(estimate.promptTokens - estimate.cachedTokens))
  const wholeUs = Math.max(1, speed.prefillUs(uncachedTokens, estimate.cachedTokens))
  return Math.ceil(uncachedTokens * Math.min(1, Math.max(0, elapsedUs) / wholeUs))
}
