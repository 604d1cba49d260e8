import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../backends/discovery.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { PoolDiscovery } from './pool-discovery.ts'

const endpoint = (id: string, state: Endpoint['state'] = 'ready'): Endpoint => ({ id, url: `http://${id}`, state })

function given() {
  const clock = new VirtualClock()
  const told: string[] = []
  const away = new Set<string>()
  let say: (list: readonly Endpoint[]) => void = () => {}
  let isWatched = true
  const discovery = {
    watch(onList: (list: readonly Endpoint[]) => void) {
      say = onList
      return () => {
        isWatched = false
      }
    },
  }
  const watch = new PoolDiscovery(clock, discovery, {
    add: ({ id }) => void told.push(`add ${id}`),
    drain: (id) => void told.push(`drain ${id}`),
    undrain: (id) => void told.push(`undrain ${id}`),
    remove: (id) => void told.push(`remove ${id}`),
    isAway: (id) => away.has(id),
  })
  const heard = (): string[] => told.splice(0)
  return { clock, watch, away, heard, say: (...list: Endpoint[]) => say(list), isWatched: () => isWatched }
}

describe('a pool that is discovered', () => {
  it('follows who comes, who goes and who is terminating', () => {
    const { say, heard } = given()
    say(endpoint('a'), endpoint('b', 'draining'))
    expect(heard()).toEqual(['add a', 'add b', 'drain b'])
    say(endpoint('a', 'draining'), endpoint('b'), endpoint('c'))
    expect(heard()).toEqual(['add c', 'drain a', 'undrain b'])
    say(endpoint('c'))
    expect(heard()).toEqual(['remove a', 'remove b'])
  })

  it('lets go on an empty list only who does not answer either, and looks again', async () => {
    const { clock, say, heard, away } = given()
    say(endpoint('a'), endpoint('b'))
    heard()
    away.add('a')
    say()
    expect(heard()).toEqual(['remove a'])
    await clock.run(2_500_000)
    expect(heard()).toEqual([])
    away.add('b')
    await clock.run(4_000_000)
    expect(heard()).toEqual(['remove b'])
  })

  it('forgets its suspicion when a list comes', async () => {
    const { clock, say, heard, away } = given()
    say(endpoint('a'))
    say()
    say(endpoint('a'), endpoint('b'))
    away.add('a')
    await clock.run(10_000_000)
    expect(heard()).toEqual(['add a', 'add b'])
  })

  it('waits for the first list, and not for ever', async () => {
    const { clock, watch, say } = given()
    let isOver = false
    void watch.first(3_000_000).then(() => {
      isOver = true
    })
    await clock.run(2_000_000)
    expect(isOver).toBe(false)
    await clock.run(4_000_000)
    expect(isOver).toBe(true)
    say()
    await watch.first(3_000_000)
  })

  it('takes as many as a pool may have', () => {
    const { say, heard } = given()
    say(...Array.from({ length: 5_000 }, (_, i) => endpoint(`e${i}`)))
    expect(heard()).toHaveLength(1_000)
  })

  it('hears nothing after it was stopped', () => {
    const { watch, say, heard, isWatched } = given()
    watch.stop()
    say(endpoint('a'))
    expect(heard()).toEqual([])
    expect(isWatched()).toBe(false)
  })
})
