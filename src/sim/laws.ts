import type { Entry, Settled } from '../domain/entry.ts'

/**
 * The laws that a journal alone can show (docs/architecture/laws.md), checked as it is written: L1 each ticket ends
 * once and what arrived is settled or live; L2 an attempt that was granted ends once; L5 stamps are in order. Memory
 * is that of the live tickets.
 */
export interface Violation {
  readonly law: 'L1' | 'L2' | 'L5'
  readonly ticketId: string
  readonly what: string
}

/** More than a few of one kind say nothing new. */
const VIOLATIONS_MAX = 20

export class LawChecker {
  readonly name = 'laws'
  readonly violations: Violation[] = []
  readonly #live = new Map<string, { granted: number; ended: number }>()
  #arrived = 0
  #settled = 0

  get liveCount(): number {
    return this.#live.size
  }

  take(entry: Entry): void {
    switch (entry.kind) {
      case 'arrived':
        this.#arrived++
        if (this.#live.has(entry.ticketId)) this.#broken('L1', entry.ticketId, 'it arrived twice')
        this.#live.set(entry.ticketId, { granted: 0, ended: 0 })
        return
      case 'granted':
        this.#onLive(entry.ticketId, 'granted', (ticket) => ticket.granted++)
        return
      case 'attempt-ended':
        this.#onLive(entry.ticketId, 'ended an attempt', (ticket) => ticket.ended++)
        return
      case 'settled':
        this.#settle(entry)
        return
      default:
    }
  }

  /** When the run is over nothing may be alive. */
  finish(): readonly Violation[] {
    for (const ticketId of this.#live.keys()) this.#broken('L1', ticketId, 'it never ended')
    if (this.#arrived !== this.#settled + this.#live.size) this.#broken('L1', '', 'arrived ≠ settled + live')
    return this.violations
  }

  /** Seen by somebody who looks at more than the journal. */
  broken(law: Violation['law'], what: string): void {
    this.#broken(law, '', what)
  }

  #settle(entry: Settled): void {
    const { ticketId, arrivedAt, admittedAt, grantedAt, firstTokenAt, at } = entry
    const ticket = this.#live.get(ticketId)
    if (ticket === undefined) {
      this.#broken('L1', ticketId, 'it ended without having arrived, or twice')
      return
    }
    this.#settled++
    this.#live.delete(ticketId)
    if (ticket.granted !== ticket.ended)
      this.#broken('L2', ticketId, `granted ${ticket.granted}, returned ${ticket.ended}`)
    const stamps = [arrivedAt, admittedAt, grantedAt, firstTokenAt, at].filter((stamp) => stamp !== undefined)
    for (let i = 1; i < stamps.length; i++) {
      if ((stamps[i] as number) < (stamps[i - 1] as number))
        this.#broken('L5', ticketId, `stamps ${stamps.join(' > ')}`)
    }
  }

  #onLive(ticketId: string, what: string, note: (ticket: { granted: number; ended: number }) => void): void {
    const ticket = this.#live.get(ticketId)
    if (ticket === undefined) this.#broken('L1', ticketId, `it ${what} while it was not alive`)
    else note(ticket)
  }

  #broken(law: Violation['law'], ticketId: string, what: string): void {
    if (this.violations.length < VIOLATIONS_MAX) this.violations.push({ law, ticketId, what })
  }
}
