/**
 * What will the month have cost at its end, if it goes on as in the last seven days? What was used so far, and for the
 * rest of the month the mean of the hours before. A use that began less than seven days ago is averaged from its first
 * day on, and one that began just now over an hour at least. Money is nano-dollars.
 */
export interface DaySpend {
  /** As `2026-11-16`, in UTC. */
  readonly day: string
  readonly nano: bigint
}

export interface Forecast {
  readonly spentNano: bigint
  /** By the run rate, until the month is over. */
  readonly restNano: bigint
  readonly totalNano: bigint
  readonly perDayNano: bigint
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const WINDOW_DAYS = 7

export function forecastMonth(days: readonly DaySpend[], nowMs: number): Forecast {
  const now = new Date(nowMs)
  const monthMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)
  const endMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
  const todayMs = Math.floor(nowMs / DAY_MS) * DAY_MS
  const dated = days.map(({ day, nano }) => ({ atMs: Date.parse(`${day}T00:00:00Z`), nano }))
  const within = (fromMs: number): bigint =>
    dated.reduce((sum, { atMs, nano }) => (atMs >= fromMs && atMs <= nowMs ? sum + nano : sum), 0n)
  const used = dated.filter(({ nano, atMs }) => nano !== 0n && atMs <= nowMs).map(({ atMs }) => atMs)
  const firstMs = Math.max(todayMs - (WINDOW_DAYS - 1) * DAY_MS, Math.min(nowMs, ...used))
  const seenMs = BigInt(Math.max(HOUR_MS, Math.round(nowMs - firstMs)))
  const recent = within(firstMs)
  const rateOver = (ms: number): bigint => (recent * BigInt(Math.max(0, Math.round(ms)))) / seenMs
  const spentNano = within(monthMs)
  const restNano = rateOver(endMs - nowMs)
  return { spentNano, restNano, totalNano: spentNano + restNano, perDayNano: rateOver(DAY_MS) }
}

/** The day from which a forecast has to know: the month's first, or the window's if that is earlier. */
export function forecastFrom(nowMs: number): string {
  const now = new Date(nowMs)
  const monthMs = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1)
  const windowMs = Math.floor(nowMs / DAY_MS) * DAY_MS - (WINDOW_DAYS - 1) * DAY_MS
  return new Date(Math.min(monthMs, windowMs)).toISOString().slice(0, 10)
}

export interface BudgetOutlook {
  /** What the month will have taken of the budget; 1 is all of it. */
  readonly share: number
  /** When it is used up at this rate; undefined: not in this month. */
  readonly usedUpAtMs: number | undefined
}

/** Is a month's budget enough? */
export function outlookOf(
  { spentNano, totalNano, perDayNano }: Forecast,
  limitNano: bigint,
  nowMs: number,
): BudgetOutlook {
  const share = limitNano === 0n ? 1 : Number((totalNano * 10_000n) / limitNano) / 10_000
  if (totalNano < limitNano) return { share, usedUpAtMs: undefined }
  const left = limitNano - spentNano
  if (left <= 0n || perDayNano === 0n) return { share, usedUpAtMs: nowMs }
  return { share, usedUpAtMs: nowMs + Number((left * BigInt(DAY_MS)) / perDayNano) }
}
