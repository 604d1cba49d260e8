import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nthSeed } from '../../../test/support/nth-seed.ts'
import { nextDepth, PrefixIndex } from './prefix-index.ts'

const S = 1_000_000

/** Everything of the stored depths remembered, nothing bounded: what the index would be with unlimited memory. */
class NaiveIndex {
  readonly #stampsByHash = new Map<number, Map<number, number>>()
  readonly #seenAt = new Map<number, number>()
  readonly #written = new Map<number, number>()
  readonly #capacity: number
  readonly #keepUs: number

  constructor(capacity: number, keepUs: number) {
    this.#capacity = capacity
    this.#keepUs = keepUs
  }

  #holds(hash: number, slot: number): boolean {
    const stamp = this.#stampsByHash.get(hash)?.get(slot)
    return stamp !== undefined && (this.#written.get(slot) ?? 0) - stamp <= this.#capacity
  }

  forget(slot: number): void {
    for (const stamps of this.#stampsByHash.values()) stamps.delete(slot)
  }

  record(now: number, slot: number, hashes: readonly number[], otherBlocks: number): void {
    let held = 0
    for (const depth of depthsOf(hashes)) {
      if (!this.#holds(hashes[depth - 1] as number, slot)) break
      held = depth
    }
    this.#written.set(slot, (this.#written.get(slot) ?? 0) + hashes.length - held + otherBlocks)
    for (const depth of depthsOf(hashes)) {
      const hash = hashes[depth - 1] as number
      const stamps = this.#stampsByHash.get(hash) ?? new Map<number, number>()
      stamps.set(slot, this.#written.get(slot) as number)
      this.#stampsByHash.set(hash, stamps)
      this.#seenAt.set(hash, Math.floor(now / S))
    }
  }

  match(now: number, hashes: readonly number[]): Map<number, number> {
    const found = new Map<number, number>()
    const oldestS = Math.floor(Math.max(0, now - this.#keepUs) / S)
    for (const depth of depthsOf(hashes)) {
      const hash = hashes[depth - 1] as number
      const slots = [...(this.#stampsByHash.get(hash)?.keys() ?? [])].filter((slot) => this.#holds(hash, slot))
      if (slots.length === 0 || (this.#seenAt.get(hash) ?? 0) < oldestS) return found
      for (const slot of slots) found.set(slot, depth)
    }
    return found
  }
}

function depthsOf(hashes: readonly number[]): number[] {
  const depths: number[] = []
  for (let depth = 1; depth <= hashes.length; depth = nextDepth(depth)) depths.push(depth)
  return depths
}

const matchesOf = (index: PrefixIndex, now: number, hashes: readonly number[]): Map<number, number> => {
  const { count, slots, blocks } = index.match(now, hashes)
  return new Map(slots.slice(0, count).map((slot, i) => [slot, blocks[i] as number]))
}

/** A prompt of a small family: its name says where it parts from the others. */
const prompt = (family: number, parting: number, length: number): number[] =>
  Array.from({ length }, (_, i) =>
    i < parting ? family * 1_000_003 + i : family * 7_777_777 + parting * 1_000 + i + 1,
  )

const commands = fc.array(
  fc.record({
    slot: fc.nat({ max: 5 }),
    family: fc.integer({ min: 1, max: 4 }),
    parting: fc.nat({ max: 12 }),
    length: fc.nat({ max: 24 }),
    other: fc.nat({ max: 30 }),
    pauseS: fc.nat({ max: 200 }),
    isForgotten: fc.boolean(),
  }),
  { maxLength: 40 },
)

describe('the prefix index', () => {
  // Twice half of the runs, so that none is long.
  it.each([1, 2])('is the naive one as long as its memory suffices (%i)', (nth) => {
    fc.assert(
      fc.property(commands, (list) => {
        const options = { entriesMax: 131_072, keepUs: 1_000 * S, salt: 7 }
        const index = new PrefixIndex(options)
        const naive = new NaiveIndex(100, options.keepUs)
        for (let slot = 0; slot < 6; slot++) index.addSlot(100)
        let now = 0
        for (const { slot, family, parting, length, other, pauseS, isForgotten } of list) {
          now += pauseS * S
          const hashes = prompt(family, parting, length)
          expect(matchesOf(index, now, hashes)).toEqual(naive.match(now, hashes))
          if (isForgotten) {
            index.forget(slot)
            naive.forget(slot)
          }
          index.record(now, slot, hashes, other)
          naive.record(now, slot, hashes, other)
        }
      }),
      { numRuns: 100, seed: nthSeed(nth) },
    )
  })

  it('promises no more than the naive one when its memory is far too small', () => {
    fc.assert(
      fc.property(commands, (list) => {
        const index = new PrefixIndex({ entriesMax: 32, keepUs: 1_000 * S })
        const naive = new NaiveIndex(1_000_000, 1_000_000 * S)
        for (let slot = 0; slot < 6; slot++) index.addSlot(1_000_000)
        for (const { slot, family, parting, length } of list) {
          const hashes = prompt(family, parting, length)
          const most = naive.match(0, hashes)
          for (const [known, blocks] of matchesOf(index, 0, hashes)) {
            expect(blocks).toBeLessThanOrEqual(most.get(known) ?? 0)
          }
          index.record(0, slot, hashes, 0)
          naive.record(0, slot, hashes, 0)
        }
      }),
    )
  })

  it('stores long prompts in a logarithm of entries, and is short by at most 1/8', () => {
    const depths: number[] = []
    for (let depth = 1; depth <= 2_000; depth = nextDepth(depth)) depths.push(depth)
    expect(depths.length).toBeLessThanOrEqual(72)
    for (let length = 1; length <= 2_000; length++) {
      const stored = depths.findLast((depth) => depth <= length) as number
      expect(length - stored).toBeLessThanOrEqual(length / 8)
    }
  })

  it('keeps a conversation with its replica though everybody owns its first blocks', () => {
    const index = new PrefixIndex({ entriesMax: 4_096 })
    for (let slot = 0; slot < 40; slot++) index.addSlot(Number.POSITIVE_INFINITY)
    index.record(0, 0, prompt(1, 10, 30), 0)
    for (let slot = 1; slot < 40; slot++) index.record(0, slot, prompt(1, 10, 10 + slot).slice(0, 10), 0)
    expect(matchesOf(index, 0, prompt(1, 10, 30)).get(0)).toBe(30)
  })

  it('gives a dropped slot to another replica with nothing in it', () => {
    const index = new PrefixIndex({ entriesMax: 4_096 })
    const slot = index.addSlot(100) as number
    index.record(0, slot, [1, 2, 3], 0)
    index.dropSlot(slot)
    expect(index.addSlot(Number.POSITIVE_INFINITY)).toBe(slot)
    expect(matchesOf(index, 0, [1, 2, 3]).size).toBe(0)
  })
})

describe('news for other gateways', () => {
  const hashes = Array.from({ length: 100 }, (_, i) => i + 1)

  it('are few, enough for a match, and of what is new', () => {
    const [here, there] = [new PrefixIndex(), new PrefixIndex()]
    here.isTelling = true
    const slot = here.addSlot(10_000) as number
    there.addSlot(10_000)
    here.record(0, slot, hashes, 5)
    expect(here.recorded.blocks).toBe(105)
    expect(here.recorded.hashes.length).toBeLessThan(25)
    there.hear(0, slot, here.recorded.hashes, here.recorded.blocks)
    const own = { ...here.match(0, hashes), blocks: [...here.match(0, hashes).blocks] }
    expect(there.match(0, hashes)).toEqual(own)
    here.record(1, slot, hashes, 5)
    // Of 100 blocks the index knows 96.
    expect(here.recorded).toEqual({ blocks: 9, hashes: [] })
  })

  it('come again when others would soon think that the owner has evicted it', () => {
    const index = new PrefixIndex()
    index.isTelling = true
    const slot = index.addSlot(1_000) as number
    index.record(0, slot, hashes, 0)
    index.hear(0, slot, [], 300)
    index.record(0, slot, hashes, 0)
    expect(index.recorded.hashes.length).toBeGreaterThan(10)
  })

  it('age what is known of a replica, as own prompts do', () => {
    const index = new PrefixIndex()
    const slot = index.addSlot(1_000) as number
    index.hear(0, slot, [1, 2], 0)
    index.hear(0, slot, [], 1_000)
    expect(index.match(0, [1, 2]).count).toBe(1)
    index.hear(0, slot, [], 1)
    expect(index.match(0, [1, 2]).count).toBe(0)
  })

  it('are none while nobody wants them', () => {
    const index = new PrefixIndex()
    index.record(0, index.addSlot(1_000) as number, hashes, 0)
    expect(index.recorded.hashes).toEqual([])
  })
})
