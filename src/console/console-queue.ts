import type { WaitingKeys } from '../domain/share-path.ts'

/** What waits, by org → tenant → key: the keys with most of it over all pools, and the rest. */
export interface ConsoleQueue {
  /** Org, tenant, key, and how many requests of it wait; the most first. */
  readonly rows: readonly ConsoleQueueRow[]
  /** Requests of keys that are not named, and how many such keys there are at least. */
  readonly rest: number
  readonly restKeys: number
}

export type ConsoleQueueRow = readonly [org: string, tenant: string, key: string, waiting: number]

const ROWS_MAX = 20

/** A pool names its own first keys only: a key that is small at each pool may be missing, and is in the rest. */
export function queueOver(pools: Iterable<WaitingKeys | undefined>): ConsoleQueue {
  const rows: ConsoleQueueRow[] = []
  let [rest, restKeys] = [0, 0]
  for (const waiting of pools) {
    if (waiting === undefined) continue
    for (const { orgId, tenantId, keyId, count } of waiting.keys) rows.push([orgId, tenantId, keyId, count])
    rest += waiting.otherCount
    restKeys = Math.max(restKeys, waiting.otherKeyCount)
  }
  return addedQueue([{ rows, rest, restKeys }])
}

/** Queues of several pools or gateways as one. */
export function addedQueue(queues: readonly ConsoleQueue[]): ConsoleQueue {
  const byKey = new Map<string, ConsoleQueueRow>()
  for (const { rows } of queues) {
    for (const row of rows) {
      const [org, tenant, key, waiting] = row
      const name = `${tenant}\n${key}`
      byKey.set(name, [org, tenant, key, waiting + (byKey.get(name)?.[3] ?? 0)])
    }
  }
  const all = [...byKey.values()].sort((a, b) => b[3] - a[3] || (a[2] < b[2] ? -1 : 1))
  const left = all.slice(ROWS_MAX)
  return {
    rows: all.slice(0, ROWS_MAX),
    rest: queues.reduce((sum, { rest }) => sum + rest, 0) + left.reduce((sum, row) => sum + row[3], 0),
    restKeys: Math.max(0, ...queues.map(({ restKeys }) => restKeys)) + left.length,
  }
}
