import { assert } from '../base/assert.ts'

/**
 * How many tokens does a step bring when a draft runs ahead?
 *
 * A cheap drafter proposes `draftTokens` tokens, the model checks all of them in one step, and the first wrong one ends
 * the burst; the model's own next token comes on top (Leviathan et al. 2023). So a step brings 1 to draftTokens + 1.
 * With the chance `acceptance[i]` that a draft gets to position i and is right there, one uniform number decides:
 * the burst is as long as the number stays below those chances, which fall with i.
 *
 * The number is a hash of the run's seed, the sequence and its position, not the next one of a stream: what a sequence
 * draws does not depend on who else runs, nor on being preempted (law L9).
 *
 * The numbers of drafts, draft tokens and accepted tokens are kept under vLLM's names (`vllm:spec_decode_num_…`), and
 * as there a draft accepted beyond the end of the answer counts as accepted.
 */
export interface Speculation {
  readonly draftTokens: number
  /** Chance that at least i + 1 draft tokens are accepted; not increasing. vLLM's acceptance rate per position. */
  readonly acceptance: readonly number[]
  /** The drafter's time per draft token, for all sequences together, and on top for each. */
  readonly draftUsPerToken: number
  readonly draftUsPerSequenceToken: number
}

/** What vLLM counts of speculation. */
export interface SpeculationCounters {
  drafts: number
  draftTokens: number
  acceptedTokens: number
  readonly acceptedByPosition: number[]
}

/** A drafter whose every token is right with the same chance, given that those before were. */
export function constantAcceptance(draftTokens: number, chance: number): readonly number[] {
  const acceptance: number[] = []
  let reaching = 1
  for (let i = 0; i < draftTokens; i++) {
    reaching *= chance
    acceptance.push(reaching)
  }
  return acceptance
}

export function draftUs(speculation: Speculation, decodeCount: number): number {
  return speculation.draftTokens * (speculation.draftUsPerToken + speculation.draftUsPerSequenceToken * decodeCount)
}

/** Draft tokens accepted by the sequence of that ordinal when it has made `generatedTokens`. */
export function acceptedTokens(
  speculation: Speculation,
  seed: number,
  at: { ordinal: number; generatedTokens: number },
): number {
  const chance = hash32(seed ^ Math.imul(at.ordinal, 0x9e3779b1), at.generatedTokens) / 2 ** 32
  let accepted = 0
  while (accepted < speculation.draftTokens && chance < (speculation.acceptance[accepted] as number)) accepted++
  return accepted
}

/** Two rounds of the 32-bit finalizer of MurmurHash3: every bit of the input moves every bit of the output. */
function hash32(a: number, b: number): number {
  let hash = Math.imul(a ^ (a >>> 16), 0x85ebca6b) ^ b
  for (let round = 0; round < 2; round++) {
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  }
  return (hash ^ (hash >>> 16)) >>> 0
}

export function assertSpeculation(speculation: Speculation): void {
  const { draftTokens, acceptance } = speculation
  assert(draftTokens >= 1 && acceptance.length === draftTokens, 'a draft has one acceptance per token')
  for (let i = 0; i < draftTokens; i++) {
    const chance = acceptance[i] as number
    assert(chance >= 0 && chance <= (acceptance[i - 1] ?? 1), 'acceptance does not grow with the position')
  }
}
