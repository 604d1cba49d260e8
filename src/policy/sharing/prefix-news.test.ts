import { describe, expect, it } from 'vitest'
import { type PrefixesTold, PrefixNews, readPrefixes, writePrefixes } from './prefix-news.ts'

const REPLICAS = new Set(['a', 'b'])
const from = (gatewayId: string, told: PrefixesTold | undefined) => new Map([[gatewayId, { prefixes: told }]])
const names = (count: number, first = 0): number[] => Array.from({ length: count }, (_, i) => first + i)

describe('what gateways tell each other of prompts', () => {
  it('is heard once, whether a report is read twice or left out', () => {
    const [here, there] = [new PrefixNews(), new PrefixNews()]
    here.placed('a', 10, [1, 2])
    const first = here.tell(REPLICAS)
    expect(there.hear(from('g', first))).toEqual([{ replicaId: 'a', blocks: 0, hashes: [1, 2] }])
    expect(there.hear(from('g', first))).toEqual([])
    here.placed('b', 5, [3])
    here.tell(REPLICAS)
    here.placed('a', 7, [4])
    // The second report was never read: its names are in the third.
    expect(there.hear(from('g', here.tell(REPLICAS)))).toEqual([
      { replicaId: 'a', blocks: 7, hashes: [] },
      { replicaId: 'b', blocks: 0, hashes: [3] },
      { replicaId: 'a', blocks: 0, hashes: [4] },
    ])
  })

  it('has at most 512 names in a report, the newest batch first of all', () => {
    const news = new PrefixNews()
    news.placed('a', 0, names(400))
    news.placed('a', 0, names(400, 1_000))
    const [batch] = news.tell(REPLICAS).batches
    expect(batch?.[1][0]?.[1]).toEqual([...names(400), ...names(112, 1_000)])
    news.placed('b', 0, names(3, 5_000))
    expect(news.tell(REPLICAS).batches.map(([number]) => number)).toEqual([2])
    news.placed('b', 0, names(3, 6_000))
    expect(news.tell(REPLICAS).batches.map(([number]) => number)).toEqual([2, 3])
  })

  it('forgets batches after three exchanges, replicas that have gone, and gateways that have gone', () => {
    const [here, there] = [new PrefixNews(), new PrefixNews()]
    here.placed('a', 10, [1])
    const told = here.tell(REPLICAS)
    there.hear(from('g', told))
    here.tell(REPLICAS)
    expect(here.tell(REPLICAS).batches).toHaveLength(1)
    expect(here.tell(REPLICAS).batches).toHaveLength(0)
    expect(here.tell(new Set(['b'])).given).toEqual([])
    there.hear(new Map())
    expect(there.hear(from('g', told))).toHaveLength(1)
  })

  it('survives the text, and only its own form of it', () => {
    const news = new PrefixNews()
    news.placed('a', 10, [1, 2 ** 40])
    const told = news.tell(REPLICAS)
    const copy = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
    expect(readPrefixes(copy(writePrefixes(told)))).toEqual(told)
    expect(readPrefixes(undefined)).toBeUndefined()
    expect(() => readPrefixes([[], [[1, [['a', [-1]]]]]])).toThrow('whole')
    expect(() => readPrefixes([[], [[1, [['a', names(513)]]]]])).toThrow('too many')
  })
})
