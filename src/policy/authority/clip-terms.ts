import type { KeyTerms } from '../../domain/key-terms.ts'
import type { Allowance, RateLimit } from '../../domain/tenant.ts'
import { type ClientRange, formatRange, isRangeWithin, parseRange } from './client-range.ts'
import { areBudgetsWithin, lowerBudgets } from './clip-budgets.ts'

/**
 * Which terms hold for a child of a parent, and does one set of terms lie within another?
 *
 * Terms are bounds, part by part; an absent part is no bound. `clipTerms` is their meet: the later beginning, the
 * earlier end, the common part of each list, the lower limit. `isPartWithin` is their order. So the terms in force of a
 * key are the meet of its org's, its tenant's and its own, and are within each of them whatever the records say: when an
 * org loses a model, its keys lose it in the same instant, and no record of theirs is written.
 *
 * Laws: the meet is within both; the meet of terms with themselves is themselves; order of clipping does not matter.
 * Example: models [a, b] ∧ models [b, c] = [b]; expires 10 ∧ no expiry = expires 10; [] ∧ anything = [].
 */
export type TermsPart = keyof KeyTerms

export const TERMS_PARTS: readonly TermsPart[] = [
  'notBeforeAtMs',
  'expiresAtMs',
  'models',
  'routes',
  'bands',
  'clientRanges',
  'allowance',
  'canInfer',
  'canManage',
]

/** The platform's own terms: no bound at all. */
export const PLATFORM_TERMS: KeyTerms = {}

export function clipTerms(parent: KeyTerms, child: KeyTerms): KeyTerms {
  const notBeforeAtMs = highest(parent.notBeforeAtMs, child.notBeforeAtMs)
  const expiresAtMs = lowest(parent.expiresAtMs, child.expiresAtMs)
  const models = shared(parent.models, child.models)
  const routes = shared(parent.routes, child.routes)
  const bands = shared(parent.bands, child.bands)
  const clientRanges = sharedRanges(parent.clientRanges, child.clientRanges)
  const allowance = lowerAllowance(parent.allowance, child.allowance)
  const canInfer = both(parent.canInfer, child.canInfer)
  const canManage = both(parent.canManage, child.canManage)
  return {
    ...(notBeforeAtMs !== undefined && { notBeforeAtMs }),
    ...(expiresAtMs !== undefined && { expiresAtMs }),
    ...(models !== undefined && { models }),
    ...(routes !== undefined && { routes }),
    ...(bands !== undefined && { bands }),
    ...(clientRanges !== undefined && { clientRanges }),
    ...(allowance !== undefined && { allowance }),
    ...(canInfer !== undefined && { canInfer }),
    ...(canManage !== undefined && { canManage }),
  }
}

/**
 * Whether this part of the inner terms allows nothing that the outer terms forbid. A client range counts as within when
 * one single range of the outer terms contains it.
 */
export function isPartWithin(part: TermsPart, outer: KeyTerms, inner: KeyTerms): boolean {
  switch (part) {
    case 'notBeforeAtMs':
      return (outer.notBeforeAtMs ?? Number.NEGATIVE_INFINITY) <= (inner.notBeforeAtMs ?? Number.NEGATIVE_INFINITY)
    case 'expiresAtMs':
      return (inner.expiresAtMs ?? Number.POSITIVE_INFINITY) <= (outer.expiresAtMs ?? Number.POSITIVE_INFINITY)
    case 'models':
    case 'routes':
    case 'bands':
      return isSubset(outer[part], inner[part])
    case 'clientRanges':
      return areRangesWithin(outer.clientRanges, inner.clientRanges)
    case 'allowance':
      return isAllowanceWithin(outer.allowance, inner.allowance)
    case 'canInfer':
    case 'canManage':
      return outer[part] !== false || inner[part] === false
  }
}

/** Ranges of terms are checked when they are set, so one that cannot be read contains nothing. */
export function rangesOf(texts: readonly string[]): ClientRange[] {
  return texts.flatMap((text) => {
    const range = parseRange(text)
    return typeof range === 'string' ? [] : [range]
  })
}

const lowest = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined ? other : other === undefined ? one : Math.min(one, other)

const highest = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined ? other : other === undefined ? one : Math.max(one, other)

const both = (one: boolean | undefined, other: boolean | undefined): boolean | undefined =>
  one === undefined ? other : other === undefined ? one : one && other

function shared<T>(one: readonly T[] | undefined, other: readonly T[] | undefined): readonly T[] | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const known = new Set(one)
  return other.filter((word) => known.has(word))
}

/** Two ranges are apart, or one lies within the other: the common part is the smaller one. */
function sharedRanges(
  one: readonly string[] | undefined,
  other: readonly string[] | undefined,
): readonly string[] | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const [ours, theirs] = [rangesOf(one), rangesOf(other)]
  const common = [
    ...theirs.filter((range) => ours.some((outer) => isRangeWithin(outer, range))),
    ...ours.filter((range) => theirs.some((outer) => isRangeWithin(outer, range))),
  ]
  return [...new Set(common.map(formatRange))]
}

function lowerAllowance(one: Allowance | undefined, other: Allowance | undefined): Allowance | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const requests = lowerRate(one.requests, other.requests)
  const tokens = lowerRate(one.tokens, other.tokens)
  const concurrencyMax = lowest(one.concurrencyMax, other.concurrencyMax)
  const budgets = lowerBudgets(one.budgets, other.budgets)
  return {
    ...(requests !== undefined && { requests }),
    ...(tokens !== undefined && { tokens }),
    ...(concurrencyMax !== undefined && { concurrencyMax }),
    ...(budgets !== undefined && { budgets }),
  }
}

function lowerRate(one: RateLimit | undefined, other: RateLimit | undefined): RateLimit | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return { perMinute: Math.min(one.perMinute, other.perMinute), burst: Math.min(one.burst, other.burst) }
}

function isSubset(outer: readonly string[] | undefined, inner: readonly string[] | undefined): boolean {
  if (outer === undefined) return true
  return inner?.every((word) => outer.includes(word)) ?? false
}

function areRangesWithin(outer: readonly string[] | undefined, inner: readonly string[] | undefined): boolean {
  if (outer === undefined) return true
  if (inner === undefined) return false
  const bounds = rangesOf(outer)
  return rangesOf(inner).every((range) => bounds.some((bound) => isRangeWithin(bound, range)))
}

function isAllowanceWithin(outer: Allowance = {}, inner: Allowance = {}): boolean {
  return (
    isRateWithin(outer.requests, inner.requests) &&
    isRateWithin(outer.tokens, inner.tokens) &&
    (inner.concurrencyMax ?? Number.POSITIVE_INFINITY) <= (outer.concurrencyMax ?? Number.POSITIVE_INFINITY) &&
    areBudgetsWithin(outer.budgets, inner.budgets)
  )
}

function isRateWithin(outer: RateLimit | undefined, inner: RateLimit | undefined): boolean {
  if (outer === undefined) return true
  return inner !== undefined && inner.perMinute <= outer.perMinute && inner.burst <= outer.burst
}
