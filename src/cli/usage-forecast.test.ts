import { describe, expect, it } from 'vitest'
import { forecastFrom, forecastMonth, outlookOf } from './usage-forecast.ts'

const at = (text: string): number => Date.parse(text)
const days = (from: number, to: number, nano: bigint) =>
  Array.from({ length: to - from + 1 }, (_, i) => ({ day: `2026-11-${String(from + i).padStart(2, '0')}`, nano }))

describe('a forecast', () => {
  it('goes on as the last seven days did', () => {
    const told = forecastMonth(days(1, 15, 100n), at('2026-11-16T00:00:00Z'))
    // Six whole days of the window have passed; today has just begun.
    expect(told).toEqual({ spentNano: 1_500n, restNano: 1_500n, totalNano: 3_000n, perDayNano: 100n })
  })

  it('forgets what was before the window', () => {
    const told = forecastMonth([...days(1, 5, 1_000n), ...days(10, 15, 100n)], at('2026-11-16T00:00:00Z'))
    expect([told.spentNano, told.perDayNano]).toEqual([5_600n, 100n])
  })

  it('averages a use that began lately from its first day on, and one of this hour over an hour', () => {
    expect(forecastMonth(days(15, 15, 240n), at('2026-11-16T00:00:00Z')).perDayNano).toBe(240n)
    const now = forecastMonth([{ day: '2026-11-16', nano: 10n }], at('2026-11-16T00:00:01Z'))
    expect(now.perDayNano).toBe(240n)
  })

  it('counts days of the month before for the rate only', () => {
    const told = forecastMonth([{ day: '2026-10-31', nano: 70n }], at('2026-11-01T00:00:00Z'))
    expect([told.spentNano, told.perDayNano]).toEqual([0n, 70n])
    expect(forecastFrom(at('2026-11-01T00:00:00Z'))).toBe('2026-10-26')
    expect(forecastFrom(at('2026-11-16T05:00:00Z'))).toBe('2026-11-01')
  })

  it('says whether a budget is enough, and when it is not', () => {
    const nowMs = at('2026-11-16T00:00:00Z')
    const told = forecastMonth(days(1, 15, 100n), nowMs)
    expect(outlookOf(told, 4_000n, nowMs)).toEqual({ share: 0.75, usedUpAtMs: undefined })
    expect(outlookOf(told, 2_000n, nowMs)).toEqual({ share: 1.5, usedUpAtMs: at('2026-11-21T00:00:00Z') })
    expect(outlookOf(told, 1_000n, nowMs)).toEqual({ share: 3, usedUpAtMs: nowMs })
  })

  it('is nothing where nothing was used, and nothing more when the month is over', () => {
    expect(forecastMonth([], at('2026-11-16T00:00:00Z')).totalNano).toBe(0n)
    expect(forecastMonth(days(24, 30, 10n), at('2026-11-30T23:59:59.999Z')).restNano).toBe(0n)
  })
})
