import { Timers } from '../../src/base/timers.ts'

/**
 * A pool small enough to see through, for testing predictions against: some slots, each doing one ticket at a time at a
 * fixed rate, and one lane per tenant, served by plain deficit round robin (Shreedhar and Varghese, 1995). Nothing of
 * the real dispatcher is in it, on purpose: it is the world that a prediction is about, not a copy of ours.
 */
export interface PoolTicket {
  readonly tenantId: string
  readonly weight: number
  /** What we think it costs, and what it does cost. */
  readonly cost: number
  readonly trueCost: number
  /** After this a turn is worth nothing: it expires. */
  readonly startBy: number
  onStart(now: number): void
  onEnd(now: number): void
  onExpire(now: number): void
}

interface Lane {
  readonly weight: number
  readonly tickets: PoolTicket[]
  deficit: number
}

export class DrainingPool {
  readonly #slotRate: number
  readonly #slotCount: number
  readonly #quantum: number
  readonly #lanes = new Map<string, Lane>()
  /** Lanes with tickets, in the order of their turns. */
  readonly #active: Lane[] = []
  /** Ends of running tickets. */
  readonly #ends = new Timers()
  #waitingCount = 0

  constructor(shape: { readonly slotCount: number; readonly costPerUs: number; readonly quantum: number }) {
    this.#slotCount = shape.slotCount
    this.#slotRate = shape.costPerUs / shape.slotCount
    this.#quantum = shape.quantum
  }

  get freeSlots(): number {
    return this.#slotCount - this.#ends.count
  }

  get waitingCount(): number {
    return this.#waitingCount
  }

  offer(now: number, ticket: PoolTicket): void {
    let lane = this.#lanes.get(ticket.tenantId)
    if (lane === undefined) {
      lane = { weight: ticket.weight, tickets: [], deficit: 0 }
      this.#lanes.set(ticket.tenantId, lane)
    }
    if (lane.tickets.length === 0) this.#active.push(lane)
    lane.tickets.push(ticket)
    this.#waitingCount++
    this.#fill(now)
  }

  /** Ends what ends until then, in order. */
  runUntil(until: number): void {
    for (let at = this.#ends.nextAt(); at !== undefined && at <= until; at = this.#ends.nextAt()) {
      this.#ends.takeDue(at)?.()
      this.#fill(at)
    }
  }

  #fill(now: number): void {
    while (this.freeSlots > 0) {
      const ticket = this.#takeTurn(now)
      if (ticket === undefined) return
      ticket.onStart(now)
      const endsAt = now + Math.max(1, Math.round(ticket.trueCost / this.#slotRate))
      this.#ends.add(endsAt, () => ticket.onEnd(endsAt))
    }
  }

  #takeTurn(now: number): PoolTicket | undefined {
    for (;;) {
      const lane = this.#active[0]
      if (lane === undefined) return undefined
      const head = lane.tickets[0]
      if (head === undefined) {
        lane.deficit = 0
        this.#active.shift()
      } else if (head.startBy < now) {
        this.#drop(lane)
        head.onExpire(now)
      } else if (lane.deficit >= head.cost) {
        lane.deficit -= head.cost
        this.#drop(lane)
        return head
      } else {
        // Its turn is over: it gets its quantum and goes behind the others.
        this.#active.shift()
        lane.deficit += this.#quantum * lane.weight
        this.#active.push(lane)
      }
    }
  }

  #drop(lane: Lane): void {
    lane.tickets.shift()
    this.#waitingCount--
  }
}
