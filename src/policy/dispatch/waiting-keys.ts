import type { WaitingKey, WaitingKeys } from '../../domain/share-path.ts'

/**
 * Which keys wait at a pool, and with how many tickets? All bands together.
 *
 * Bound: the `keysMax` keys with most tickets; the others are counted together.
 *
 * Example: three keys wait with 5, 1 and 2 tickets, two may be named: `keys` 5 and 2, `otherKeyCount` 1, `otherCount` 1.
 */
export function waitingKeysOf(
  lanes: Iterable<{
    readonly orgId: string
    readonly tenantId: string
    readonly keyId: string
    readonly count: number
  }>,
  keysMax: number,
): WaitingKeys | undefined {
  const byKey = new Map<string, WaitingKey>()
  let total = 0
  for (const { orgId, tenantId, keyId, count } of lanes) {
    if (count === 0) continue
    total += count
    byKey.set(keyId, { orgId, tenantId, keyId, count: count + (byKey.get(keyId)?.count ?? 0) })
  }
  if (total === 0) return undefined
  const keys = [...byKey.values()].sort((a, b) => b.count - a.count || (a.keyId < b.keyId ? -1 : 1)).slice(0, keysMax)
  const named = keys.reduce((sum, { count }) => sum + count, 0)
  return { keys, otherKeyCount: byKey.size - keys.length, otherCount: total - named }
}
