import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { KeptTwin } from '../lifecycle/ports.ts'
import type { TwinMemory } from '../policy/twin/twin-memory.ts'
import type { StoredTwin } from '../store/sql-twin-store.ts'
import { StoreTwinKeeper } from './store-twin-keeper.ts'

const memoryOf = (rows: number): TwinMemory => ({
  prior: 'h100-llama-8b',
  decode: [6_000, 4, 0.04, 14],
  read: [6_000, 12, 17, 0.001],
  tokenBudget: 2_048,
  rows,
  sequencesSeen: 50,
  ceiling: 72,
})

const keptOf = (replicaId: string, rows: number): KeptTwin => ({ poolId: 'p', replicaId, memory: memoryOf(rows) })

/** A store that answers when the test says so. */
function given(over: { stored?: readonly StoredTwin[]; isDurable?: boolean } = {}) {
  const clock = new VirtualClock(5_000_000)
  const written: KeptTwin[][] = []
  const complaints: string[] = []
  const store = {
    isAway: false,
    answer: undefined as (() => void) | undefined,
    load: () => (store.isAway ? Promise.reject(new Error('It is away.')) : Promise.resolve(over.stored ?? [])),
    write: async (_atMs: number, kept: readonly KeptTwin[]): Promise<void> => {
      if (store.isAway) throw new Error('It is away.')
      await new Promise<void>((resolve) => {
        store.answer = resolve
      })
      written.push([...kept])
    },
  }
  const { isDurable = true } = over
  const keeper = new StoreTwinKeeper({
    clock,
    store,
    isInUse: true,
    isDurable,
    complain: (text) => complaints.push(text),
  })
  return { clock, keeper, store, written, complaints }
}

const rest = async (): Promise<void> => {
  for (let i = 0; i < 20; i++) await Promise.resolve()
}

describe('a keeper of what was learned', () => {
  it('writes one statement at a time, and of each replica only the newest that waits', async () => {
    const { keeper, store, written } = given()
    keeper.keep([keptOf('a', 1)])
    keeper.keep([keptOf('a', 2), keptOf('b', 2)])
    keeper.keep([keptOf('a', 3)])
    expect([keeper.recall('a')?.rows, keeper.writtenCount]).toEqual([3, 0])
    store.answer?.()
    await rest()
    store.answer?.()
    await rest()
    expect(written.map((kept) => kept.map(({ replicaId, memory }) => `${replicaId}${memory.rows}`).toSorted())).toEqual(
      [['a1'], ['a3', 'b2']],
    )
    expect(keeper.writtenCount).toBe(3)
  })

  it('reads what the last process knew, without what is no memory, and prefers what is newer', async () => {
    const stored = [
      { replicaId: 'a', memory: memoryOf(9) },
      { replicaId: 'b', memory: memoryOf(8) },
      { replicaId: 'c', memory: { prior: 'x', decode: [1, 2] } },
      { replicaId: 'd', memory: { ...memoryOf(7), decode: [1, 2, 3, Number.NaN] } },
      { replicaId: 'e', memory: null },
    ]
    const { keeper } = given({ stored })
    keeper.keep([keptOf('b', 100)])
    let readCount = 0
    await keeper.start(() => readCount++)
    expect(readCount).toBe(1)
    expect(['a', 'b', 'c', 'd', 'e'].map((id) => keeper.recall(id)?.rows)).toEqual([
      9,
      100,
      undefined,
      undefined,
      undefined,
    ])
  })

  it('delays nothing while the store is away, complains once, and reads when it is back', async () => {
    const { clock, keeper, store, complaints } = given({ stored: [{ replicaId: 'a', memory: memoryOf(9) }] })
    store.isAway = true
    let readCount = 0
    await keeper.start(() => readCount++)
    keeper.keep([keptOf('b', 1)])
    keeper.keep([keptOf('b', 2)])
    await rest()
    expect([readCount, complaints.length]).toEqual([0, 1])
    expect(complaints[0]).toContain('It is away. It is learned again meanwhile.')
    store.isAway = false
    await clock.run(clock.now() + 30_000_000)
    await rest()
    expect([readCount, keeper.recall('a')?.rows]).toEqual([1, 9])
  })

  it('ends within its time when the store does not answer, and at once when nothing waits', async () => {
    const { clock, keeper, written } = given()
    keeper.keep([keptOf('a', 1)])
    const startedAt = clock.now()
    const closed = keeper.close()
    await clock.run()
    await closed
    expect([clock.now() - startedAt, written]).toEqual([5_000_000, []])
    await given().keeper.close()
  })

  it('writes nothing to a store that forgets, and keeps a bounded number', async () => {
    const { keeper, store, written } = given({ isDurable: false })
    for (let i = 0; i < 5_000; i++) keeper.keep([keptOf(`r${i}`, i + 1)])
    await rest()
    expect([written, store.answer]).toEqual([[], undefined])
    expect([keeper.recall('r0'), keeper.recall('r903'), keeper.recall('r904')?.rows]).toEqual([
      undefined,
      undefined,
      905,
    ])
    await keeper.close()
  })
})
