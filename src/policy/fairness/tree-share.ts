/**
 * What is a tenant's share of a pool, of all that have something to do?
 *
 * The shares that the tree of turns (`hierarchy.ts`) leads to, as numbers, for everybody who asks what a tenant is entitled
 * to without giving turns: the shared buffer, the reading of long prompts, the report on fairness. The ladder's demand
 * (`policy/ladder/demand.ts`) fills the same tree from above, because it also asks who wants less than that.
 *
 * An org without a weight of its own weighs as much as its active tenants, so its tenants stand among all tenants with
 * their own weights. The tenants of an org with a weight share that weight: each has the org's weight, times its own, by
 * the sum of its active siblings' and its own.
 *
 * Example: org A weighs 1 and has tenants a1 and a2, b (weight 3) stands alone: a1 and a2 weigh ½ each among all, so the
 * shares are ⅛, ⅛ and ¾. When a2 has nothing to do, a1 has ¼.
 */
export interface TreePlace {
  readonly orgId: string
  readonly weight: number
}

/** Weights of the orgs that have one of their own. */
export type OrgWeights = ReadonlyMap<string, number>

/** A tenant's weight among all active tenants; `orgActiveWeight` is that of its org's active tenants, itself included. */
export function weightAmongAll(weight: number, orgWeight: number | undefined, orgActiveWeight: number): number {
  return orgWeight === undefined ? weight : (orgWeight * weight) / orgActiveWeight
}

/** Each one's share of the whole, in the order given; the shares add up to 1. O(tenants). */
export function sharesAmong(active: readonly TreePlace[], orgWeights: OrgWeights): number[] {
  const orgActive = new Map<string, number>()
  if (orgWeights.size > 0)
    for (const { orgId, weight } of active) orgActive.set(orgId, (orgActive.get(orgId) ?? 0) + weight)
  const weights = active.map(({ orgId, weight }) =>
    weightAmongAll(weight, orgWeights.get(orgId), orgActive.get(orgId) ?? weight),
  )
  const whole = weights.reduce((sum, weight) => sum + weight, 0)
  return weights.map((weight) => weight / whole)
}
