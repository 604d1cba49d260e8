import { LiveClock } from '../base/live-clock.ts'
import { usdText } from '../domain/usd-text.ts'
import type { Command, FlagValues } from './command.ts'
import { TenancyClient } from './http-admin-client.ts'
import { type Forecast, forecastFrom, forecastMonth, outlookOf } from './usage-forecast.ts'
import { ACCESS_FLAGS, FILTER_FLAGS, fetchUsage, nanoOf, type UsageWish } from './usage-rows.ts'
import { numbersToTheRight } from './usage-table.ts'

/** `spillway usage forecast`: the month at the present rate, and whether budgets are enough for it. */
export const usageForecastCommand: Command = {
  name: 'usage forecast',
  summary: 'what the month will have cost at its end, if it goes on as in the last seven days',
  about:
    'Price and cost so far, a day at the rate of the last seven days, and the whole month at that rate. With the key of a\n' +
    'tenant: whether the month’s budgets of the tenant and the key, in money, are enough for it.',
  flags: { ...FILTER_FLAGS, ...ACCESS_FLAGS },
  examples: ['spillway usage forecast', 'spillway usage forecast --org acme --json'],
  async run(flags, io) {
    const nowMs = new LiveClock().now() / 1_000
    const client = new TenancyClient(flags)
    const ask = { by: ['day'], from: forecastFrom(nowMs) }
    const { rows } = await fetchUsage(flags, ask, client)
    const of = (name: 'price_usd' | 'cost_usd') =>
      forecastMonth(
        rows.map((row) => ({ day: row.day ?? '', nano: nanoOf(row[name]) })),
        nowMs,
      )
    const told = { price: shownForecast(of('price_usd')), cost: shownForecast(of('cost_usd')) }
    const budgets = client.isOfTenant ? await budgetsAhead(flags, ask, client, nowMs) : []
    if (flags['json'] === true) io.out(JSON.stringify({ ...told, budgets }))
    else io.out([tableOf(told), ...budgets.map(tellBudget)].join('\n'))
    return 0
  },
}

type ShownForecast = ReturnType<typeof shownForecast>

const shownForecast = ({ spentNano, restNano, totalNano, perDayNano }: Forecast) => ({
  spent_usd: usdText(spentNano),
  per_day_usd: usdText(perDayNano),
  rest_usd: usdText(restNano),
  month_usd: usdText(totalNano),
})

function tableOf(told: Readonly<Record<'price' | 'cost', ShownForecast>>): string {
  const lines = Object.entries(told).map(([name, one]) => [
    name,
    one.spent_usd,
    one.per_day_usd,
    one.rest_usd,
    one.month_usd,
  ])
  return numbersToTheRight([['', 'SO FAR $', 'A DAY $', 'REST OF THE MONTH $', 'MONTH $'], ...lines], 1)
}

/** What `GET /v1/spillway/me` tells of budgets. */
interface Standing {
  readonly tenant: string
  readonly key: { readonly id: string }
  readonly budgets: ReadonlyArray<{
    readonly scope: string
    readonly budgets?: ReadonlyArray<{
      readonly period: string
      readonly kind: string
      readonly model?: string
      readonly usd?: { readonly limit: number }
    }>
  }>
}

interface BudgetAhead {
  readonly scope: string
  readonly model: string | null
  readonly kind: string
  readonly limit_usd: number
  readonly month_usd: string
  readonly share: number
  readonly used_up_at: string | null
}

/** Each budget is one question to the server. */
const BUDGETS_MAX = 20

/** Those of the calendar's month, of the tenant and of the key itself: what these used, the key may see. */
async function budgetsAhead(
  flags: FlagValues,
  ask: UsageWish,
  client: TenancyClient,
  nowMs: number,
): Promise<readonly BudgetAhead[]> {
  const me = await client.call<Standing>('GET', '/me')
  const monthly = me.budgets.flatMap(({ scope, budgets = [] }) =>
    scope === 'tenant' || scope === 'key'
      ? budgets.filter(({ period, usd }) => period === 'month' && usd !== undefined).map((one) => ({ scope, ...one }))
      : [],
  )
  const ahead: BudgetAhead[] = []
  for (const { scope, kind, model, usd } of monthly.slice(0, BUDGETS_MAX)) {
    const only = {
      tenant: me.tenant,
      ...(scope === 'key' && { key: me.key.id }),
      ...(model !== undefined && { model }),
    }
    const { rows } = await fetchUsage({ ...flags, org: undefined }, { ...ask, only }, client)
    const forecast = forecastMonth(
      rows.map((row) => ({ day: row.day ?? '', nano: nanoOf(row.price_usd) })),
      nowMs,
    )
    const limit = usd?.limit ?? 0
    const { share, usedUpAtMs } = outlookOf(forecast, BigInt(Math.round(limit * 1e9)), nowMs)
    ahead.push({
      scope,
      model: model ?? null,
      kind,
      limit_usd: limit,
      month_usd: usdText(forecast.totalNano),
      share,
      used_up_at: usedUpAtMs === undefined ? null : new Date(usedUpAtMs).toISOString(),
    })
  }
  return ahead
}

function tellBudget({ scope, model, kind, limit_usd, month_usd, share, used_up_at }: BudgetAhead): string {
  const name = `${kind} budget of the ${scope}${model === null ? '' : ` for ${model}`}`
  const end = used_up_at === null ? 'enough' : `used up on ${used_up_at.slice(0, 16)}Z`
  return `${name}: $${limit_usd} a month, ${(share * 100).toFixed(0)} % of it at this rate ($${month_usd}): ${end}`
}
