// A tenant's own view: is it me or you?
import { call } from './api.js'
import { Events } from './now.js'
import { Component } from './vendor/preact.js'
import { column, count, figures, html, numbers, percent, perSecond, standing, Table, Tile } from './view.js'

const left = (bucket) => (bucket ? `${count(bucket.remaining)} of ${count(bucket.limit)}` : 'no limit')

export class Tenant extends Component {
  constructor(props) {
    super(props)
    this.state = { me: undefined, problem: '' }
  }

  componentDidMount() {
    this.look()
    this.timer = setInterval(() => this.look(), 5000)
  }

  componentWillUnmount() {
    clearInterval(this.timer)
  }

  async look() {
    try {
      this.setState({ me: await call('/api/v1/spillway/me'), problem: '' })
    } catch (error) {
      this.setState({ problem: error.message })
    }
  }

  render({ view, events }, { me, problem }) {
    const own = figures(view.columns, view.total)
    const { word, tone } = standing(own.kept, own.broken)
    return html`
      <div class="tiles">
        <${Tile} title="Promises kept, last minute" value=${percent(own.kept, own.kept + own.broken)} note=${word} tone=${tone} />
        <${Tile} title="Asked" value=${`${perSecond(own.arrived)}/s`} note="last minute" />
        <${Tile} title="Refused" value=${percent(own.refused, own.arrived)} note=${`${count(own.refused)} in the last minute`} tone=${own.refused > 0 ? 'warn' : ''} />
        <${Tile} title="Degraded" value=${count(own.degraded)} note="answers of the last minute below the full rung" />
      </div>
      ${problem && html`<p class="bad" role="alert">${problem}</p>`}
      ${
        me &&
        html`<div class="columns">
          <section><h2>What is left</h2><${Table} caption="Budgets of your org, tenant and key" empty="Nothing is limited."
            heads=${[column('whose'), ...numbers('requests', 'tokens', 'at once')]}
            rows=${(me.budgets ?? []).map((budget) => [budget.scope, left(budget.requests), left(budget.tokens), budget.concurrency?.limit ? `${budget.concurrency.running} of ${budget.concurrency.limit}` : 'no limit'])} /></section>
          <section><h2>What was promised</h2>
            <p>First token within ${me.slo?.ttftMs} ms, ${me.slo?.interTokenMs} ms between tokens, the whole answer within ${me.slo?.totalMs} ms. Under load answers are ${me.contract === 'degrade' ? 'made smaller before they are refused' : 'refused rather than made smaller'}.</p></section>
          <section><h2>Refused</h2><${Table} caption="The last refusals, with when to come back" empty="None."
            heads=${[column('why'), column('code'), ...numbers('come back after')]}
            rows=${(me.refusals ?? []).map((refusal) => [refusal.because, refusal.code, refusal.retry_after_ms === null || refusal.retry_after_ms === undefined ? 'never' : `${(refusal.retry_after_ms / 1000).toFixed(1)} s`])} /></section>
          <section><h2>Keys</h2><${Table} caption="Keys of your tenant" empty="Your key may not list keys."
            heads=${[column('key'), column('from')]} rows=${(me.keys ?? []).map((key) => [key.id, key.source ?? ''])} /></section>
          <section><h2>As it happens</h2><${Events} events=${events} leftOut=${0} /></section>
        </div>`
      }`
  }
}
