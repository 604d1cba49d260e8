import type { Platform } from '../../src/lifecycle/platform.ts'

/**
 * Brings back a lock-up: first tokens are predicted to take 600 ms however idle the engine is, so that with a promise of
 * 500 ms nothing is admitted but by the idle rule, and nothing is learned.
 */
export function lockUp({ policies }: Platform): void {
  for (const { speed } of policies.poolsById.values())
    speed.under = () => ({ prefillUs: () => PREDICTED_US, tokenUs: (contextTokens) => speed.tokenUs(contextTokens) })
}

const PREDICTED_US = 600_000
