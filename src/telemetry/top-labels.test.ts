import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Rng } from '../base/rng.ts'
import { TopLabels, type TopLabelsOptions } from './top-labels.ts'

const MINUTE = 60_000_000

/** Ten of `id`'s requests a minute for some minutes, each of this volume. */
function send(top: TopLabels, from: number, minutes: number, volumes: Record<string, number>): void {
  for (let tick = 0; tick < minutes * 10; tick++)
    for (const [id, volume] of Object.entries(volumes)) top.observe(from + tick * (MINUTE / 10), id, volume)
}

describe('TopLabels', () => {
  it('names everybody while there is room', () => {
    const top = new TopLabels({ namedMax: 2 })
    expect(['a', 'b', 'c', 'a'].map((id) => top.observe(0, id, 1))).toEqual(['a', 'b', 'other', 'a'])
  })

  it('gives the name to a much busier tenant, after the loser’s time', () => {
    const top = new TopLabels({ namedMax: 2 })
    send(top, 0, 5, { a: 100, b: 10, c: 50 })
    expect(top.observe(5 * MINUTE, 'c', 50)).toBe('other')
    send(top, 5 * MINUTE, 10, { a: 100, b: 10, c: 50 })
    expect(top.observe(15 * MINUTE, 'c', 50)).toBe('c')
    expect(top.observe(15 * MINUTE, 'b', 10)).toBe('other')
  })

  it('does not trade a name between tenants of about the same size', () => {
    const top = new TopLabels({ namedMax: 1 })
    send(top, 0, 120, { a: 10, b: 15 })
    expect(top.labels()).toEqual(['a'])
  })

  it('lets a lost name linger, then has it forgotten', () => {
    const forgotten: string[] = []
    const top = new TopLabels({ namedMax: 2, onForget: (label) => forgotten.push(label) })
    send(top, 0, 1, { a: 100, b: 10 })
    send(top, MINUTE, 12, { a: 100, c: 50 })
    expect(top.labels().toSorted((a, b) => a.localeCompare(b))).toEqual(['a', 'b', 'c'])
    expect(forgotten).toEqual([])
    send(top, 13 * MINUTE, 12, { a: 100, c: 50 })
    expect(forgotten).toEqual(['b'])
    expect(top.labels()).not.toContain('b')
  })

  it('finds the busy ones in a crowd of strangers', () => {
    const forgotten: string[] = []
    const top = new TopLabels({
      namedMax: 5,
      dwellUs: MINUTE,
      graceUs: MINUTE,
      onForget: (label) => forgotten.push(label),
    })
    const rng = Rng.stream(7, 'crowd')
    for (let i = 0; i < 40_000; i++) {
      top.observe(i * 10_000, `stranger-${rng.below(5_000)}`, 1)
      if (i % 10 === 0) top.observe(i * 10_000, `big-${rng.below(5)}`, 10)
    }
    const named = new Set(Array.from({ length: 5 }, (_, i) => top.observe(40_000 * 10_000, `big-${i}`, 1)))
    expect(named).toEqual(new Set(['big-0', 'big-1', 'big-2', 'big-3', 'big-4']))
    expect(forgotten.filter((label) => label.startsWith('big'))).toEqual([])
  })

  it('gives no name for a volume that was inherited', () => {
    const top = new TopLabels({ namedMax: 1 })
    for (let i = 0; i < 20_000; i++) {
      if (i % 100 === 0) top.observe(i * 60_000, 'steady', 10)
      top.observe(i * 60_000, `seen-once-${i}`, 100)
    }
    expect(top.labels()).toEqual(['steady'])
  })

  it('never names a tenant `other`', () => {
    const top = new TopLabels({ namedMax: 3 })
    expect(top.observe(0, 'other', 1_000)).toBe('other')
    expect(top.labels()).toEqual([])
  })
})

describe('TopLabels, whatever comes', () => {
  const observation = fc.record({
    gapUs: fc.integer({ min: 0, max: 3 * MINUTE }),
    id: fc.integer({ min: 0, max: 30 }).map((i) => `t${i}`),
    volume: fc.integer({ min: 0, max: 1_000 }),
  })
  const observations = fc.array(observation, { maxLength: 400 })
  const namedMax = fc.integer({ min: 1, max: 6 })

  function run(events: readonly { gapUs: number; id: string; volume: number }[], options: TopLabelsOptions) {
    const top = new TopLabels(options)
    let at = 0
    return events.map(({ gapUs, id, volume }) => {
      at += gapUs
      return { at, id, label: top.observe(at, id, volume), labels: top.labels() }
    })
  }

  it('keeps within the bound, and answers only with the own name or `other`', () =>
    fc.assert(
      fc.property(observations, namedMax, (events, max) => {
        for (const { id, label, labels } of run(events, { namedMax: max })) {
          expect([id, 'other']).toContain(label)
          expect(labels.length).toBeLessThanOrEqual(max + Math.ceil(max / 2))
        }
      }),
    ))

  it('gives the same labels to the same entries', () =>
    fc.assert(
      fc.property(observations, namedMax, (events, max) => {
        expect(run(events, { namedMax: max })).toEqual(run(events, { namedMax: max }))
      }),
    ))

  it('does not take a name back before its time', () =>
    fc.assert(
      fc.property(observations, namedMax, (events, max) => {
        const namedSince = new Map<string, number>()
        for (const { at, id, label } of run(events, { namedMax: max, dwellUs: 10 * MINUTE })) {
          const since = namedSince.get(id)
          if (label === id) namedSince.set(id, since ?? at)
          else namedSince.delete(id)
          // Named when first seen as such or a review before: a minute's grace for what this test cannot see.
          expect(label === id || since === undefined || at - since >= 9 * MINUTE).toBe(true)
        }
      }),
    ))
})
