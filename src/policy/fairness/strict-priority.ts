import type { Lane } from './lane.ts'

/**
 * Which lane goes next, when the more important always goes first? Strict priority over all tenants: the higher band,
 * and inside a band the higher aged bid. Here to be compared with: money buys another tenant's share, and a band that
 * is never empty starves those below it.
 *
 * Worked example: interactive with bid 0 goes before standard with bid 100; of two interactive heads, the earlier
 * `dueAt`.
 */
export function isMoreImportant(a: Lane, b: Lane): boolean {
  if (a.bandRank !== b.bandRank) return a.bandRank < b.bandRank
  const first = a.head()
  const second = b.head()
  if (first === undefined || second === undefined) return first !== undefined
  if (first.dueAt !== second.dueAt) return first.dueAt < second.dueAt
  return first.sequence < second.sequence
}
