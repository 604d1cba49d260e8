import { poolIdOf } from './cross-check.ts'
import type { PoolConfig, Settings } from './schema.ts'

/**
 * Engines that two pools have by the same URL, one line for each. It works, so it is a warning: every pool has a limit
 * and a queue of its own and counts the engine's room as its own, so together they may send it twice what it holds, and
 * tenants of one pool wait for those of the other outside the fair shares.
 */
export function sharedUrlLines({ pools }: Pick<Settings, 'pools'>): string[] {
  const poolsByUrl = new Map<string, Set<string>>()
  for (const pool of pools) {
    for (const url of urlsOf(pool)) {
      const key = comparable(url)
      poolsByUrl.set(key, (poolsByUrl.get(key) ?? new Set()).add(poolIdOf(pool)))
    }
  }
  return [...poolsByUrl].flatMap(([url, ids]) => (ids.size < 2 ? [] : [lineOf(url, [...ids])]))
}

function lineOf(url: string, ids: readonly string[]): string {
  const names = `${ids.slice(0, -1).join(', ')} and ${ids.at(-1)}`
  return (
    `pools ${names} share the engine at ${url.replace(/\?.*/, '')}, and each takes all of its room for its own. ` +
    'Give each pool its own engine, or divide the room between them with limit: { kind: fixed, concurrencyMax }.'
  )
}

function urlsOf({ backend, replicas }: PoolConfig): readonly string[] {
  if (backend.kind === 'simulated') return []
  if (typeof replicas !== 'number') return replicas
  return backend.url === undefined ? [] : [backend.url]
}

/** One engine written in two ways: upper case in the host, the scheme's own port, a slash at the end, a password. */
function comparable(text: string): string {
  if (!URL.canParse(text)) return text
  const { origin, pathname, search } = new URL(text)
  return `${origin}${pathname.replace(/\/+$/, '')}${search}`
}
