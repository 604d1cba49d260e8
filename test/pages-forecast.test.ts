import { expect, it } from 'vitest'
// @ts-expect-error The page's own code has no types.
import { forecastFrom, forecastOf, usedUpAtMs } from '../pages/forecast.js'
import { Rng } from '../src/base/rng.ts'
import { forecastMonth, outlookOf, forecastFrom as wantedFrom } from '../src/cli/usage-forecast.ts'

interface Forecast {
  readonly spent: number
  readonly perDay: number
  readonly rest: number
  readonly month: number
}
const page = {
  from: forecastFrom as (nowMs: number) => string,
  forecast: forecastOf as (days: readonly { day: string; usd: number }[], nowMs: number) => Forecast,
  usedUp: usedUpAtMs as (forecast: Forecast, limit: number, nowMs: number) => number | undefined,
}

it('the console forecasts a month as the command does', () => {
  const rng = Rng.stream(7, 'forecast')
  let [enough, notEnough] = [0, 0]
  for (let trial = 0; trial < 200; trial++) {
    const nowMs = Date.UTC(2026, trial % 12, 1 + Math.floor(rng.next() * 28), 0, Math.floor(rng.next() * 1_440))
    const count = Math.floor(rng.next() * 30)
    const days = Array.from({ length: count }, (_, i) => ({
      day: new Date(nowMs - i * 86_400_000).toISOString().slice(0, 10),
      usd: Math.round(rng.next() * 1e4) / 100,
    }))
    const wanted = forecastMonth(
      days.map(({ day, usd }) => ({ day, nano: BigInt(Math.round(usd * 1e9)) })),
      nowMs,
    )
    const shown = page.forecast(days, nowMs)
    expect(page.from(nowMs)).toBe(wantedFrom(nowMs))
    expect(shown.spent).toBeCloseTo(Number(wanted.spentNano) / 1e9, 5)
    expect(shown.perDay).toBeCloseTo(Number(wanted.perDayNano) / 1e9, 5)
    expect(shown.month).toBeCloseTo(Number(wanted.totalNano) / 1e9, 5)
    const limit = 1 + Math.round(rng.next() * 2_000)
    const { usedUpAtMs: end } = outlookOf(wanted, BigInt(limit) * 1_000_000_000n, nowMs)
    const shownEnd = page.usedUp(shown, limit, nowMs)
    if (end === undefined) {
      enough++
      expect(shownEnd).toBeUndefined()
    } else {
      notEnough++
      expect(Math.abs(shownEnd! - end)).toBeLessThan(1_000)
    }
  }
  expect(Math.min(enough, notEnough)).toBeGreaterThan(20)
})
