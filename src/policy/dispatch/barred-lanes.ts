import { assert } from '../../base/assert.ts'
import type { PoolLane } from './candidate.ts'

/** Lanes whose head is barred, and until when. At most every lane of the pool. */
export class BarredLanes {
  readonly #untils = new Map<PoolLane, number>()
  /** The earliest end of a bar; NaN when it has to be looked for again. */
  #nextAt = Number.POSITIVE_INFINITY

  get count(): number {
    return this.#untils.size
  }

  untilOf(lane: PoolLane): number | undefined {
    return this.#untils.get(lane)
  }

  add(lane: PoolLane, until: number): void {
    this.#untils.set(lane, until)
    this.#nextAt = Math.min(this.#nextAt, until)
  }

  remove(lane: PoolLane): void {
    if (this.#untils.get(lane) === this.#nextAt) this.#nextAt = Number.NaN
    this.#untils.delete(lane)
  }

  /** When the next bar ends by itself; undefined when none does. */
  nextAt(): number | undefined {
    if (Number.isNaN(this.#nextAt)) this.#nextAt = this.#earliest()
    return this.#nextAt === Number.POSITIVE_INFINITY ? undefined : this.#nextAt
  }

  #earliest(): number {
    let at = Number.POSITIVE_INFINITY
    for (const until of this.#untils.values()) at = Math.min(at, until)
    return at
  }

  due(now: number): PoolLane[] {
    return Array.from(this.#untils).flatMap(([lane, until]) => (until <= now ? [lane] : []))
  }

  all(): PoolLane[] {
    return Array.from(this.#untils.keys())
  }

  assertEnds(lane: PoolLane): void {
    const until = this.untilOf(lane)
    assert(until !== undefined && lane.barredHead === lane.head(), 'L6: a bar is on a head')
    assert(!lane.isCounted, 'L17: a barred lane stands before nobody')
    const isReading = lane.backlog.readingTime.readingCount > 0
    assert(until < Number.POSITIVE_INFINITY || isReading, 'L6: a bar ends by itself or with a prompt that is read')
  }
}
