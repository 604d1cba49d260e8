import type { PrefixIndex } from './prefix-index.ts'
import type { Learned, PlacementAsk, RoomView } from './room-view.ts'

/**
 * What has routing learned of each replica? Its place in the prefix index, when the prompts placed there will have
 * been read, how much slower than expected it is, and where each session was last.
 *
 * Slowness is Σ measured ÷ Σ predicted time to the first token, both fading, so a long prompt tells more than a short
 * one and a fast GPU among slow ones is found within a few answers. A prediction includes the horizon, so a replica
 * that somebody else keeps busy looks slow, which is what a placer needs to know.
 *
 * Deliberately bounded: predictions for tickets whose end is never told, and sessions, are forgotten oldest first.
 *
 * Example: predicted 100, 100 and 200 ms, measured 150, 140 and 310: slowness 600 ÷ 400 = 1.5.
 */
export const REPLICA_BOOK_DEFAULTS = {
  /** What a first token takes besides the prompts: half a step, the network. Part of every prediction. */
  overheadUs: 20_000,
  /** How long a failed replica stands back while others have room: as long as a retry needs. */
  suspectUs: 1_000_000,
  /** The last fifty answers decide. Fewer, and noise makes one of equals look fast, which then collects prompts. */
  keepRatio: 0.98,
  slownessMin: 1 / 8,
  slownessMax: 16,
  /** Tickets in flight that are remembered: above any platform's concurrency. */
  placementsMax: 65_536,
  /** Sessions that are remembered: two megabytes. */
  sessionsMax: 32_768,
}

export interface AttemptPace {
  readonly ticketId: string
  readonly replicaId: string
  /** From grant to first token; undefined when none came. */
  readonly firstTokenUs: number | undefined
  /** The replica refused it or broke off. */
  readonly isFailed: boolean
}

/** What another gateway gave to a replica: blocks that are new there, and names of prompts' beginnings. */
export interface PlacedElsewhere {
  readonly replicaId: string
  readonly blocks: number
  readonly hashes: readonly number[]
}

export const NO_SLOT = -1

interface Placed {
  readonly ask: PlacementAsk
  readonly learned: Learned
  /** Predicted time to read the prompt at a slowness of 1. */
  readonly ownUs: number
}

class Known implements Learned {
  readonly slot: number
  readonly place: number
  readonly distanceUs: number
  prefillDoneAt = 0
  slowness = 1
  suspectUntil = 0
  measuredUs: number
  predictedUs: number

  constructor(slot: number, place: number, distanceUs: number, priorUs: number) {
    this.slot = slot
    this.place = place
    this.distanceUs = distanceUs
    this.measuredUs = priorUs
    this.predictedUs = priorUs
  }
}

export class ReplicaBook {
  readonly #index: PrefixIndex
  readonly #blockTokens: number
  readonly #distanceUs: (region: string) => number
  readonly #byId = new Map<string, Known>()
  /** The same by place, for the glance at every room of a large pool. */
  readonly #byPlace: (Known | undefined)[] = []
  readonly #slots: number[] = []
  readonly #predictedUs = new Map<string, number>()
  readonly #homes = new Map<number, number>()

  constructor(index: PrefixIndex, blockTokens: number, distanceUs: (region: string) => number) {
    this.#index = index
    this.#blockTokens = blockTokens
    this.#distanceUs = distanceUs
  }

  of(room: RoomView): Learned {
    const known = this.#byPlace[room.place]
    return known ?? this.#meet(room)
  }

  /** Its slot, or NO_SLOT while it is unknown. Asked for every room of a large pool: an array of numbers, and no more. */
  slotOf(place: number): number {
    return this.#slots[place] ?? NO_SLOT
  }

  slotNamed(replicaId: string): number {
    return this.#byId.get(replicaId)?.slot ?? NO_SLOT
  }

  /** The index slot of the replica where the session was last. */
  homeOf(sessionHash: number | undefined): number | undefined {
    return sessionHash === undefined ? undefined : this.#homes.get(sessionHash)
  }

  place(now: number, { ask, learned, ownUs }: Placed): void {
    const { estimate, prefixHashes, ticketId, sessionHash } = ask
    const { overheadUs, placementsMax, sessionsMax } = REPLICA_BOOK_DEFAULTS
    const readUs = Math.round(ownUs * learned.slowness)
    const startsAt = Math.max(now, learned.prefillDoneAt)
    // Learned against a slowness of 1, or the correction would be corrected.
    const queuedUs = (startsAt - now) / learned.slowness
    learned.prefillDoneAt = startsAt + readUs
    remember(this.#predictedUs, ticketId, overheadUs + queuedUs + ownUs, placementsMax)
    if (sessionHash !== undefined) remember(this.#homes, sessionHash, learned.slot, sessionsMax)
    if (prefixHashes === undefined || prefixHashes.length === 0) return
    const blocks = Math.ceil((estimate.promptTokens + estimate.outputTokens) / this.#blockTokens)
    this.#index.record(now, learned.slot, prefixHashes, Math.max(0, blocks - prefixHashes.length))
  }

  observe(now: number, attempt: AttemptPace): void {
    const predictedUs = this.#predictedUs.get(attempt.ticketId)
    this.#predictedUs.delete(attempt.ticketId)
    const known = this.#byId.get(attempt.replicaId)
    if (known === undefined) return
    const { keepRatio, slownessMax, slownessMin, suspectUs } = REPLICA_BOOK_DEFAULTS
    if (attempt.isFailed) known.suspectUntil = now + suspectUs
    if (attempt.firstTokenUs === undefined || predictedUs === undefined) return
    known.measuredUs = known.measuredUs * keepRatio + Math.min(attempt.firstTokenUs, predictedUs * slownessMax)
    known.predictedUs = known.predictedUs * keepRatio + predictedUs
    known.slowness = Math.min(slownessMax, Math.max(slownessMin, known.measuredUs / known.predictedUs))
  }

  /** What other gateways gave to a replica. One that was never met here is passed over: it costs a hit. */
  hear(now: number, { replicaId, blocks, hashes }: PlacedElsewhere): void {
    const known = this.#byId.get(replicaId)
    if (known !== undefined) this.#index.hear(now, known.slot, hashes, blocks)
  }

  restarted(replicaId: string): void {
    const known = this.#byId.get(replicaId)
    if (known !== undefined) this.#index.forget(known.slot)
  }

  remove(replicaId: string): void {
    const known = this.#byId.get(replicaId)
    if (known === undefined) return
    this.#index.dropSlot(known.slot)
    // Its place goes to another replica, which is nobody's home yet.
    for (const [session, slot] of this.#homes) if (slot === known.slot) this.#homes.delete(session)
    this.#byId.delete(replicaId)
    this.#byPlace[known.place] = undefined
    this.#slots[known.place] = NO_SLOT
  }

  /** One that left and came back under its name starts anew: its memory is empty. */
  #meet(room: RoomView): Learned {
    this.remove(room.replica.id)
    // Beyond 65,535 replicas they share a place, and the index knows a little less.
    const slot = this.#index.addSlot(room.kvTokensMax / this.#blockTokens) ?? 0
    // The prior weighs as much as one ordinary answer.
    const prior = 4 * REPLICA_BOOK_DEFAULTS.overheadUs
    const known = new Known(slot, room.place, this.#distanceUs(room.replica.region), prior)
    this.#byId.set(room.replica.id, known)
    this.#byPlace[room.place] = known
    while (this.#slots.length <= room.place) this.#slots.push(NO_SLOT)
    this.#slots[room.place] = slot
    return known
  }
}

/** A map keeps its keys in the order of insertion: the first is the oldest. */
function remember<K>(map: Map<K, number>, key: K, value: number, sizeMax: number): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > sizeMax) map.delete(map.keys().next().value as K)
}
