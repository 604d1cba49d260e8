import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../../base/clock.ts'
import { CONDUCT_DEFAULTS, KeyConducts, SIGNATURE_LANES } from './key-conduct.ts'

const S = secondsToUs(1)

describe('repeated blocks', () => {
  it('pause a key from the fifth on, twice as long each time, up to a bound', () => {
    const conducts = new KeyConducts()
    const notices = Array.from({ length: 14 }, (_, i) => conducts.observeBlock(i * 1_000, 'k', true))
    expect(notices.slice(0, 4)).toEqual([undefined, undefined, undefined, undefined])
    expect(notices[4]).toEqual({ abuse: 'blocks', response: 'slowed', count: 5, pauseUs: 5 * S })
    const pauses = notices.slice(4).map((notice) => notice!.pauseUs / S)
    expect(pauses).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600, 600])
    expect(notices[8]?.response).toBe('paused')
  })

  it('are forgotten with time', () => {
    const conducts = new KeyConducts()
    for (let i = 0; i < 100; i++) expect(conducts.observeBlock(i * 31 * S, 'k', true)).toBeUndefined()
    expect(conducts.pauseUs(100 * 31 * S, 'k')).toBe(0)
  })

  it('end their pause by themselves', () => {
    const conducts = new KeyConducts({ ...CONDUCT_DEFAULTS, blocksMax: 1 })
    conducts.observeBlock(0, 'k', true)
    expect(conducts.pauseUs(S, 'k')).toBe(4 * S)
    expect(conducts.pauseUs(5 * S, 'k')).toBe(0)
    expect(conducts.pauseUs(0, 'other')).toBe(0)
  })

  it('are only told where the tenant wants no more', () => {
    const conducts = new KeyConducts({ ...CONDUCT_DEFAULTS, blocksMax: 1 })
    expect(conducts.observeBlock(0, 'k', false)).toEqual({ abuse: 'blocks', response: 'told', count: 1, pauseUs: 0 })
    expect(conducts.pauseUs(0, 'k')).toBe(0)
  })

  it('never pause for longer than the bound, whatever comes when', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 60 * S }), { maxLength: 100 }), (gaps) => {
        const conducts = new KeyConducts()
        let now = 0
        for (const gap of gaps) {
          now += gap
          const notice = conducts.observeBlock(now, 'k', true)
          expect(notice?.pauseUs ?? 0).toBeLessThanOrEqual(CONDUCT_DEFAULTS.pauseUsMax)
          expect(conducts.pauseUs(now, 'k')).toBeLessThanOrEqual(CONDUCT_DEFAULTS.pauseUsMax)
        }
      }),
    )
  })
})

/** Differs from the others of its kind in the last lane alone. */
const alike = (i: number): Uint32Array =>
  Uint32Array.from({ length: SIGNATURE_LANES }, (_, lane) => (lane === 7 ? i : 9))
const unlike = (i: number): Uint32Array => Uint32Array.from({ length: SIGNATURE_LANES }, (_, lane) => i * 100 + lane)

describe('sweeps', () => {
  const sweep = (conducts: KeyConducts, count: number, of = alike, everyUs = S) =>
    Array.from({ length: count }, (_, i) => conducts.observePrompt(i * everyUs, 'k', of(i), true)).filter(Boolean)

  it('are told once, and slow the key down', () => {
    const conducts = new KeyConducts()
    expect(sweep(conducts, 60)).toEqual([{ abuse: 'sweep', response: 'slowed', count: 48, pauseUs: 30 * S }])
    expect(conducts.pauseUs(47 * S, 'k')).toBe(30 * S)
  })

  it('are told again when they go on for another span of that length', () => {
    const conducts = new KeyConducts()
    const { sweepUs } = CONDUCT_DEFAULTS
    const told: number[] = []
    for (let at = 0; at < 3 * sweepUs; at += S)
      if (conducts.observePrompt(at, 'k', alike(at / S), true) !== undefined) told.push(at)
    expect(told).toEqual([47 * S, 47 * S + sweepUs, 47 * S + 2 * sweepUs])
  })

  it.each([
    ['different prompts', unlike, S],
    ['one prompt again and again', () => alike(1), S],
    ['variations over hours', alike, 60 * S],
  ])('are not seen in %s', (_what, of, everyUs) => {
    expect(sweep(new KeyConducts(), 200, of, everyUs)).toEqual([])
  })
})

it('forgets the key that was quiet for longest', () => {
  const conducts = new KeyConducts({ ...CONDUCT_DEFAULTS, blocksMax: 1 }, 3)
  for (const key of ['a', 'b', 'a', 'c', 'd']) conducts.observeBlock(0, key, true)
  expect(conducts.keyCount).toBe(3)
  expect(['a', 'b', 'c', 'd'].map((key) => conducts.pauseUs(0, key) > 0)).toEqual([true, false, true, true])
})
