import { expect, it } from 'vitest'
import { OneAtATime } from './one-at-a-time.ts'

it('runs one after the other, in order, and a failure stops nobody else', async () => {
  const queue = new OneAtATime()
  const order: string[] = []
  const step = (name: string, isBad = false) =>
    queue.run(async () => {
      order.push(`${name} begins`)
      await Promise.resolve()
      order.push(`${name} ends`)
      if (isBad) throw new Error(name)
      return name
    })
  const all = Promise.allSettled([step('a'), step('b', true), step('c')])
  expect(queue.count).toBe(3)
  expect((await all).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  expect(queue.count).toBe(0)
  await queue.idle()
})
