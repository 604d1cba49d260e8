// Budgets of orgs and tenants beside what the month will have taken of them, for operators.
import { call } from './api.js'
import { forecastFrom, forecastOf, usedUpAtMs } from './forecast.js'

const NANO_PER_USD = 1e9
/** Records that are read of each level, and budgets that are shown: the fullest. */
const RECORDS_MAX = 1_000
const SHOWN_MAX = 20

/** Budgets of the whole org or tenant, in money, by month. */
const monthly = (record) =>
  (record.terms?.allowance?.budgets ?? []).filter(
    ({ period, nanoMax, model, isPerUser }) =>
      period === 'month' && nanoMax !== undefined && model === undefined && !isPerUser,
  )

async function budgetsAt(level) {
  const [records, usage] = await Promise.all([
    call(`/api/admin/v1/${level}s?limit=${RECORDS_MAX}`),
    call(`/api/admin/v1/usage?by=${level}&limit=10000`),
  ])
  const spent = new Map(usage.data.map((row) => [row[level], Number(row.price_usd)]))
  const budgets = records.data.flatMap((record) =>
    monthly(record).map(({ nanoMax, isHard }) => ({
      level,
      id: record.id,
      limit: nanoMax / NANO_PER_USD,
      kind: isHard ? 'hard' : 'soft',
      spent: spent.get(record.id) ?? 0,
    })),
  )
  return { budgets, hasMore: records.has_more }
}

/** The fullest budgets with their forecasts, and whether some may be missing. */
export async function budgetsAhead(nowMs) {
  const levels = await Promise.all(['org', 'tenant'].map(budgetsAt))
  const all = levels.flatMap(({ budgets }) => budgets).sort((a, b) => b.spent / b.limit - a.spent / a.limit)
  const rows = await Promise.all(all.slice(0, SHOWN_MAX).map((budget) => lookAhead(budget, nowMs)))
  return { rows, left: all.length - rows.length, hasMore: levels.some(({ hasMore }) => hasMore) }
}

async function lookAhead(budget, nowMs) {
  const only = `${budget.level}=${encodeURIComponent(budget.id)}`
  const { data } = await call(`/api/admin/v1/usage?by=day&from=${forecastFrom(nowMs)}&${only}`)
  const days = data.map((row) => ({ day: row.day, usd: Number(row.price_usd) }))
  const forecast = forecastOf(days, nowMs)
  return { ...budget, spent: forecast.spent, month: forecast.month, endMs: usedUpAtMs(forecast, budget.limit, nowMs) }
}
