import { assert } from '../../base/assert.ts'
import { DeficitRoundRobin } from './deficit-round-robin.ts'
import { MedianCost } from './median-cost.ts'
import { Share } from './share.ts'

/**
 * Whose piece of work goes next, where tenants share a part that has no lanes of its own: the store, the embedder?
 *
 * Every tenant has a lane, and lanes take turns by deficit round robin (`deficit-round-robin.ts`): a turn is charged at
 * the typical cost, and corrected when the work has ended and its true cost is known. A lane is bounded in what waits
 * and in what runs, so that one tenant can neither fill the queue nor hold every place of the part.
 *
 *     urgent    acme: [s s s s s]   globex: [s]        a request waits for these
 *     patient   acme: [l l]         initech: [l]       the rest
 *
 * Urgent work goes first, with one exception: after `URGENT_RUN_MAX` urgent turns in a row a patient one is given, if
 * one waits. Strict priority would let one tenant's stream of searches starve every other tenant's list calls.
 *
 * Deliberately not: weights (a tenant's weight is its part of the engines; here all lanes weigh the same), deadlines
 * (the caller withdraws what is late), a clock (the caller measures costs).
 *
 * Laws: L3, a lane holds at most `depthMax` pieces of work. A piece that is first in its lane waits for at most
 * `URGENT_RUN_MAX` + 1 turns for every other lane of its band with work, plus rounds that its lane still owes.
 *
 * Worked example, one place, all work equally dear: acme has 60 searches waiting, globex offers one list call. The list
 * call has its turn after at most four searches; a search of globex has its turn after one.
 */
export interface FairQueueOptions {
  /** Pieces of work that may run at once, over all lanes. */
  readonly placesMax: number
  /** Pieces of one lane that may run at once. */
  readonly laneRunningMax: number
  /** Pieces of one lane that may wait, both bands together. */
  readonly depthMax: number
}

/** Urgent turns in a row while patient work waits. Four: a search is four or five statements, so each search costs one. */
const URGENT_RUN_MAX = 4

/** Lanes remembered for what they owe; the least recently used idle ones are forgotten. More than there are tenants. */
const LANES_MAX = 4_096

type Urgency = 'urgent' | 'patient'

/** A piece of work from offer to end. */
export interface Queued<T> {
  readonly value: T
  readonly lane: string
  readonly isUrgent: boolean
}

/** One lane in one band. */
class Line<T> extends Share {
  readonly waiting: Place<T>[] = []
}

class Place<T> implements Queued<T> {
  readonly value: T
  readonly isUrgent: boolean
  readonly ofLane: QueueLane<T>
  /** What the turn was charged with; undefined before the turn. */
  charged: number | undefined

  constructor(value: T, isUrgent: boolean, ofLane: QueueLane<T>) {
    this.value = value
    this.isUrgent = isUrgent
    this.ofLane = ofLane
  }

  get lane(): string {
    return this.ofLane.name
  }
}

class QueueLane<T> {
  readonly name: string
  readonly lines: Readonly<Record<Urgency, Line<T>>>
  runningCount = 0

  constructor(name: string) {
    this.name = name
    this.lines = { urgent: new Line(name, 1), patient: new Line(name, 1) }
  }

  get waitingCount(): number {
    return this.lines.urgent.waiting.length + this.lines.patient.waiting.length
  }
}

class UrgencyBand<T> {
  readonly typical = new MedianCost()
  readonly order = new DeficitRoundRobin<Line<T>>(this.typical)
}

export class FairQueue<T> {
  readonly #options: FairQueueOptions
  readonly #lanes = new Map<string, QueueLane<T>>()
  readonly #bands: Readonly<Record<Urgency, UrgencyBand<T>>> = { urgent: new UrgencyBand(), patient: new UrgencyBand() }
  #runningCount = 0
  #urgentRun = 0

  constructor(options: FairQueueOptions) {
    this.#options = options
  }

  get runningCount(): number {
    return this.#runningCount
  }

  get laneCount(): number {
    return this.#lanes.size
  }

  waitingIn(lane: string): number {
    return this.#lanes.get(lane)?.waitingCount ?? 0
  }

  /** The typical cost of a turn in each band: what a truthful time to come back is made of. */
  typicalCost(isUrgent: boolean): number {
    return this.#bandOf(isUrgent).typical.value
  }

  /** Undefined: the lane is full. */
  offer(lane: string, value: T, isUrgent: boolean): Queued<T> | undefined {
    const found = this.#laneOf(lane)
    if (found.waitingCount >= this.#options.depthMax) return undefined
    const place = new Place(value, isUrgent, found)
    const line = found.lines[urgencyOf(isUrgent)]
    line.waiting.push(place)
    if (line.waiting.length === 1) {
      const { order } = this.#bandOf(isUrgent)
      order.enter(line)
      if (this.#isHeld(found)) order.pass(line)
    }
    return place
  }

  /** The next piece of work, which runs from here until `end`; undefined when nothing may run now. */
  take(): Queued<T> | undefined {
    if (this.#runningCount >= this.#options.placesMax) return undefined
    const isUrgent = this.#nextIsUrgent()
    if (isUrgent === undefined) return undefined
    const { order, typical } = this.#bandOf(isUrgent)
    const line = order.first()
    const place = line?.waiting.shift()
    assert(line !== undefined && place !== undefined, 'a line in the order has work')
    this.#urgentRun = isUrgent ? this.#urgentRun + 1 : 0
    place.charged = typical.value
    order.takeTurn(line, place.charged)
    if (line.waiting.length === 0) order.leave(line)
    const lane = place.ofLane
    lane.runningCount++
    this.#runningCount++
    if (this.#isHeld(lane)) this.#eachWaiting(lane, (one, band) => band.order.pass(one))
    return place
  }

  /** The work has ended, and cost this much. */
  end(queued: Queued<T>, cost: number): void {
    const place = queued as Place<T>
    assert(place.charged !== undefined, 'only work that had a turn can end')
    const lane = place.ofLane
    const { order, typical } = this.#bandOf(place.isUrgent)
    const wasHeld = this.#isHeld(lane)
    lane.runningCount--
    this.#runningCount--
    if (wasHeld) this.#eachWaiting(lane, (one, band) => band.order.recall(one))
    // First the unit, then the charge in it: the debt of the very first dear turn would otherwise last ten rounds.
    typical.observe(cost)
    order.charge(lane.lines[urgencyOf(place.isUrgent)], cost - place.charged)
  }

  /** Takes waiting work out; false when it had its turn already. */
  withdraw(queued: Queued<T>): boolean {
    const place = queued as Place<T>
    const line = place.ofLane.lines[urgencyOf(place.isUrgent)]
    const at = line.waiting.indexOf(place)
    if (at < 0) return false
    line.waiting.splice(at, 1)
    if (line.waiting.length === 0) this.#bandOf(place.isUrgent).order.leave(line)
    return true
  }

  /** Takes out everything that waits. */
  withdrawAll(): readonly Queued<T>[] {
    const all = [...this.#lanes.values()].flatMap(({ lines }) => [...lines.urgent.waiting, ...lines.patient.waiting])
    for (const place of all) this.withdraw(place)
    return all
  }

  assertInvariants(): void {
    const { placesMax, laneRunningMax, depthMax } = this.#options
    let runningCount = 0
    for (const lane of this.#lanes.values()) {
      runningCount += lane.runningCount
      assert(lane.waitingCount <= depthMax, 'L3: a lane is within its bounds')
      assert(lane.runningCount <= laneRunningMax, 'a lane holds no more places than it may')
      for (const line of Object.values(lane.lines)) {
        assert(line.isActive === line.waiting.length > 0, 'a lane is in the order exactly while it has work')
        assert(line.isAside === (line.isActive && this.#isHeld(lane)), 'a lane with all its places taken stands aside')
      }
    }
    assert(runningCount === this.#runningCount && runningCount <= placesMax, 'places are counted')
    for (const { order } of Object.values(this.#bands)) order.assertInvariants()
  }

  #nextIsUrgent(): boolean | undefined {
    const hasUrgent = this.#bands.urgent.order.askedCount > 0
    const hasPatient = this.#bands.patient.order.askedCount > 0
    if (!hasUrgent && !hasPatient) return undefined
    if (!hasPatient) this.#urgentRun = 0
    return hasUrgent && !(hasPatient && this.#urgentRun >= URGENT_RUN_MAX)
  }

  #isHeld(lane: QueueLane<T>): boolean {
    return lane.runningCount >= this.#options.laneRunningMax
  }

  #eachWaiting(lane: QueueLane<T>, act: (line: Line<T>, band: UrgencyBand<T>) => void): void {
    for (const urgency of ['urgent', 'patient'] as const) {
      const line = lane.lines[urgency]
      if (line.isActive) act(line, this.#bands[urgency])
    }
  }

  #bandOf(isUrgent: boolean): UrgencyBand<T> {
    return this.#bands[urgencyOf(isUrgent)]
  }

  #laneOf(name: string): QueueLane<T> {
    const known = this.#lanes.get(name)
    if (known !== undefined) {
      this.#lanes.delete(name)
      this.#lanes.set(name, known)
      return known
    }
    if (this.#lanes.size >= LANES_MAX) this.#forgetIdle()
    const lane = new QueueLane<T>(name)
    this.#lanes.set(name, lane)
    return lane
  }

  #forgetIdle(): void {
    for (const [name, lane] of this.#lanes) {
      if (this.#lanes.size < LANES_MAX) return
      if (lane.waitingCount === 0 && lane.runningCount === 0) this.#lanes.delete(name)
    }
  }
}

const urgencyOf = (isUrgent: boolean): Urgency => (isUrgent ? 'urgent' : 'patient')
