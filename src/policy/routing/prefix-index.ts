import { assert } from '../../base/assert.ts'

/**
 * Which replicas probably hold the beginning of this prompt?
 *
 * Engines name full blocks of a prompt by a hash chained with the block before (vLLM's prefix caching), and keep them
 * until the memory is needed. The index remembers which replica was given which names. It is approximate, as in the
 * prefix scorers of llm-d and SGLang's gateway: it infers what engines hold from what they were sent, and never asks.
 *
 * Memory is fixed. A table of sets of 4 entries; an entry is a 31-bit tag (a second hash, so two names are confused
 * once in about 2^31 × sets) and up to 8 owners, each with the owner's *block count* at the last use:
 *
 *     set ─▶ [tag · seenAt · (slot, stamp)×8] ×4      57 bytes an entry, with a count of uses
 *
 * Two ways of forgetting. By amount: an owner that has been given more new blocks since than its memory holds has
 * evicted this one by now (its engine is a least-recently-used cache too). By time: an entry unused for `keepUs`.
 *
 * Not every depth is stored: all of the first 16, then 8 in every doubling (16, 18, …, 32, 36, …), so a prompt of
 * 2,000 blocks has 72 entries, and a match is short by at most 1/8. A match goes as deep as anybody owns the chain, and
 * over a few depths that were crowded out of the table; an owner counts with the deepest block that it owns, because
 * an owner crowded out of a popular first block still has the rest of the conversation.
 *
 * Deliberately not: the gateway's hashes are salted with the tenant, and the table with a secret of the process, so
 * that no tenant can find out about another's prompts or craft collisions (law L13); text never comes here.
 *
 * Example: replica a was given blocks [1 2 3 4], b [1 2 7]. A prompt [1 2 3 9] matches a with 3 blocks, b with 2.
 */
export const PREFIX_INDEX_DEFAULTS = {
  /** Entries, a power of two: 131,072 × 56 bytes = 7 MiB; some 3,000 prompts of 3,000 tokens, or 1,500 of 30,000. */
  entriesMax: 131_072,
  /** An hour: longer than any conversation pauses, shorter than a day's change of prompts. */
  keepUs: 3_600_000_000,
  /** Blocks that a replica of unknown memory is thought to hold: half a million tokens, one large GPU. */
  capacityBlocks: 32_768,
  salt: 0,
}

export interface PrefixIndexOptions {
  readonly entriesMax: number
  readonly keepUs: number
  readonly capacityBlocks: number
  readonly salt: number
}

const WAYS = 4
const OWNERS = 8
const NOBODY = 0xffff
/** Slots are 16 bits, and one value means nobody. */
const SLOTS_MAX = 0xffff
const DENSE_DEPTH = 16
/** Leaves 8 depths in each doubling. */
const OCTAVE_BITS = 3
/** A beginning that this many prompts had, one of them within a minute, is hot. */
const HOT_USES = 8
const HOT_US = 60_000_000
/** Depths in a row that may be missing from the table before a chain counts as ended. */
const GAP_MAX = 3

/** Other gateways are told every second depth that is stored, and the last: a match goes over gaps of that size. */
const TOLD_STEP = 2
/** A block that is used again is told again after a quarter of the owner's memory. */
const TOLD_AGAIN_DIVISOR = 4

/** The next depth that is stored, after this one. */
export function nextDepth(depth: number): number {
  return depth < DENSE_DEPTH ? depth + 1 : depth + (1 << (31 - Math.clz32(depth) - OCTAVE_BITS))
}

/** Who holds how much of a prompt: filled by `match`, valid until the next call. */
export interface Matches {
  count: number
  readonly slots: number[]
  readonly blocks: number[]
}

export class PrefixIndex {
  readonly #options: PrefixIndexOptions
  /** Whether there are other gateways that want to know what is recorded. */
  isTelling = false
  readonly #setMask: number
  readonly #tags: Uint32Array
  readonly #seenAtS: Uint32Array
  readonly #owners: Uint16Array
  readonly #stamps: Uint32Array
  /** How often an entry was used, up to 255. */
  readonly #uses: Uint8Array
  /** Blocks that each slot was given so far, modulo 2^32; and how many it holds. */
  readonly #written: number[] = []
  readonly #capacity: number[] = []
  readonly #freeSlots: number[] = []
  readonly #matches: Matches = { count: 0, slots: [], blocks: [] }
  readonly #recorded: { blocks: number; readonly hashes: number[] } = { blocks: 0, hashes: [] }

  constructor(options: Partial<PrefixIndexOptions> = {}) {
    this.#options = { ...PREFIX_INDEX_DEFAULTS, ...options }
    const { entriesMax } = this.#options
    assert(entriesMax >= WAYS && (entriesMax & (entriesMax - 1)) === 0, 'an index has a power of two of entries')
    this.#setMask = entriesMax / WAYS - 1
    this.#tags = new Uint32Array(entriesMax)
    this.#seenAtS = new Uint32Array(entriesMax)
    this.#owners = new Uint16Array(entriesMax * OWNERS).fill(NOBODY)
    this.#stamps = new Uint32Array(entriesMax * OWNERS)
    this.#uses = new Uint8Array(entriesMax)
  }

  get bytes(): number {
    const tables = [this.#tags, this.#seenAtS, this.#owners, this.#stamps, this.#uses]
    return tables.reduce((sum, { byteLength }) => sum + byteLength, 0)
  }

  /** A place for a replica; undefined when all are taken. */
  addSlot(capacityBlocks: number): number | undefined {
    const slot = this.#freeSlots.pop() ?? this.#written.length
    if (slot >= SLOTS_MAX) return undefined
    const capacity = Number.isFinite(capacityBlocks) ? Math.floor(capacityBlocks) : this.#options.capacityBlocks
    this.#capacity[slot] = Math.min(2 ** 30, Math.max(1, capacity))
    this.#written[slot] ??= 0
    return slot
  }

  /** The replica is gone, or has lost its memory; `dropSlot` gives its place to another. */
  forget(slot: number): void {
    this.#write(slot, (this.#capacity[slot] as number) + 1)
  }

  dropSlot(slot: number): void {
    // Whatever the next holder's capacity is, nothing recorded before may count as its own.
    this.#write(slot, 2 ** 31)
    this.#freeSlots.push(slot)
  }

  /** It was given a prompt with these blocks, and `otherBlocks` more without a name (the answer, the prompt's end). */
  record(now: number, slot: number, hashes: readonly number[], otherBlocks: number): void {
    let heldBlocks = 0
    let gap = 0
    for (let depth = 1; depth <= hashes.length && gap <= GAP_MAX; depth = nextDepth(depth)) {
      const entry = this.#find(hashes[depth - 1] as number)
      const isHeld = entry >= 0 && this.#ownerPlace(entry, slot) >= 0
      if (isHeld) heldBlocks = depth
      gap = isHeld ? 0 : gap + 1
    }
    const news = this.#recorded
    news.blocks = hashes.length - heldBlocks + otherBlocks
    news.hashes.length = 0
    this.#write(slot, news.blocks)
    const nowS = toSeconds(now)
    let nth = 0
    for (let depth = 1; depth <= hashes.length; depth = nextDepth(depth)) {
      const hash = hashes[depth - 1] as number
      const found = this.#find(hash)
      const entry = found >= 0 ? found : this.#makeEntry(hash, nowS)
      this.#seenAtS[entry] = nowS
      this.#uses[entry] = Math.min(255, (this.#uses[entry] as number) + 1)
      const isLast = nextDepth(depth) > hashes.length
      if (this.isTelling && (nth++ % TOLD_STEP === 0 || isLast) && this.#isNews(entry, slot)) news.hashes.push(hash)
      this.#own(entry, slot)
    }
  }

  /** What the last `record` had for other gateways, while `isTelling`: blocks that are new to the replica, and names. Valid until the next. */
  get recorded(): { readonly blocks: number; readonly hashes: readonly number[] } {
    return this.#recorded
  }

  /** Another gateway gave it these blocks, and so many in all. */
  hear(now: number, slot: number, hashes: readonly number[], blocks: number): void {
    this.#write(slot, blocks)
    const nowS = toSeconds(now)
    for (let i = 0; i < hashes.length; i++) {
      const hash = hashes[i] as number
      const found = this.#find(hash)
      const entry = found >= 0 ? found : this.#makeEntry(hash, nowS)
      this.#seenAtS[entry] = nowS
      this.#own(entry, slot)
    }
  }

  /** Whether other gateways may not know it: the owner is new, or they would soon think that it has evicted the block. */
  #isNews(entry: number, slot: number): boolean {
    const place = this.#ownerPlace(entry, slot)
    return place < 0 || this.#ageOf(place) > (this.#capacity[slot] as number) / TOLD_AGAIN_DIVISOR
  }

  /**
   * By slot: hot blocks that it alone holds. Hot is what was used `HOT_USES` times and within `HOT_US`. Walks the whole
   * table, some milliseconds: asked when replicas are to go, not for requests.
   */
  soleHotBlocks(now: number): ReadonlyMap<number, number> {
    const counts = new Map<number, number>()
    const oldestS = toSeconds(Math.max(0, now - HOT_US))
    for (let entry = 0; entry < this.#tags.length; entry++) {
      if ((this.#uses[entry] as number) < HOT_USES || (this.#seenAtS[entry] as number) < oldestS) continue
      let sole = NOBODY
      let owners = 0
      for (let place = entry * OWNERS; place < entry * OWNERS + OWNERS && owners < 2; place++) {
        if (!this.#isHeld(place)) continue
        owners++
        sole = this.#owners[place] as number
      }
      if (owners === 1) counts.set(sole, (counts.get(sole) ?? 0) + 1)
    }
    return counts
  }

  match(now: number, hashes: readonly number[]): Readonly<Matches> {
    const found = this.#matches
    found.count = 0
    const oldestS = toSeconds(Math.max(0, now - this.#options.keepUs))
    let gap = 0
    for (let depth = 1; depth <= hashes.length && gap <= GAP_MAX; depth = nextDepth(depth)) {
      const entry = this.#find(hashes[depth - 1] as number)
      const isKnown = entry >= 0 && (this.#seenAtS[entry] as number) >= oldestS && this.#addOwners(entry, depth)
      gap = isKnown ? 0 : gap + 1
    }
    return found
  }

  #addOwners(entry: number, depth: number): boolean {
    const { slots, blocks } = this.#matches
    let isOwned = false
    for (let place = entry * OWNERS; place < entry * OWNERS + OWNERS; place++) {
      if (!this.#isHeld(place)) continue
      isOwned = true
      const slot = this.#owners[place] as number
      let i = 0
      while (i < this.#matches.count && slots[i] !== slot) i++
      if (i === this.#matches.count) this.#matches.count++
      slots[i] = slot
      blocks[i] = depth
    }
    return isOwned
  }

  #find(hash: number): number {
    const first = (mix(hash, this.#options.salt) & this.#setMask) * WAYS
    const tag = tagOf(hash, this.#options.salt)
    for (let entry = first; entry < first + WAYS; entry++) if (this.#tags[entry] === tag) return entry
    return -1
  }

  /** In a full set the entry goes that was used least recently. */
  #makeEntry(hash: number, nowS: number): number {
    const first = (mix(hash, this.#options.salt) & this.#setMask) * WAYS
    let oldest = first
    for (let entry = first; entry < first + WAYS; entry++) {
      if (this.#tags[entry] === 0) {
        oldest = entry
        break
      }
      if ((this.#seenAtS[entry] as number) < (this.#seenAtS[oldest] as number)) oldest = entry
    }
    this.#tags[oldest] = tagOf(hash, this.#options.salt)
    this.#seenAtS[oldest] = nowS
    this.#uses[oldest] = 0
    this.#owners.fill(NOBODY, oldest * OWNERS, (oldest + 1) * OWNERS)
    return oldest
  }

  #own(entry: number, slot: number): void {
    const known = this.#ownerPlace(entry, slot)
    const place = known >= 0 ? known : this.#stalestPlace(entry)
    this.#owners[place] = slot
    this.#stamps[place] = this.#written[slot] as number
  }

  #ownerPlace(entry: number, slot: number): number {
    for (let place = entry * OWNERS; place < entry * OWNERS + OWNERS; place++)
      if (this.#owners[place] === slot && this.#isHeld(place)) return place
    return -1
  }

  /** A free place, or that of the owner who is nearest to evicting the block. */
  #stalestPlace(entry: number): number {
    let stalest = entry * OWNERS
    let stalestAge = -1
    for (let place = entry * OWNERS; place < entry * OWNERS + OWNERS; place++) {
      if (!this.#isHeld(place)) return place
      const age = this.#ageOf(place) / (this.#capacity[this.#owners[place] as number] as number)
      if (age > stalestAge) {
        stalestAge = age
        stalest = place
      }
    }
    return stalest
  }

  #isHeld(place: number): boolean {
    const slot = this.#owners[place] as number
    return slot !== NOBODY && this.#ageOf(place) <= (this.#capacity[slot] as number)
  }

  /** New blocks that the owner was given since. */
  #ageOf(place: number): number {
    return ((this.#written[this.#owners[place] as number] as number) - (this.#stamps[place] as number)) >>> 0
  }

  #write(slot: number, blocks: number): void {
    this.#written[slot] = ((this.#written[slot] as number) + Math.max(0, Math.floor(blocks))) >>> 0
  }
}

const toSeconds = (us: number): number => Math.floor(us / 1_000_000)

/** Names may be wider than 32 bits: both halves count. The finalizer is MurmurHash3's (Austin Appleby). */
function mix(hash: number, salt: number): number {
  let h = (hash ^ Math.imul(Math.floor(hash / 2 ** 32), 0x9e3779b1) ^ salt) | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** Of the whole name, by another path than the set; 0 means free. */
function tagOf(hash: number, salt: number): number {
  const high = Math.floor(hash / 2 ** 32)
  let h = Math.imul((hash | 0) + Math.imul(high, 0x27d4eb2f) + salt, 0x165667b1)
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d)
  return ((h ^ (h >>> 12)) | 1) >>> 0
}
