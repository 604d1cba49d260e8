import type { AuditCopyStore, AuditSearch, CopiedEvent } from '../domain/audit-copy.ts'

/** The copy in memory: for tests, and as the plain twin of the SQL store. */
export class MemoryAuditStore implements AuditCopyStore {
  readonly #events = new Map<string, CopiedEvent>()

  write(events: readonly CopiedEvent[]): Promise<void> {
    for (const event of events) {
      const key = `${event.origin} ${event.seq}`
      if (!this.#events.has(key)) this.#events.set(key, event)
    }
    return Promise.resolve()
  }

  search({ org, tenant, kind, request, seals, fromMs, toMs, after, limit }: AuditSearch): Promise<CopiedEvent[]> {
    const isMeant = (event: CopiedEvent): boolean =>
      event.atMs >= fromMs &&
      event.atMs < toMs &&
      (org === undefined || event.org === org) &&
      (tenant === undefined || event.tenant === tenant) &&
      (kind === undefined || event.kind === kind || event.kind.startsWith(`${kind}.`)) &&
      (request === undefined || event.request === request) &&
      (seals === undefined || event.seals.some((seal) => seals.includes(seal))) &&
      (after === undefined || order(event, after) > 0)
    return Promise.resolve([...this.#events.values()].filter(isMeant).sort(order).slice(0, limit))
  }

  prune(beforeMs: number, eventsMax: number): Promise<number> {
    const old = [...this.#events.entries()].filter(([, { atMs }]) => atMs < beforeMs)
    const gone = old.sort(([, a], [, b]) => a.atMs - b.atMs).slice(0, eventsMax)
    for (const [key] of gone) this.#events.delete(key)
    return Promise.resolve(gone.length)
  }
}

type Place = Pick<CopiedEvent, 'atMs' | 'origin' | 'seq'>

/** Newest first. */
function order(a: Place, b: Place): number {
  if (a.atMs !== b.atMs) return b.atMs - a.atMs
  if (a.origin !== b.origin) return a.origin < b.origin ? 1 : -1
  return b.seq - a.seq
}
