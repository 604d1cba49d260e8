/**
 * How many replicas does this much work need?
 *
 *   desired = ⌈(demand one cold start ahead + margin + backlog ÷ drainTarget) ÷ (drain per replica · ρ)⌉
 *
 * Demand is what is offered, refused or not: the gauge of a full engine stops at one and a bounded queue at its bound, so
 * both go blind when it matters. What waits is added as the rate that would work it off in `drainTargetUs`.
 *
 * Monotone in demand, margin and backlog; always within `minWarm` … `max`. Where the drain is unknown (nothing was ever
 * measured) the answer is the least that can serve.
 * Example: 1,300/s ahead, margin 100/s, 200 waiting to be worked off in 2 s, 500/s a replica at ρ = 0.8:
 * 1,500 ÷ 400 = 3.75, so 4.
 */
export interface Need {
  readonly demandPerUs: number
  readonly marginPerUs: number
  readonly backlogCost: number
  readonly drainPerReplicaUs: number
}

export interface NeedTerms {
  readonly utilisationRatio: number
  readonly drainTargetUs: number
}

export function replicasFor(need: Need, { utilisationRatio, drainTargetUs }: NeedTerms): number {
  const work = need.demandPerUs + need.marginPerUs + need.backlogCost / drainTargetUs
  if (work <= 0) return 0
  const each = need.drainPerReplicaUs * utilisationRatio
  // A hair less than the quotient: rounding must not order a replica for work that fits exactly.
  return each > 0 ? Math.ceil(work / each - 1e-9) : 1
}

/** Within what the operator wants, and at least one where anything is asked at all. */
export function withinBounds(
  count: number,
  { minWarm, max }: { readonly minWarm: number; readonly max: number },
): number {
  return Math.min(max, Math.max(minWarm, Number.isFinite(count) ? Math.ceil(count) : max))
}
