import type { Scorer } from '../room-view.ts'

/**
 * How long would it read this prompt? Only what it does not hold already counts, at its own measured pace.
 *
 * Example: 3,000 tokens of which 2,000 are held, 50 µs a token, a replica 1.2 × as slow as its prior: 60 ms; one that
 * holds nothing: 180 ms.
 */
export const scorePrefill: Scorer = (scene, _room, learned) => {
  const uncachedTokens = Math.max(1, scene.ask.estimate.promptTokens - scene.cachedTokens)
  return uncachedTokens * scene.prefillUsPerToken * learned.slowness
}
