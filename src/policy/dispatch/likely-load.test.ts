import { describe, expect, it } from 'vitest'
import { likelyLoadOf } from './likely-load.ts'
import type { PoolState } from './pool-state.ts'

const roomOf = (prefillTokens: number, isReady = true) => ({ isReady, ledger: { prefillTokens } })

function likely(open: readonly number[], rooms: ReadonlyArray<ReturnType<typeof roomOf>> = []): number | undefined {
  const pool = {
    open: open.map((prefillTokens) => roomOf(prefillTokens)),
    rooms: new Map(rooms.map((room, i) => [String(i), room])),
  }
  return likelyLoadOf(pool as unknown as Pick<PoolState, 'open' | 'rooms'>)?.prefillTokens
}

describe('the load where the next ticket would probably go', () => {
  it('is the least unread of the replicas with room', () => {
    expect(likely([300, 100, 200])).toBe(100)
    expect(likely([100, 300])).toBe(100)
  })

  it('is that of one of eight, however many have room', () => {
    expect(likely([9, 8, 7, 6, 5, 4, 3, 2, 1])).toBe(2)
  })

  it('is the least unread of the ready ones where none has room', () => {
    expect(likely([], [roomOf(1, false), roomOf(30), roomOf(10), roomOf(20)])).toBe(10)
    expect(
      likely(
        [],
        [9, 8, 7, 6, 5, 4, 3, 2, 1].map((tokens) => roomOf(tokens)),
      ),
    ).toBe(2)
  })

  it('is unknown where no replica is ready', () => {
    expect(likely([], [roomOf(1, false)])).toBeUndefined()
  })
})
