// Money: who used what, and what it cost.
import { call } from './api.js'
import { budgetsAhead } from './budgets.js'
import { saveCsv } from './csv.js'
import { forecastFrom, forecastOf, usedUpAtMs } from './forecast.js'
import { Component } from './vendor/preact.js'
import { column, count, html, numbers, Table } from './view.js'

const CHOICES = ['org', 'tenant', 'key', 'model']
const usd = (text) => `$${Number(text).toFixed(Number(text) < 1 ? 4 : 2)}`

const USAGE_HEADS = ['requests', 'input_tokens', 'cached_tokens', 'output_tokens', 'price_usd', 'cost_usd']

/** Budgets of the whole tenant in money, by month. */
const budgetsOf = (me) =>
  (me?.budgets ?? [])
    .filter(({ scope }) => scope === 'tenant')
    .flatMap(({ budgets = [] }) => budgets)
    .filter(({ period, usd: money, model }) => period === 'month' && money && model === undefined)

function Ahead({ nowMs, price, cost, budgets }) {
  const row = (name, { spent, perDay, rest, month }) => [name, usd(spent), usd(perDay), usd(rest), usd(month)]
  return html`<section><h2>The month ahead</h2>
    <${Table} caption="If it goes on as in the last seven days (UTC)" heads=${[column('of'), ...numbers('so far', 'a day', 'rest of the month', 'month')]}
      rows=${[row('price', price), row('cost', cost)]} />
    ${budgets.map(({ kind, usd: { limit } }) => {
      const end = usedUpAtMs(price, limit, nowMs)
      return html`<p>The ${kind} budget of ${usd(limit)} a month: ${
        end === undefined
          ? html`<span class="good">enough at this rate</span>`
          : html`<span class="bad">used up on ${new Date(end).toLocaleString()} at this rate</span>`
      }.</p>`
    })}
    <p class="quiet">The same by hand: <code>npx spillway usage forecast</code></p>
  </section>`
}

const BUDGET_HEADS = ['level', 'id', 'kind', 'limit_usd', 'spent_usd', 'month_usd', 'used_up_at']
const budgetCells = ({ level, id, kind, limit, spent, month, endMs }) => ({
  level,
  id,
  kind,
  limit_usd: limit.toFixed(6),
  spent_usd: spent.toFixed(6),
  month_usd: month.toFixed(6),
  used_up_at: endMs === undefined ? '' : new Date(endMs).toISOString(),
})

/** Is a month's budget enough, in words. */
const outlook = (endMs, nowMs) => {
  if (endMs === undefined) return html`<span class="good">enough at this rate</span>`
  const when = endMs <= nowMs ? 'used up' : `used up on ${new Date(endMs).toLocaleDateString()}`
  return html`<span class="bad">${when}</span>`
}

/** Budgets of orgs and tenants against the forecast. */
function Budgets({ nowMs, rows, left, hasMore }) {
  const more = [
    left > 0 ? `${left} more are less full` : '',
    hasMore ? 'the first 1,000 orgs and tenants were looked at' : '',
  ].filter(Boolean)
  return html`<section><h2>Budgets of the month</h2>
    <p><button onClick=${() => saveCsv('spillway-budgets.csv', BUDGET_HEADS, rows.map(budgetCells))} disabled=${rows.length === 0}>Save budgets as CSV</button></p>
    <${Table} caption=${`In money, at list price: the fullest first${more.length > 0 ? ` (${more.join('; ')})` : ''}`} empty="No org or tenant has a budget in money for the month."
      heads=${[column('of'), column('name'), column('kind'), ...numbers('budget', 'so far', 'month at this rate'), column('enough?')]}
      rows=${rows.map(({ level, id, kind, limit, spent, month, endMs }) => [level, id, kind, usd(limit), usd(spent), usd(month), outlook(endMs, nowMs)])} />
  </section>`
}

export class Money extends Component {
  constructor(props) {
    super(props)
    this.state = { by: 'tenant', rows: undefined, problem: '' }
  }

  componentDidMount() {
    this.look('tenant')
    this.lookAhead()
  }

  /** The month at the present rate; with a tenant's key, against the tenant's monthly budgets in money. */
  async lookAhead() {
    const { isOperator } = this.props
    const nowMs = Date.now()
    const ask = `by=day&from=${forecastFrom(nowMs)}`
    try {
      const me = isOperator ? undefined : await call('/api/v1/spillway/me')
      const only = me === undefined ? '' : `&tenant=${encodeURIComponent(me.tenant)}`
      const root = isOperator ? '/api/admin/v1/usage' : '/api/v1/spillway/usage'
      const { data } = await call(`${root}?${ask}${only}`)
      const of = (name) =>
        forecastOf(
          data.map((row) => ({ day: row.day, usd: Number(row[name]) })),
          nowMs,
        )
      this.setState({ ahead: { nowMs, price: of('price_usd'), cost: of('cost_usd'), budgets: budgetsOf(me) } })
      if (isOperator) this.setState({ budgets: { nowMs, ...(await budgetsAhead(nowMs)) } })
    } catch {
      // Without a ledger there is nothing to look ahead from; the table above says so.
    }
  }

  async look(by) {
    const root = this.props.isOperator ? '/api/admin/v1/usage' : '/api/v1/spillway/usage'
    try {
      const { data } = await call(`${root}?by=${by}`)
      this.setState({ by, rows: data, problem: '' })
    } catch (error) {
      this.setState({ by, rows: [], problem: error.message })
    }
  }

  render(_, { by, rows = [], problem, ahead, budgets }) {
    return html`<div><section>
      <h2>Money, this month so far</h2>
      <p>
        <label>By <select value=${by} onChange=${(event) => this.look(event.target.value)}>${CHOICES.map((choice) => html`<option value=${choice}>${choice}</option>`)}</select></label>
        ${' '}<button onClick=${() => saveCsv('spillway-usage.csv', [by, ...USAGE_HEADS], rows)} disabled=${rows.length === 0}>Save as CSV</button>
      </p>
      ${problem && html`<p class="bad" role="alert">${problem}</p>`}
      <${Table} caption="Price is what it is sold at; cost what the engines took, in prefill and decode" empty="Nothing is in the ledger yet."
        heads=${[column(by), ...numbers('requests', 'input', 'cached', 'output', 'price', 'cost', 'prefill', 'decode')]}
        rows=${rows.map((row) => [
          row[by],
          count(row.requests),
          count(row.input_tokens),
          count(row.cached_tokens),
          count(row.output_tokens),
          usd(row.price_usd),
          usd(row.cost_usd),
          `${(row.prefill_ms / 1000).toFixed(1)} s`,
          `${(row.decode_ms / 1000).toFixed(1)} s`,
        ])} />
    </section>
    ${ahead && html`<${Ahead} ...${ahead} />`}
    ${budgets && html`<${Budgets} ...${budgets} />`}</div>`
  }
}
