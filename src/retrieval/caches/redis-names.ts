import { hash } from 'node:crypto'
import type { RedisConnection } from './redis-connection.ts'

/** How caches name what is a tenant's, and how all of it is found again to be forgotten. */
export const tenantName = (tenantId: string): string => hash('sha256', tenantId, 'hex').slice(0, 24)

/** Keys looked at in one round trip. */
const SCAN_COUNT = 1_000
/** A cache of a hundred million keys has been seen by then; a server that lies about its end must not keep us here. */
const SCANS_MAX = 100_000

/** Removes every key that matches. Stops where the server does; what is left then expires by itself. */
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
