import type { Rng } from '../../base/rng.ts'
import type { Replica } from '../../domain/fleet.ts'
import type { Placement, WhereKnown } from '../../domain/placement.ts'
import { FILTERS } from './filters/filters.ts'
import { placementReason } from './placement-reason.ts'
import { makePlainRule, type PlainRule, type RoutingRule } from './plain-rules.ts'
import { prefixHome } from './prefix-home.ts'
import { PrefixIndex } from './prefix-index.ts'
import { type AttemptPace, NO_SLOT, type PlacedElsewhere, ReplicaBook } from './replica-book.ts'
import type { Filter, Learned, PlacementAsk, RoomView, Scene, Scorer } from './room-view.ts'
import { SCORERS, type ScorerName, type ScorerWeights, WEIGHT_DEFAULTS } from './scorers/scorers.ts'

/**
 * Which replica? The one with the least predicted time to the first token.
 *
 * Filter, score, pick, as in llm-d's scheduler, with one difference: scores are predicted microseconds, not points
 * between 0 and 1, so their sum is a prediction that can be wrong and corrected (`replica-book.ts` learns each
 * replica's slowness from it). The sum is: prompts ahead + own uncached prompt + distance + a little for company.
 *
 * A prefix owner has its claim only while it is not crowded: with more than `ownerLoadRatioMax` times the lightest
 * replica's work in flight (and more than `ownerSpareCount` tickets like this one besides) it counts as if it held
 * nothing. That is what spreads a popular prompt over several replicas instead of drowning one (SGLang's cache-aware
 * policy has the same switch).
 *
 * Large pools are sampled: every owner of the prefix, the session's home, and `sampleCount` others at random
 * (Mitzenmacher's power of two choices). Several gateways with the same news then do not all run to the same replica,
 * and the cost of a choice does not grow with the pool, except that owners are looked for among those with room. The
 * lightest is then the lightest of the sample.
 *
 * Where several gateways share a fleet (`tellPlaced`), a beginning that nobody holds has a home (`prefix-home.ts`), which may be
 * as much later as reading those blocks takes; and gateways tell each other what they gave to which replica.
 *
 * Deliberately not: no health (a replica that must not be used is closed at the dispatcher), no other regions
 * (`choose-pool.ts`), no memory of answers. Choosing *is* placing: the dispatcher grants what was chosen.
 *
 * Laws: L6 whoever has room is placed; L9 the only randomness is the `Rng` that was given; L13 by the index's salts.
 *
 * Example: a prompt of 3,000 tokens. a holds 2,000 of them and reads for 20 ms yet: 20 + 50 = 70 ms. b is idle:
 * 150 ms. a is chosen, "holds the prompt's prefix". With 120 ms of reading ahead at a, b is.
 */
export const PLACER_DEFAULTS = {
  rule: 'soonest-first-token' as RoutingRule,
  weights: WEIGHT_DEFAULTS,
  /** Tokens that one prefix hash names: an engine's block. */
  blockTokens: 16,
  /** Prior for reading one prompt token: an 8B model on an A100. Learned per replica from the first answers on. */
  prefillUsPerToken: 50,
  /** Between 1.5 and 2: below, owners lose their claim to noise; above, they drown. */
  ownerLoadRatioMax: 1.75,
  /** Tickets of this size by which an owner may be ahead however light the lightest is: a ratio to nothing says nothing. */
  ownerSpareCount: 4,
  /** Pools with more open replicas than this are sampled. */
  sampleAbove: 64,
  /** Two would do (log log n); four cost nothing and find the idle one more often. */
  sampleCount: 4,
}

export interface PlacerOptions {
  readonly rule: RoutingRule
  readonly weights: ScorerWeights
  readonly blockTokens: number
  readonly prefillUsPerToken: number
  readonly ownerLoadRatioMax: number
  readonly ownerSpareCount: number
  readonly sampleAbove: number
  readonly sampleCount: number
}

export interface PlacerParts {
  readonly options?: Partial<PlacerOptions>
  /** The `routing` stream of the run. */
  readonly rng: Rng
  readonly index?: PrefixIndex
  /** Round trip to a region, in microseconds. */
  readonly distanceUs?: (region: string) => number
}

/** The parts of one replica's score, in weighted microseconds: for `explain`, never on the path of a request. */
export interface ScoreCard {
  readonly replicaId: string
  readonly totalUs: number
  readonly parts: Readonly<Record<string, number>>
}

/** A prompt was given to a replica: blocks that are new there, and names that other gateways should know. */
export type TellPlaced = (replica: Replica, blocks: number, hashes: readonly number[]) => void

export class RoutingPlacer {
  readonly #options: PlacerOptions
  readonly #rng: Rng
  readonly #index: PrefixIndex
  readonly #book: ReplicaBook
  readonly #filters: readonly Filter[] = Object.values(FILTERS)
  readonly #scorers: readonly (readonly [ScorerName, Scorer, number])[]
  readonly #scene: Scene
  readonly #candidates: RoomView[] = []
  /** By index slot, the blocks of the ticket's prompt that are held there: filled and cleared within a choice. */
  #heldBlocks: Uint32Array = new Uint32Array(64)
  #holderCount = 0
  readonly #plain: PlainRule | undefined
  #tell: TellPlaced | undefined
  /** Index slot of the home of the ticket's prompt, and the delay that is accepted to go there. */
  #homeSlot = NO_SLOT
  #homeUs = 0
  #because = 'soonest first token'
  #placement: Placement | undefined
  #aheadUs: number | undefined

  constructor(parts: PlacerParts) {
    this.#options = { ...PLACER_DEFAULTS, ...parts.options }
    this.#rng = parts.rng
    this.#plain = makePlainRule(this.#options.rule)
    this.#index = parts.index ?? new PrefixIndex()
    this.#book = new ReplicaBook(this.#index, this.#options.blockTokens, parts.distanceUs ?? (() => 0))
    this.#scorers = (Object.keys(SCORERS) as ScorerName[])
      .map((name) => [name, SCORERS[name], this.#options.weights[name]] as const)
      .filter(([, , weight]) => weight !== 0)
    this.#scene = {
      now: 0,
      ask: { ticketId: '', estimate: NO_WORK, prefixHashes: undefined, sessionHash: undefined },
      lightestUs: 0,
      cachedTokens: 0,
      isSessionHome: false,
      prefillUsPerToken: this.#options.prefillUsPerToken,
    }
  }

  /** Why the last choice was made. */
  get because(): string {
    return this.#because
  }

  /** The numbers behind the last choice; none when a plain rule made it. */
  get placement(): Placement | undefined {
    return this.#placement
  }

  /** Every room given has space for the ticket, and there is at least one. */
  choose<R extends RoomView>(now: number, ask: PlacementAsk, rooms: readonly R[]): R {
    if (this.#plain !== undefined) return this.#choosePlainly(this.#plain, rooms)
    this.#look(now, ask)
    const isSampled = rooms.length > this.#options.sampleAbove
    const home = this.#findHome(rooms)
    const candidates = isSampled ? this.#sample(rooms, home) : rooms
    this.#scene.lightestUs = lightestOf(candidates)
    const scored = this.#filtered(candidates)
    const best = this.#best(scored)
    const learned = this.#book.of(best)
    const partsUs = this.#partsOf(best, learned)
    const { cachedTokens, isSessionHome } = this.#scene
    const isPrefixHome = learned.slot === this.#homeSlot
    this.#because = placementReason(rooms.length, cachedTokens, isSessionHome, isSampled, isPrefixHome)
    this.#placement = {
      roomCount: rooms.length,
      scoredCount: scored.length,
      cachedTokens,
      partsUs,
      aheadUs: this.#aheadUs,
    }
    this.#forgetHolders()
    this.#place(learned, cachedTokens)
    if (this.#tell !== undefined && (ask.prefixHashes?.length ?? 0) > 0) {
      const { blocks, hashes } = this.#index.recorded
      this.#tell(best.replica, blocks, hashes)
    }
    return best as R
  }

  /** Where half of the prompt's named beginning or more is held, as far as is known here. Changes nothing. */
  whereKnown(now: number, { prefixHashes = [] }: PlacementAsk, rooms: readonly RoomView[]): WhereKnown {
    if (this.#plain !== undefined || prefixHashes.length === 0) return 'nowhere'
    const { count, slots, blocks } = this.#index.match(now, prefixHashes)
    let where: WhereKnown = 'nowhere'
    for (let i = 0; i < count; i++) {
      if (2 * (blocks[i] as number) < prefixHashes.length) continue
      for (const { place } of rooms) if (this.#book.slotOf(place) === slots[i]) return 'here'
      where = 'elsewhere'
    }
    return where
  }

  /** How every room would be scored now. Changes nothing; allocates. */
  explain(now: number, ask: PlacementAsk, rooms: readonly RoomView[]): readonly ScoreCard[] {
    this.#look(now, ask)
    this.#findHome(rooms)
    this.#scene.lightestUs = lightestOf(rooms)
    const cards = rooms.map((room) => {
      const learned = this.#book.of(room)
      return { replicaId: room.replica.id, totalUs: this.#score(room, learned), parts: this.#partsOf(room, learned) }
    })
    this.#forgetHolders()
    return cards.sort((a, b) => a.totalUs - b.totalUs)
  }

  /** An attempt is over: how soon its first token came, or that it failed. Teaches the replica's slowness. */
  observe(now: number, attempt: AttemptPace): void {
    this.#book.observe(now, attempt)
  }

  /** Other gateways place prompts at the same replicas: they are told of each, and prompts that are new have a home. */
  tellPlaced(tell: TellPlaced): void {
    this.#tell = tell
    this.#index.isTelling = true
  }

  hearPlaced(now: number, placed: PlacedElsewhere): void {
    this.#book.hear(now, placed)
  }

  /** The replica restarted: what it held is lost. */
  restarted(replicaId: string): void {
    this.#book.restarted(replicaId)
  }

  removed(replicaId: string): void {
    this.#book.remove(replicaId)
  }

  /** For each replica: hot blocks of prompts' beginnings that no other one holds. */
  soleHotBlocks(now: number): (replicaId: string) => number {
    const bySlot = this.#index.soleHotBlocks(now)
    return (replicaId) => bySlot.get(this.#book.slotNamed(replicaId)) ?? 0
  }

  /** Tokens of this prompt that the best holder has: what planning may count as cached. */
  cachedTokens(now: number, ask: Pick<PlacementAsk, 'prefixHashes' | 'estimate'>): number {
    if (this.#plain !== undefined) return 0
    const { count, blocks } = this.#index.match(now, ask.prefixHashes ?? [])
    let most = 0
    for (let i = 0; i < count; i++) most = Math.max(most, blocks[i] as number)
    return this.#tokensOf(most, ask.estimate.promptTokens)
  }

  /** Prepares the scene: who holds what. */
  #look(now: number, ask: PlacementAsk): void {
    const scene = this.#scene
    scene.now = now
    scene.ask = ask
    const { count, slots, blocks } = this.#index.match(now, ask.prefixHashes ?? [])
    this.#holderCount = count
    for (let i = 0; i < count; i++) {
      const slot = slots[i] as number
      if (slot >= this.#heldBlocks.length) this.#heldBlocks = grown(this.#heldBlocks, slot)
      this.#heldBlocks[slot] = blocks[i] as number
    }
  }

  /** Only where nobody is known to hold its beginning, and gateways must agree. */
  #findHome(rooms: readonly RoomView[]): RoomView | undefined {
    this.#homeSlot = NO_SLOT
    const { prefixHashes = [], estimate } = this.#scene.ask
    if (this.#tell === undefined || this.#holderCount > 0 || prefixHashes.length === 0) return undefined
    const home = prefixHome(prefixHashes, rooms)
    if (home === undefined) return undefined
    this.#homeSlot = this.#book.of(home).slot
    this.#homeUs = Math.round(
      this.#tokensOf(prefixHashes.length, estimate.promptTokens) * this.#options.prefillUsPerToken,
    )
    return home
  }

  #forgetHolders(): void {
    if (this.#holderCount > 0) this.#heldBlocks.fill(0)
    this.#holderCount = 0
  }

  #heldAt(slot: number): number {
    return this.#heldBlocks[slot] ?? 0
  }

  /** Owners and the session's home, wherever they are in the list, and a few others. */
  #sample(rooms: readonly RoomView[], prefixHomeRoom: RoomView | undefined): readonly RoomView[] {
    const candidates = this.#candidates
    candidates.length = 0
    if (prefixHomeRoom !== undefined) candidates.push(prefixHomeRoom)
    const home = this.#book.homeOf(this.#scene.ask.sessionHash)
    let wantedCount = this.#holderCount + (home === undefined || this.#heldAt(home) > 0 ? 0 : 1)
    for (let i = 0; i < rooms.length && wantedCount > 0; i++) {
      const room = rooms[i] as RoomView
      const slot = this.#book.slotOf(room.place)
      if (slot === NO_SLOT || (slot !== home && this.#heldAt(slot) === 0)) continue
      candidates.push(room)
      wantedCount--
    }
    for (let i = 0; i < this.#options.sampleCount; i++)
      candidates.push(rooms[this.#rng.below(rooms.length)] as RoomView)
    return candidates
  }

  #filtered(rooms: readonly RoomView[]): readonly RoomView[] {
    let left = rooms
    for (const isPreferred of this.#filters) {
      const isWanted = (room: RoomView): boolean => isPreferred(this.#scene, room, this.#book.of(room))
      if (left.every(isWanted)) continue
      const kept = left.filter(isWanted)
      if (kept.length > 0) left = kept
    }
    return left
  }

  #choosePlainly<R extends RoomView>(plain: PlainRule, rooms: readonly R[]): R {
    this.#because = plain.because
    return plain.choose(rooms)
  }

  #best(rooms: readonly RoomView[]): RoomView {
    let best = rooms[0] as RoomView
    let bestUs = Number.POSITIVE_INFINITY
    let nextUs = Number.POSITIVE_INFINITY
    for (let i = 0; i < rooms.length; i++) {
      const room = rooms[i] as RoomView
      const us = this.#score(room, this.#book.of(room))
      if (us < bestUs || (us === bestUs && room.ordinal < best.ordinal)) {
        // A sample may hold one replica twice: it is not ahead of itself.
        if (room !== best) nextUs = bestUs
        best = room
        bestUs = us
      } else if (us < nextUs && room !== best) nextUs = us
    }
    this.#aheadUs = nextUs === Number.POSITIVE_INFINITY ? undefined : nextUs - bestUs
    return best
  }

  #score(room: RoomView, learned: Learned): number {
    const scene = this.#scene
    scene.cachedTokens = this.#claimOf(room, learned)
    scene.isSessionHome = this.#isHome(learned)
    let us = 0
    for (const [, score, weight] of this.#scorers) us += weight * score(scene, room, learned)
    return learned.slot === this.#homeSlot ? us - this.#homeUs : us
  }

  /** The score part by part; sets the scene for this replica. */
  #partsOf(room: RoomView, learned: Learned): Record<string, number> {
    const scene = this.#scene
    scene.cachedTokens = this.#claimOf(room, learned)
    scene.isSessionHome = this.#isHome(learned)
    const parts: Record<string, number> = {}
    for (const [name, score, weight] of this.#scorers) parts[name] = Math.round(weight * score(scene, room, learned))
    if (learned.slot === this.#homeSlot) parts['home'] = -this.#homeUs
    return parts
  }

  /** Tokens of the prompt that the replica holds, unless it is too crowded for that to count. */
  #claimOf(room: RoomView, learned: Learned): number {
    const blocks = this.#heldAt(learned.slot)
    if (blocks === 0) return 0
    const { ownerLoadRatioMax, ownerSpareCount } = this.#options
    const { estimate } = this.#scene.ask
    const boundUs = ownerLoadRatioMax * this.#scene.lightestUs + ownerSpareCount * estimate.engineUs
    return room.ledger.engineUs > boundUs ? 0 : this.#tokensOf(blocks, estimate.promptTokens)
  }

  #isHome(learned: Learned): boolean {
    const { sessionHash } = this.#scene.ask
    return sessionHash !== undefined && this.#book.homeOf(sessionHash) === learned.slot
  }

  /** At least one token is computed, however much is held. */
  #tokensOf(blocks: number, promptTokens: number): number {
    return Math.max(0, Math.min(blocks * this.#options.blockTokens, promptTokens - 1))
  }

  #place(learned: Learned, cachedTokens: number): void {
    const { now, ask, prefillUsPerToken } = this.#scene
    const uncachedTokens = Math.max(1, ask.estimate.promptTokens - cachedTokens)
    this.#book.place(now, { ask, learned, ownUs: uncachedTokens * prefillUsPerToken })
  }
}

const NO_WORK = { promptTokens: 0, cachedTokens: 0, outputTokens: 0, outputTokensHigh: 0, cost: 0, engineUs: 0 }

function lightestOf(rooms: readonly RoomView[]): number {
  let lightestUs = Number.POSITIVE_INFINITY
  for (let i = 0; i < rooms.length; i++) {
    const us = (rooms[i] as RoomView).ledger.engineUs
    if (us < lightestUs) lightestUs = us
  }
  return lightestUs
}

function grown(array: Uint32Array, slot: number): Uint32Array {
  const wider = new Uint32Array(2 ** (32 - Math.clz32(slot)))
  wider.set(array)
  return wider
}
