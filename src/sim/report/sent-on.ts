import type { Entry } from '../../domain/entry.ts'

/**
 * Recognises the entries of a request that another region's gateway sent on. Such a request has a ticket in both
 * regions, but one client: reports count the client's. Memory is that of the live tickets.
 */
export class SentOn {
  readonly #live = new Set<string>()

  has(entry: Entry): boolean {
    if (!('ticketId' in entry) || entry.ticketId === undefined) return false
    if (entry.kind === 'arrived') {
      if (entry.origin === undefined) return false
      this.#live.add(entry.ticketId)
      return true
    }
    if (this.#live.size === 0 || !this.#live.has(entry.ticketId)) return false
    if (entry.kind === 'settled') this.#live.delete(entry.ticketId)
    return true
  }
}
