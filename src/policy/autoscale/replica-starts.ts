import type { Instant } from '../../base/clock.ts'
import { ColdStart } from './cold-start.ts'

/**
 * Which replicas are on their way, and how long do they take?
 *
 * What we ordered is matched with what becomes ready, the oldest order first: an order is for a number, and names nobody.
 * Where somebody else orders, a start is counted from when the replica was first listed. A replica that was there when we
 * began, or that was ready before and is ready again, started nothing.
 *
 * An order that nothing came of within `max(60 s, three cold starts)` is given up, so that it is not counted as pending for
 * ever. Bounds: ORDERS_MAX orders; one record for each replica of the pool.
 * Example: two are ordered at 0 s; one is ready at 40 s, the other at 44 s: the cold start is learned as 40 s.
 */
const ORDERS_MAX = 1_000
const GIVEN_UP_US_MIN = 60_000_000
const GIVEN_UP_COLD_STARTS = 3

export interface ReplicaLook {
  readonly id: string
  readonly isReady: boolean
}

interface Known {
  readonly addedAt: Instant
  /** It was ready once, or was there when we began. */
  hasStarted: boolean
  isReady: boolean
}

export class ReplicaStarts {
  readonly #coldStart: ColdStart
  #orders: Instant[] = []
  readonly #known = new Map<string, Known>()
  #isFounded = false

  constructor(priorUs: number) {
    this.#coldStart = new ColdStart(priorUs)
  }

  get coldStartUs(): number {
    return this.#coldStart.us
  }

  get learnedCount(): number {
    return this.#coldStart.sampleCount
  }

  ordered(now: Instant, count: number): void {
    for (let i = 0; i < count && this.#orders.length < ORDERS_MAX; i++) this.#orders.push(now)
  }

  /** The newest orders come to nothing: the call failed, or they are not needed any more. */
  calledBack(count: number): void {
    this.#orders.splice(Math.max(0, this.#orders.length - count))
  }

  /** Let go by us: when it is back, that is a start. */
  left(replicaId: string): void {
    const known = this.#known.get(replicaId)
    if (known !== undefined) known.hasStarted = false
  }

  look(now: Instant, replicas: readonly ReplicaLook[]): void {
    const present = new Set(replicas.map(({ id }) => id))
    for (const id of this.#known.keys()) if (!present.has(id)) this.#known.delete(id)
    for (const { id, isReady } of replicas) this.#lookAt(now, id, isReady)
    this.#isFounded = true
    const oldest = now - this.#patienceUs
    if ((this.#orders[0] ?? now) < oldest) this.#orders = this.#orders.filter((at) => at >= oldest)
  }

  /** Ordered by us and not ready yet, or listed by somebody and never ready so far. */
  pendingCount(now: Instant): number {
    let starting = 0
    for (const { addedAt, hasStarted } of this.#known.values())
      if (!hasStarted && addedAt > now - this.#patienceUs) starting++
    return Math.max(this.#orders.length, starting)
  }

  /** Until the next one that is on its way should be ready; a whole cold start when nobody is. */
  nextReadyUs(now: Instant): number {
    const [oldest] = this.#orders
    // Later than usual already: any moment now, though not at once.
    const leftUs = oldest === undefined ? this.coldStartUs : oldest + this.coldStartUs - now
    return Math.max(leftUs, this.coldStartUs * LATE_RATIO)
  }

  get #patienceUs(): number {
    return Math.max(GIVEN_UP_US_MIN, GIVEN_UP_COLD_STARTS * this.coldStartUs)
  }

  #lookAt(now: Instant, id: string, isReady: boolean): void {
    const known = this.#known.get(id)
    if (known === undefined) {
      // Whoever is there at the first look began before we did.
      this.#known.set(id, { addedAt: now, hasStarted: !this.#isFounded || isReady, isReady })
      if (this.#isFounded && isReady) this.#started(now, undefined)
      return
    }
    if (isReady && !known.isReady && (!known.hasStarted || this.#orders.length > 0))
      this.#started(now, known.hasStarted ? undefined : known.addedAt)
    known.hasStarted ||= isReady
    known.isReady = isReady
  }

  #started(now: Instant, addedAt: Instant | undefined): void {
    const since = this.#orders.shift() ?? addedAt
    if (since !== undefined) this.#coldStart.observe(now - since)
  }
}

/** Of a cold start that takes longer than usual, as much is expected to be left. */
const LATE_RATIO = 0.1
