import type { Instant } from '../../base/clock.ts'

/**
 * In which calendar day or month is this instant, and when does it end? UTC, from microseconds since the epoch, with
 * whole-number arithmetic (Howard Hinnant's civil-from-days): no time zone data, no clock, the same on every machine.
 * The year is counted from 1 March, so that the leap day is its last and month lengths follow one linear formula.
 */
export type Period = 'day' | 'month'

export const US_PER_DAY = 86_400_000_000
const DAYS_PER_ERA = 146_097
/** Days from 0000-03-01 to 1970-01-01. */
const EPOCH_SHIFT_DAYS = 719_468

export interface PeriodBounds {
  readonly startsAt: Instant
  readonly endsAt: Instant
}

export function periodOf(now: Instant, period: Period): PeriodBounds {
  const day = Math.floor(now / US_PER_DAY)
  if (period === 'day') return { startsAt: day * US_PER_DAY, endsAt: (day + 1) * US_PER_DAY }
  const { year, month } = monthOf(day)
  const next = month === 12 ? { year: year + 1, month: 1 } : { year, month: month + 1 }
  return { startsAt: firstDayOf(year, month) * US_PER_DAY, endsAt: firstDayOf(next.year, next.month) * US_PER_DAY }
}

function monthOf(epochDay: number): { year: number; month: number } {
  const shifted = epochDay + EPOCH_SHIFT_DAYS
  const era = Math.floor(shifted / DAYS_PER_ERA)
  const dayOfEra = shifted - era * DAYS_PER_ERA
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  )
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month }
}

function firstDayOf(year: number, month: number): number {
  const marchYear = month <= 2 ? year - 1 : year
  const era = Math.floor(marchYear / 400)
  const yearOfEra = marchYear - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5)
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * DAYS_PER_ERA + dayOfEra - EPOCH_SHIFT_DAYS
}
