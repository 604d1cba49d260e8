import type { NoPlaceCode } from '../../src/domain/no-place.ts'
import type { Estimate } from '../../src/domain/plan.ts'
import { BANDS } from '../../src/domain/tenant.ts'
import type { DispatcherOptions } from '../../src/policy/dispatch/dispatch-options.ts'
import type { Effect, Offer, Offered } from '../../src/policy/dispatch/offer.ts'

/**
 * The dispatcher once more, obviously right and slow: one array of tickets, one of replicas, everything found by
 * looking at all of them every time. First come, first served between lanes; fixed limits. The real one must do
 * exactly the same (`dispatcher.twin.test.ts`).
 */
interface Ticket {
  readonly offer: Offer
  readonly laneId: string
  readonly dueAt: number
  readonly sequence: number
  isReady: boolean
  estimate: Estimate
}

interface Machine {
  readonly id: string
  readonly ordinal: number
  readonly slots: number
  readonly kvTokensMax: number
  isReady: boolean
  allowance: number
  readonly held: Map<number, Ticket>
}

interface Owed {
  readonly ticket: Ticket
  readonly since: number
}

const rankOf = (ticket: Ticket): number => BANDS.indexOf(ticket.offer.band)
const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

export class NaiveDispatcher {
  readonly #options: DispatcherOptions
  #queue: Ticket[] = []
  #machines: Machine[] = []
  readonly #gone: Machine[] = []
  #owed: Owed[] = []
  #reservation: { readonly ticket: Ticket; readonly machine: Machine } | undefined
  /** When a tenant last began to have something queued; when a lane was first used. */
  readonly #since = new Map<string, number>()
  #grantedCount = 0
  #leaseId = 0
  #sequence = 0
  #ordinal = 0

  constructor(options: DispatcherOptions) {
    this.#options = options
  }

  addReplica(now: number, id: string, slots: number, kvTokensMax: number): Effect[] {
    const ordinal = this.#ordinal++
    const allowance = Number.POSITIVE_INFINITY
    this.#machines.push({ id, ordinal, slots, kvTokensMax, isReady: true, allowance, held: new Map() })
    return this.#give(now)
  }

  removeReplica(now: number, id: string): Effect[] {
    const machine = this.#machines.find((one) => one.id === id)
    if (machine === undefined) return []
    machine.isReady = false
    this.#machines = this.#machines.filter((one) => one !== machine)
    this.#gone.push(machine)
    if (this.#reservation?.machine === machine) this.#reservation = undefined
    return this.#give(now)
  }

  replicaChanged(now: number, id: string, change: { isReady?: boolean; allowance?: number }): Effect[] {
    const machine = this.#machines.find((one) => one.id === id)
    if (machine === undefined) return []
    machine.isReady = change.isReady ?? machine.isReady
    machine.allowance = change.allowance ?? machine.allowance
    const isUsable = machine.isReady && machine.allowance >= 1
    if (!isUsable && this.#reservation?.machine === machine) this.#reservation = undefined
    return this.#give(now)
  }

  offer(now: number, offer: Offer, isAgain = false): Offered {
    const { estimate } = offer
    if (offer.expiresAt <= now) return refused('expired-on-arrival')
    if (!this.#canEverFit(estimate)) return refused('fits-no-replica')
    const { agingUsPerBid } = this.#options.lanes
    const dueAt = isAgain ? Number.NEGATIVE_INFINITY : offer.arrivedAt - Math.round(offer.bid * agingUsPerBid)
    const laneId = `${offer.key.id}/${offer.band}`
    const ticket = { offer, laneId, dueAt, sequence: this.#sequence++, isReady: offer.isReady, estimate }
    const isNew = !this.#queue.some((one) => one.offer.tenant.id === offer.tenant.id)
    if (isNew) this.#since.set(offer.tenant.id, this.#sequence)
    if (!this.#since.has(laneId)) this.#since.set(laneId, this.#sequence)
    this.#queue.push(ticket)
    const effects = this.#give(now)
    if (!this.#queue.includes(ticket)) return { kind: 'queued', effects }
    const code = isAgain ? this.#makeRoom(ticket, effects) : this.#whoYields(ticket, effects)
    if (code !== undefined) this.#drop(ticket)
    effects.push(...this.#give(now))
    return code === undefined ? { kind: 'queued', effects } : { kind: 'refused', code, because: '', effects }
  }

  ready(now: number, ticketId: string, estimate?: Estimate): Effect[] {
    const ticket = this.#find(ticketId)
    if (ticket === undefined || ticket.isReady) return []
    ticket.isReady = true
    ticket.estimate = estimate ?? ticket.estimate
    return this.#give(now)
  }

  withdraw(now: number, ticketId: string): Effect[] {
    const ticket = this.#find(ticketId)
    if (ticket === undefined) return []
    this.#drop(ticket)
    return this.#give(now)
  }

  release(now: number, leaseId: number): Effect[] {
    for (const machine of [...this.#machines, ...this.#gone]) machine.held.delete(leaseId)
    return this.#give(now)
  }

  onWakeup(now: number): Effect[] {
    const effects: Effect[] = []
    const due = this.#queue.filter((ticket) => ticket.offer.expiresAt <= now)
    due.sort((a, b) => a.offer.expiresAt - b.offer.expiresAt || a.sequence - b.sequence)
    for (const ticket of due) this.#expire(ticket, effects)
    return due.length > 0 ? [...effects, ...this.#give(now)] : effects
  }

  waitingIds(): string[] {
    return this.#queue.map((ticket) => ticket.offer.ticketId).sort()
  }

  #find(ticketId: string): Ticket | undefined {
    return this.#queue.find((ticket) => ticket.offer.ticketId === ticketId)
  }

  #drop(ticket: Ticket): void {
    this.#queue = this.#queue.filter((one) => one !== ticket)
  }

  #expire(ticket: Ticket, effects: Effect[]): void {
    this.#drop(ticket)
    effects.push({ kind: 'expired', ticketId: ticket.offer.ticketId, because: '' })
  }

  #inLaneOrder(laneId: string): Ticket[] {
    return this.#queue
      .filter((ticket) => ticket.laneId === laneId)
      .sort((a, b) => compare(a.dueAt, b.dueAt) || a.offer.arrivedAt - b.offer.arrivedAt || a.sequence - b.sequence)
  }

  /** The first ready ticket of every lane. */
  #heads(): Ticket[] {
    const laneIds = [...new Set(this.#queue.map((ticket) => ticket.laneId))]
    return laneIds.flatMap((laneId) => this.#inLaneOrder(laneId).find((ticket) => ticket.isReady) ?? [])
  }

  #canEverFit(estimate: Estimate): boolean {
    return this.#machines.length === 0 || this.#machines.some((machine) => fitsAlone(machine, estimate))
  }

  #mayUse(machine: Machine, ticket: Ticket): boolean {
    const readyCount = this.#machines.filter((one) => one.isReady).length
    return ticket.offer.avoidReplicaId !== machine.id || readyCount <= 1
  }

  #place(ticket: Ticket): Machine | undefined {
    const usable = this.#machines.filter((machine) => {
      const keptFor = this.#reservation?.machine === machine ? this.#reservation.ticket : undefined
      if (keptFor !== undefined) return keptFor === ticket && fits(machine, ticket.estimate)
      return fits(machine, ticket.estimate) && this.#mayUse(machine, ticket)
    })
    const loadOf = (machine: Machine): number =>
      sum([...machine.held.values()].map((held) => Math.ceil(held.estimate.engineUs)))
    usable.sort((a, b) => loadOf(a) - loadOf(b) || a.held.size - b.held.size || a.ordinal - b.ordinal)
    return usable[0]
  }

  /** Starts again from the top after everything that happens, until nothing happens any more. */
  #give(now: number): Effect[] {
    const effects: Effect[] = []
    while (this.#giveOne(now, false, effects)) {}
    while (this.#giveOne(now, true, effects)) {}
    this.#reserve()
    return effects
  }

  #giveOne(now: number, isOffline: boolean, effects: Effect[]): boolean {
    const heads = this.#heads().filter((ticket) => (ticket.offer.band === 'offline') === isOffline)
    this.#forgetOwed()
    heads.sort((a, b) => a.offer.arrivedAt - b.offer.arrivedAt || a.sequence - b.sequence)
    // Who has a machine kept for it, and fits there, goes first.
    const kept = this.#reservation
    if (kept !== undefined && heads.includes(kept.ticket) && fits(kept.machine, kept.ticket.estimate)) {
      heads.unshift(...heads.splice(heads.indexOf(kept.ticket), 1))
    } else if (this.#evictOwed(isOffline, effects)) return true
    for (const ticket of heads) {
      const isOwed = this.#owed.some((one) => one.ticket === ticket)
      // Heads are only looked at while there is room for somebody.
      if (!isOwed && !this.#machines.some((machine) => isOpen(machine) && this.#reservation?.machine !== machine)) break
      if (ticket.offer.expiresAt <= now) {
        this.#expire(ticket, effects)
        return true
      }
      const machine = this.#place(ticket)
      if (machine !== undefined) {
        this.#grant(ticket, machine, effects)
        return true
      }
      if (!this.#canEverFit(ticket.estimate)) {
        this.#evict(ticket, 'fits-no-replica', effects)
        return true
      }
      if (!isOwed) this.#owed.push({ ticket, since: this.#grantedCount })
    }
    return false
  }

  /** Who was passed over and now fits no replica, even alone, is told so before the next turn, room or no room. */
  #evictOwed(isOffline: boolean, effects: Effect[]): boolean {
    const isLost = ({ ticket }: Owed): boolean =>
      (ticket.offer.band === 'offline') === isOffline && !this.#canEverFit(ticket.estimate)
    const lost = this.#owed.find(isLost)
    if (lost !== undefined) this.#evict(lost.ticket, 'fits-no-replica', effects)
    return lost !== undefined
  }

  #grant(ticket: Ticket, machine: Machine, effects: Effect[]): void {
    this.#drop(ticket)
    this.#grantedCount++
    const id = ++this.#leaseId
    machine.held.set(id, ticket)
    const replica = { id: machine.id, poolId: 'pool', model: '', releaseId: 'm@1', region: '' }
    const { ticketId } = ticket.offer
    effects.push({ kind: 'granted', ticketId, lease: { id, ticketId, replica }, because: '' })
  }

  /** A turn is owed to a head; once that head is another one, or gone, it is not. */
  #forgetOwed(): void {
    const heads = this.#heads()
    this.#owed = this.#owed.filter((one) => heads.includes(one.ticket))
    if (this.#reservation !== undefined && !heads.includes(this.#reservation.ticket)) this.#reservation = undefined
  }

  #reserve(): void {
    const first = this.#owed.find((one) => one.ticket.offer.band !== 'offline')
    if (first === undefined || this.#reservation !== undefined) return
    if (this.#grantedCount - first.since < this.#options.skipsMax) return
    const { ticket } = first
    const usable = this.#machines.filter(
      (one) => one.isReady && one.allowance >= 1 && fitsAlone(one, ticket.estimate) && this.#mayUse(one, ticket),
    )
    usable.sort((a, b) => freeOf(b) - freeOf(a) || a.ordinal - b.ordinal)
    if (usable[0] !== undefined) this.#reservation = { ticket, machine: usable[0] }
  }

  #isWithin(laneId: string): boolean {
    const lane = this.#inLaneOrder(laneId)
    const { depthMax, engineUsMax } = this.#options.lanes
    return lane.length <= depthMax && (lane.length <= 1 || sum(lane.map((one) => one.estimate.engineUs)) <= engineUsMax)
  }

  #whoYields(arrival: Ticket, effects: Effect[]): NoPlaceCode | undefined {
    if (this.#inLaneOrder(arrival.laneId).length > this.#options.lanes.depthMax) return 'lane-full'
    if (!this.#isWithin(arrival.laneId)) return 'lane-work-full'
    if (this.#queue.length <= this.#options.queueRequestsMax) return undefined
    const victim = this.#longestTail(arrival)
    const isOwn = victim.offer.tenant.id === arrival.offer.tenant.id
    if (isOwn && rankOf(victim) <= rankOf(arrival)) return 'queue-full'
    this.#evict(victim, 'queue-full', effects)
    return undefined
  }

  #makeRoom(again: Ticket, effects: Effect[]): undefined {
    while (!this.#isWithin(again.laneId)) {
      this.#evict(this.#inLaneOrder(again.laneId).at(-1) as Ticket, 'lane-full', effects)
    }
    if (this.#queue.length > this.#options.queueRequestsMax) this.#evict(this.#longestTail(), 'queue-full', effects)
  }

  #evict(ticket: Ticket, code: 'queue-full' | 'lane-full' | 'fits-no-replica', effects: Effect[]): void {
    this.#drop(ticket)
    effects.push({ kind: 'evicted', ticketId: ticket.offer.ticketId, code, because: '' })
  }

  /** The tenant with most per weight; its lowest band; its longest lane there; the last in it. */
  #longestTail(arrival?: Ticket): Ticket {
    const since = (name: string): number => this.#since.get(name) as number
    const tenants = groupBy(this.#queue, (ticket) => ticket.offer.tenant.id)
    const isArriving = (name: string): number => Number(name === arrival?.offer.tenant.id)
    tenants.sort(
      (a, b) =>
        b.items.length / weightOf(b.items) - a.items.length / weightOf(a.items) ||
        isArriving(b.name) - isArriving(a.name) ||
        since(a.name) - since(b.name),
    )
    const heaviest = tenants[0]?.items as Ticket[]
    const lowest = Math.max(...heaviest.map(rankOf))
    const lanes = groupBy(
      heaviest.filter((ticket) => rankOf(ticket) === lowest),
      (ticket) => ticket.laneId,
    )
    const perWeight = (items: readonly Ticket[]): number => items.length / keyWeightOf(items)
    lanes.sort((a, b) => perWeight(b.items) - perWeight(a.items) || since(a.name) - since(b.name))
    return this.#inLaneOrder(lanes[0]?.name as string).at(-1) as Ticket
  }
}

const weightOf = (tickets: readonly Ticket[]): number => tickets[0]?.offer.tenant.weight ?? 1
const keyWeightOf = (tickets: readonly Ticket[]): number => tickets[0]?.offer.key.weight ?? 1
const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0)

function refused(code: NoPlaceCode): Offered {
  return { kind: 'refused', code, because: '', effects: [] }
}

function isOpen(machine: Machine): boolean {
  return (
    machine.isReady &&
    machine.held.size < machine.allowance &&
    (machine.held.size === 0 || machine.held.size < machine.slots)
  )
}

function kvOf(estimate: Estimate): number {
  return estimate.promptTokens + estimate.outputTokensHigh
}

const usedOf = (machine: Machine): number => sum([...machine.held.values()].map((held) => kvOf(held.estimate)))
const freeOf = (machine: Machine): number => machine.kvTokensMax - usedOf(machine)

function fitsAlone(machine: Machine, estimate: Estimate): boolean {
  return estimate.promptTokens + estimate.outputTokens <= machine.kvTokensMax
}

function fits(machine: Machine, estimate: Estimate): boolean {
  if (!isOpen(machine)) return false
  if (machine.held.size === 0) return fitsAlone(machine, estimate)
  return kvOf(estimate) <= freeOf(machine)
}

function groupBy(
  tickets: readonly Ticket[],
  nameOf: (ticket: Ticket) => string,
): Array<{ name: string; items: Ticket[] }> {
  const groups = new Map<string, Ticket[]>()
  for (const ticket of tickets) groups.set(nameOf(ticket), [...(groups.get(nameOf(ticket)) ?? []), ticket])
  return [...groups].map(([name, items]) => ({ name, items }))
}
