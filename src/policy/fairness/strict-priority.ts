import type { HeadOrder } from './ordered-lanes.ts'

/**
 * Which lane goes next, when the more important always goes first? Strict priority over all tenants: the higher band,
 * and inside a band the higher aged bid. Here to be compared with: money buys another tenant's share, and a band that
 * is never empty starves those below it.
 *
 * Worked example: interactive with bid 0 goes before standard with bid 100; of two interactive heads, the earlier
 * `dueAt`.
 */
export const STRICT_PRIORITY: HeadOrder = {
  rankOf: (lane) => lane.bandRank,
  keyOf: (lane) => lane.head()?.dueAt ?? Number.POSITIVE_INFINITY,
}
