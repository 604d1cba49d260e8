// What the month will have cost at its end, if it goes on as in the last seven days: as `spillway usage forecast` says
// it (src/cli/usage-forecast.ts), in dollars.
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const WINDOW_DAYS = 7

const monthOf = (nowMs, ahead = 0) => {
  const now = new Date(nowMs)
  return Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead, 1)
}
const windowOf = (nowMs) => Math.floor(nowMs / DAY_MS) * DAY_MS - (WINDOW_DAYS - 1) * DAY_MS

/** The day from which the forecast has to know. */
export const forecastFrom = (nowMs) => new Date(Math.min(monthOf(nowMs), windowOf(nowMs))).toISOString().slice(0, 10)

/** `days` are `{ day: '2026-11-16', usd }`. */
export function forecastOf(days, nowMs) {
  const dated = days
    .map(({ day, usd }) => ({ atMs: Date.parse(`${day}T00:00:00Z`), usd }))
    .filter(({ atMs }) => atMs <= nowMs)
  const within = (fromMs) => dated.reduce((sum, { atMs, usd }) => (atMs >= fromMs ? sum + usd : sum), 0)
  const used = dated.filter(({ usd }) => usd !== 0).map(({ atMs }) => atMs)
  const firstMs = Math.max(windowOf(nowMs), Math.min(nowMs, ...used))
  const perMs = within(firstMs) / Math.max(HOUR_MS, nowMs - firstMs)
  const spent = within(monthOf(nowMs))
  const rest = perMs * (monthOf(nowMs, 1) - nowMs)
  return { spent, perDay: perMs * DAY_MS, rest, month: spent + rest }
}

/** Is a month's budget enough? When it is used up at this rate; undefined: not in this month. */
export function usedUpAtMs({ spent, month, perDay }, limit, nowMs) {
  if (month < limit) return undefined
  return limit <= spent || perDay === 0 ? nowMs : nowMs + ((limit - spent) / perDay) * DAY_MS
}
