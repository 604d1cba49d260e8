import { describe, expect, it } from 'vitest'
import { Holdout } from './holdout.ts'

const MINUTE = 60_000_000
const items = [
  { id: 'a', prompt: 'capital?', expected: 'New  York' },
  { id: 'b', prompt: 'number?', pattern: '\\b42\\b' },
]
const make = (over = {}) => new Holdout(items, { perMinute: 6, inFlightMax: 2, outputTokensMax: 8, ...over })

describe('a holdout set', () => {
  it('is asked round and round at its rate, and never more at once than allowed', () => {
    const holdout = make()
    const asked: string[] = []
    for (let now = 0; now < 10 * MINUTE; now += MINUTE / 60) {
      const item = holdout.begin(now)
      if (item === undefined) continue
      asked.push(item.id)
      holdout.ended()
    }
    expect(asked.length).toBe(60)
    expect(asked.slice(0, 4)).toEqual(['a', 'b', 'a', 'b'])
    const busy = make()
    for (let i = 0; i < 5; i++) busy.begin(i * MINUTE)
    expect(busy.inFlight).toBe(2)
  })

  it('catches up with none of what it missed', () => {
    const holdout = make({ inFlightMax: 100 })
    holdout.begin(0)
    let count = 0
    while (holdout.begin(60 * MINUTE) !== undefined) count++
    expect(count).toBeLessThanOrEqual(3)
  })

  it('scores what contains the expected text or matches the pattern', () => {
    const holdout = make()
    const [a, b] = [items[0]!, items[1]!]
    expect(holdout.score(a, 'It is new\nyork, of course.')).toBe(1)
    expect(holdout.score(a, 'It is Boston.')).toBe(0)
    expect(holdout.score(b, 'That makes 42.')).toBe(1)
    expect(holdout.score(b, 'That makes 420.')).toBe(0)
  })

  it('asks nothing when it is empty', () => {
    expect(new Holdout([]).begin(0)).toBeUndefined()
  })
})
