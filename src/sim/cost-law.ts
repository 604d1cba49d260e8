import type { CostClosed, SecondClosed } from '../domain/cost-entry.ts'
import type { Entry, Settled } from '../domain/entry.ts'
import { billUpTo } from '../policy/cost/replica-bill.ts'
import { sumOfLines } from '../policy/cost/second-closer.ts'

/**
 * Law L15, from the journal alone: for every closed second the lines add up to the replica's bill, the bills of a replica
 * have no gap and are those of its rate; every ticket that had a turn gets its final cost once, after it settled; and what
 * tenants were charged with in seconds is what their tickets cost in the end.
 *
 * A gateway that is lost takes with it what its tickets cost: nobody waits for their final costs, and what its tenants were
 * charged with for them stays charged. The sums of tenants are then not compared.
 *
 * Memory: tickets between their end and their final cost, one record for each replica and tenant.
 */
export class CostLaw {
  readonly #broken: (ticketId: string, what: string) => void
  /** By ticket, the gateway that has it. */
  readonly #waiting = new Map<string, string>()
  readonly #lost = new Set<string>()
  readonly #closedUntil = new Map<string, { since: number; until: number }>()
  /** By tenant: charged in seconds less the final cost of its tickets. */
  readonly #open = new Map<string, number>()

  constructor(broken: (ticketId: string, what: string) => void) {
    this.#broken = broken
  }

  /** `from` names the process of a gateway, where there are several. */
  take(entry: Entry, from = ''): void {
    if (entry.kind === 'settled') this.#settled(entry, from)
    else if (entry.kind === 'second-closed') this.#second(entry)
    else if (entry.kind === 'cost-closed') this.#ticket(entry)
  }

  /** At the end of a run every second is closed, and so is every ticket's cost. */
  finish(): void {
    for (const ticketId of this.#waiting.keys()) this.#broken(ticketId, 'its cost was never closed')
    if (this.#lost.size > 0) return
    for (const [tenantId, nano] of this.#open) {
      if (nano !== 0) this.#broken('', `${tenantId} was charged ${nano} nano-dollars more than its tickets cost`)
    }
  }

  /** The process of a gateway is gone. */
  lost(from: string): void {
    this.#lost.add(from)
    for (const [ticketId, at] of this.#waiting) if (at === from) this.#waiting.delete(ticketId)
  }

  #settled({ ticketId, attempts }: Settled, from: string): void {
    if (attempts > 0 && !this.#lost.has(from)) this.#waiting.set(ticketId, from)
  }

  #second(closed: SecondClosed): void {
    const { replicaId, fromAt, toAt, billedSince, nanoPerHour, billNano, tenants, lines } = closed
    const sum = sumOfLines(closed)
    if (sum !== billNano) this.#broken('', `a second of ${replicaId} has lines of ${sum}, and a bill of ${billNano}`)
    const bill = Number(billUpTo(nanoPerHour, toAt - billedSince) - billUpTo(nanoPerHour, fromAt - billedSince))
    if (bill !== billNano) this.#broken('', `a second of ${replicaId} is billed with ${billNano}, and costs ${bill}`)
    const before = this.#closedUntil.get(replicaId)
    // A replica that comes back has a new bill, which begins after the old one.
    if (before !== undefined && (before.since === billedSince ? before.until !== fromAt : before.until > fromAt))
      this.#broken('', `${replicaId} was closed up to ${before.until}, and then from ${fromAt}`)
    this.#closedUntil.set(replicaId, { since: billedSince, until: toAt })
    const all = [
      billNano,
      ...Object.values(lines),
      ...tenants.flatMap(({ usedNano, idleNano }) => [usedNano, idleNano]),
    ]
    if (!all.every(Number.isSafeInteger)) this.#broken('', `a second of ${replicaId} has a part of a nano-dollar`)
    if (Object.values(lines).some((nano) => nano < 0)) this.#broken('', `a second of ${replicaId} has a negative line`)
    for (const { tenantId, usedNano } of tenants) this.#add(tenantId, usedNano)
  }

  #ticket({ ticketId, tenantId, costNano, isErrand }: CostClosed): void {
    if (!this.#waiting.delete(ticketId)) this.#broken(ticketId, 'its cost was closed twice, or before it ended')
    if (costNano < 0) this.#broken(ticketId, `it cost ${costNano}`)
    if (!isErrand) this.#add(tenantId, -costNano)
  }

  #add(tenantId: string, nano: number): void {
    this.#open.set(tenantId, (this.#open.get(tenantId) ?? 0) + nano)
  }
}
