/**
 * How far may a prompt's estimated size be off, and what follows from that?
 *
 * A prompt that comes as text is estimated (`estimate.ts`) and corrected by its tenant's ratio (`tenant-ratios.ts`). The
 * estimate is good enough to plan, to order and to charge with, because usage settles every charge. It is not good
 * enough to say no for good. So its size has two ends: at most twice the larger of raw and corrected estimate, at least
 * half of the smaller.
 *
 * - Where the upper end touches a bound (context window, KV, a budget's burst, the operator's longest prompt), the
 *   gateway has the prompt counted by the model's tokenizer, if there is one and it answers in time.
 * - Where it was not counted, a refusal for good needs the lower end to be over the bound: that holds for budgets
 *   ("can never fit") and for deadlines ("not even an idle engine"). The context window and KV are left to the engine.
 *
 * It does not bound what a client can hide: a text of rare symbols is up to twenty times as long as it looks. Such a
 * prompt is refused by the engine, and its tenant's ratio grows by its report.
 *
 * Example: estimated 9,000, ratio 1.5 → 13,500 corrected: at most 27,000, at least 4,500. A window of 32,768 is out of
 * reach; one of 16,384 is in doubt, so the prompt is counted.
 */
const DOUBT_FACTOR = 2

export interface GuessedSize {
  readonly rawTokens: number
  readonly correctedTokens: number
}

export function mayExceed({ rawTokens, correctedTokens }: GuessedSize, tokensMax: number): boolean {
  return DOUBT_FACTOR * Math.max(rawTokens, correctedTokens) > tokensMax
}

export function leastTokens({ rawTokens, correctedTokens }: GuessedSize): number {
  return Math.floor(Math.min(rawTokens, correctedTokens) / DOUBT_FACTOR)
}
