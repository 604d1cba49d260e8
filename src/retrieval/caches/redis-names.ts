import { hash } from 'node:crypto'
import type { RedisConnection } from '../../redis/redis-connection.ts'

/** Names of a tenant's keys in Redis, and how they are found again to be deleted. */
export const tenantName = (tenantId: string): string => hash('sha256', tenantId, 'hex').slice(0, 24)

/** Keys examined in one round trip. */
const SCAN_COUNT = 1_000
/** Bound of the scan, enough for a hundred million keys: a faulty server must not keep us here for ever. */
const SCANS_MAX = 100_000

/** Removes every matching key. Stops if the server fails; the remaining keys expire by themselves. */
export async function forgetKeys(connection: RedisConnection, pattern: string): Promise<void> {
  let cursor = '0'
  for (let scan = 0; scan < SCANS_MAX; scan++) {
    const from = cursor
    const found = await connection.ask(async (client) => {
      const page = await client.scan(from, { MATCH: pattern, COUNT: SCAN_COUNT })
      if (page.keys.length > 0) await client.unlink(page.keys)
      return String(page.cursor)
    })
    if (found === undefined || found === '0') return
    cursor = found
  }
}
