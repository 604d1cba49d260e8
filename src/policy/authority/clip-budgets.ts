import { spendKeyOf } from '../../domain/spend-key.ts'
import type { SpendLimit } from '../../domain/tenant.ts'

/**
 * Budgets of a child of a parent. All budgets hold, so the meet of two lists is both of them; of two for the same thing
 * (period, hard or soft, model, per user) the lower amounts. A list is within another when it has each of the other's
 * budgets, with amounts that are no higher. A list in order of what its budgets are for is the same whoever is first.
 */
type Budgets = readonly SpendLimit[] | undefined

export function lowerBudgets(one: Budgets, other: Budgets): Budgets {
  if (one === undefined || other === undefined) return one ?? other
  const met = byKey(one)
  for (const [key, budget] of byKey(other)) {
    const known = met.get(key)
    met.set(key, known === undefined ? budget : lower(known, budget))
  }
  return inOrder(met)
}

/** The child's budgets in the place of the parent's for the same things, and the parent's others. */
export function replacedBudgets(parent: Budgets, child: Budgets): Budgets {
  if (parent === undefined || child === undefined) return child ?? parent
  return inOrder(new Map([...byKey(parent), ...byKey(child)]))
}

export function areBudgetsWithin(outer: Budgets = [], inner: Budgets = []): boolean {
  const known = byKey(inner)
  return outer.every((bound) => {
    const budget = known.get(spendKeyOf(bound))
    return budget !== undefined && isAmountWithin(bound, budget)
  })
}

function isAmountWithin(outer: SpendLimit, inner: SpendLimit): boolean {
  const isLow = (most: number | undefined, wanted = Number.POSITIVE_INFINITY): boolean =>
    most === undefined || wanted <= most
  return isLow(outer.nanoMax, inner.nanoMax) && isLow(outer.tokensMax, inner.tokensMax)
}

/** The same object where one of the two is the lower: who has it from above is seen by that. */
function lower(one: SpendLimit, other: SpendLimit): SpendLimit {
  if (isAmountWithin(other, one) && isSubset(other.marks, one.marks)) return one
  if (isAmountWithin(one, other) && isSubset(one.marks, other.marks)) return other
  const nanoMax = least(one.nanoMax, other.nanoMax)
  const tokensMax = least(one.tokensMax, other.tokensMax)
  return {
    ...one,
    ...(nanoMax !== undefined && { nanoMax }),
    ...(tokensMax !== undefined && { tokensMax }),
    marks: [...new Set([...one.marks, ...other.marks])].sort((a, b) => a - b),
  }
}

const isSubset = (some: readonly number[], all: readonly number[]): boolean => some.every((mark) => all.includes(mark))

const least = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined ? other : other === undefined ? one : Math.min(one, other)

const byKey = (budgets: readonly SpendLimit[]): Map<string, SpendLimit> => {
  const known = new Map<string, SpendLimit>()
  for (const budget of budgets) {
    const key = spendKeyOf(budget)
    const before = known.get(key)
    known.set(key, before === undefined ? budget : lower(before, budget))
  }
  return known
}

const inOrder = (budgets: ReadonlyMap<string, SpendLimit>): readonly SpendLimit[] =>
  [...budgets].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, budget]) => budget)
