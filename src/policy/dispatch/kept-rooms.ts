import { assert } from '../../base/assert.ts'
import type { PoolLane } from './candidate.ts'
import type { ReplicaRoom } from './replica-room.ts'

/** A replica that is kept free, and the lane that it is kept for. */
export interface Kept {
  readonly lane: PoolLane
  readonly room: ReplicaRoom
}

/**
 * Which replicas are kept free, and for which lane? A kept replica takes nothing but the heads of one lane, so that it
 * empties until they fit. Only bookkeeping: `give-turns.ts` decides when a replica is kept. At most every replica of the
 * pool is kept, each for one lane; law L6 does not count kept replicas as idle.
 */
export class KeptRooms {
  readonly all: Kept[] = []
  readonly #onChange: (room: ReplicaRoom) => void

  /** `onChange` is called for every replica that is kept or no longer kept. */
  constructor(onChange: (room: ReplicaRoom) => void) {
    this.#onChange = onChange
  }

  keep(lane: PoolLane, room: ReplicaRoom): void {
    room.engine.keptBy = room
    lane.keptCount++
    this.all.push({ lane, room })
    this.#onChange(room)
  }

  /** The replica is open to every lane again; nothing happens if it was not kept. */
  end(room: ReplicaRoom): void {
    if (room.isKept) this.#endAt(this.all.findIndex((one) => one.room === room))
  }

  /** Keeps no more than this many for the lane; the last ones kept go first. True when there were more. */
  trim(lane: PoolLane, countMax: number): boolean {
    if (lane.keptCount <= countMax) return false
    for (let i = this.all.length - 1; i >= 0 && lane.keptCount > countMax; i--) {
      if (this.all[i]?.lane === lane) this.#endAt(i)
    }
    return true
  }

  #endAt(index: number): void {
    const { lane, room } = this.all[index] as Kept
    this.all.splice(index, 1)
    room.engine.keptBy = undefined
    lane.keptCount--
    this.#onChange(room)
  }

  assertInvariants(): void {
    for (const { lane, room } of this.all) {
      assert(room.isKept && lane.readyCount > 0, 'a replica is kept for a lane that has a head')
      assert(this.all.filter((one) => one.lane === lane).length === lane.keptCount, 'a lane counts what is kept')
      assert(this.all.filter((one) => one.room === room).length === 1, 'a replica is kept for one lane')
    }
  }
}
