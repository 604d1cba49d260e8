import { describe, expect, it } from 'vitest'
import { Rng } from '../../base/rng.ts'
import { prefixHome } from './prefix-home.ts'
import type { RoomView } from './room-view.ts'

const room = (id: string, engineUs = 0): RoomView => ({
  replica: { id, poolId: 'p', model: 'm', releaseId: 'm@1', region: 'here' },
  ordinal: 0,
  place: 0,
  kvTokensMax: Number.POSITIVE_INFINITY,
  ledger: { engineUs, sequences: 0, kvTokens: 0 },
})
const rooms = (count: number): RoomView[] => Array.from({ length: count }, (_, i) => room(`r${i}`))
const rng = Rng.stream(1, 'names')
const prompts = Array.from({ length: 2_000 }, () => Array.from({ length: 20 }, () => rng.below(2 ** 32)))
const homesOf = (all: readonly RoomView[]): Array<string | undefined> =>
  prompts.map((hashes) => prefixHome(hashes, all)?.replica.id)

describe('the home of a beginning', () => {
  it('is the same whatever order a gateway has its replicas in, and looks at the first blocks only', () => {
    expect(homesOf(rooms(8).toReversed())).toEqual(homesOf(rooms(8)))
    for (const hashes of prompts.slice(0, 50)) {
      const longer = [...hashes.slice(0, 8), 1, 2, 3]
      expect(prefixHome(longer, rooms(8))?.replica.id).toBe(prefixHome(hashes, rooms(8))?.replica.id)
    }
  })

  it('is spread evenly', () => {
    const counts = new Map<string | undefined, number>()
    for (const home of homesOf(rooms(8))) counts.set(home, (counts.get(home) ?? 0) + 1)
    expect(counts.size).toBe(8)
    // 250 each, give or take four standard deviations.
    for (const count of counts.values()) expect(Math.abs(count - 250)).toBeLessThan(60)
  })

  it('moves only where a replica has gone', () => {
    const before = homesOf(rooms(8))
    const after = homesOf(rooms(8).filter(({ replica }) => replica.id !== 'r3'))
    for (const [i, home] of before.entries()) if (home !== 'r3') expect(after[i]).toBe(home)
    expect(after).not.toContain('r3')
  })

  it('is not with a replica that is busier than the mean', () => {
    const busy = [room('r0', 9_000_000), ...rooms(8).slice(1)]
    expect(homesOf(busy)).not.toContain('r0')
    const equal = rooms(8).map(({ replica }) => room(replica.id, 1_234_567))
    expect(homesOf(equal)).toEqual(homesOf(rooms(8)))
  })

  it('needs a name, and a choice', () => {
    expect(prefixHome([], rooms(8))).toBeUndefined()
    expect(prefixHome([1, 2], rooms(1))).toBeUndefined()
    expect(prefixHome([1, 2], rooms(2))).toBeDefined()
  })
})
