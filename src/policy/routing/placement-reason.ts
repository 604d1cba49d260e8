/**
 * Why there, in a few words? The numbers are in the placement itself (`domain/placement.ts`).
 *
 * Constant strings: saying why allocates nothing.
 */
export function placementReason(
  roomCount: number,
  cachedTokens: number,
  isHome: boolean,
  isSampled: boolean,
  isPrefixHome: boolean,
): string {
  if (roomCount === 1) return 'the only replica with room'
  if (cachedTokens > 0) return 'soonest first token: it holds the beginning of the prompt'
  if (isHome) return 'soonest first token: the session was here before'
  if (isPrefixHome) return 'where all gateways send prompts with this beginning'
  return isSampled ? 'soonest first token of a sample' : 'soonest first token'
}
