import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { periodOf, US_PER_DAY } from './calendar.ts'
import { Quota } from './quota.ts'

const at = (iso: string): number => Date.parse(iso) * 1_000

describe('calendar', () => {
  it('knows days and months as the calendar does', () => {
    fc.assert(
      fc.property(fc.integer({ min: -55_000_000_000, max: 250_000_000_000 }), (seconds) => {
        const now = seconds * 1_000_000
        const date = new Date(seconds * 1_000)
        const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
        expect(periodOf(now, 'month')).toEqual({
          startsAt: Date.UTC(year, month, 1) * 1_000,
          endsAt: Date.UTC(year, month + 1, 1) * 1_000,
        })
        const day = periodOf(now, 'day')
        expect(day.startsAt <= now && now < day.endsAt && day.endsAt - day.startsAt === US_PER_DAY).toBe(true)
      }),
    )
  })

  it.each([
    ['2024-02-29T23:59:59.999Z', '2024-02-01T00:00:00Z', '2024-03-01T00:00:00Z'],
    ['2023-12-31T12:00:00Z', '2023-12-01T00:00:00Z', '2024-01-01T00:00:00Z'],
    ['2100-02-28T12:00:00Z', '2100-02-01T00:00:00Z', '2100-03-01T00:00:00Z'],
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00Z', '1970-02-01T00:00:00Z'],
  ])('puts %s into its month', (now, startsAt, endsAt) => {
    expect(periodOf(at(now), 'month')).toEqual({ startsAt: at(startsAt), endsAt: at(endsAt) })
  })
})

describe('quota', () => {
  const monthly = { period: 'month', tokensMax: 1_000 } as const
  const on30th = at('2026-06-30T12:00:00Z')
  const on1st = at('2026-07-01T00:00:00Z')

  it('refuses until the first of the month what does not fit, and for ever what never will', () => {
    const quota = new Quota(on30th, monthly)
    quota.take(on30th, 900)
    expect(quota.fitsAt(on30th, 100)).toBe(on30th)
    expect(quota.fitsAt(on30th, 101)).toBe(on1st)
    expect(quota.fitsAt(on30th, 1_001)).toBeUndefined()
    expect(quota.view(on1st).remaining).toBe(1_000)
  })

  it('settles in the period it was taken in, and leaves the next one alone', () => {
    const quota = new Quota(on30th, monthly)
    quota.settle(on30th, quota.take(on30th, 500), 300)
    expect(quota.view(on30th).remaining).toBe(700)
    const late = quota.take(on30th, 500)
    quota.settle(on1st, late, 400)
    expect(quota.view(on1st).remaining).toBe(1_000)
  })

  it('keeps what was used when the amount changes, and is restored from the ledger', () => {
    const quota = new Quota(on30th, monthly)
    quota.restore(on30th, 800)
    quota.retune(on30th, { period: 'month', tokensMax: 2_000 })
    expect(quota.view(on30th)).toMatchObject({ remaining: 1_200, resetUs: on1st - on30th })
    quota.retune(on30th, { period: 'day', tokensMax: 100 })
    expect(quota.view(on30th).remaining).toBe(100)
  })
})
