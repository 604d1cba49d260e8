import { expect, it } from 'vitest'
import { joinedLines } from '../../test/support/joined-lines.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { LineSharing, offerSharing } from './line-sharing.ts'
import { MemorySharing } from './memory-sharing.ts'

const member = (id: string) => ({ id, epoch: '', told: 0, ttlMs: 1_000, forgetMs: 600_000 })

it('answers as the store behind it, and says who asked', async () => {
  const clock = new VirtualClock()
  const [here, there] = joinedLines(clock)
  const store = new MemorySharing(clock)
  const seen = new Set<string>()
  offerSharing(there, store, (id) => seen.add(id))
  const asked = new LineSharing(here)
  const direct = new MemorySharing(clock)
  for (const id of ['a', 'b', 'a']) {
    expect(await asked.take(3, member(id), [])).toEqual(await direct.take(3, member(id), []))
  }
  expect([...seen]).toEqual(['a', 'b'])
  await asked.leave('a')
  await direct.leave('a')
  expect(await asked.take(3, member('b'), [])).toEqual(await direct.take(3, member('b'), []))
  expect([await asked.salt('first'), await asked.salt('second')]).toEqual(['first', 'first'])
  const told = { topic: 'pool', text: 'x' }
  expect(await asked.room(member('b'), told, [])).toEqual(await direct.room(member('b'), told, []))
})

it('sends the calls of one moment as one message, and gives each its own answer', async () => {
  const clock = new VirtualClock()
  const [here, there] = joinedLines(clock)
  const store = new MemorySharing(clock)
  let messageCount = 0
  offerSharing(there, store, () => {})
  const asked = new LineSharing(here)
  const ask = here.ask.bind(here)
  here.ask = (...call) => {
    messageCount++
    return ask(...call)
  }
  const direct = new MemorySharing(clock)
  const shards = [0, 1, 2, 3, 4]
  const answers = await Promise.all(shards.map((shard) => asked.take(shard, member(`g${shard % 2}`), [])))
  expect(answers).toEqual(await Promise.all(shards.map((shard) => direct.take(shard, member(`g${shard % 2}`), []))))
  expect(messageCount).toBe(1)
  await asked.take(0, member('g0'), [])
  expect(messageCount).toBe(2)
})

it('has no answer when the other end is silent or gone', async () => {
  const clock = new VirtualClock()
  const [here, there] = joinedLines(clock)
  there.on('sharing-take', () => new Promise(() => {}))
  const asked = new LineSharing(here)
  const answer = asked.take(0, member('a'), [])
  await clock.run(3_000_000)
  expect(await answer).toBeUndefined()
  here.close('gone')
  expect(await asked.room(member('a'), { topic: 't', text: '' }, [])).toBeUndefined()
  expect(await asked.salt('own')).toBeUndefined()
  await asked.leave('a')
})
