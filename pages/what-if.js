// What if: a shipped scenario as it is, and with other replicas or rates, simulated beside the server.
import { call, callLines } from './api.js'
import { Component } from './vendor/preact.js'
import { column, count, html, numbers, Table } from './view.js'

const ms = (value) => `${Math.round(value)} ms`
const ratio = (value) => `${(100 * value).toFixed(1)} %`
/** Figure, how it is written, and whether more of it is better; undefined: neither. */
const FIGURES = [
  ['arrived', 'asked', count, undefined],
  ['completed', 'answered', count, true],
  ['goodRatio', 'answered as promised', ratio, true],
  ['refused', 'refused', count, false],
  ['failed', 'failed', count, false],
  ['degraded', 'degraded', count, false],
  ['tokensPerS', 'tokens a second, as promised', count, true],
  ['ttftP50Ms', 'first token, median', ms, false],
  ['ttftP95Ms', 'first token, p95', ms, false],
  ['waitP95Ms', 'wait, p95', ms, false],
]

function compared([name, title, spell, isMoreBetter], asIs, changed) {
  const [before, after] = [asIs[name], changed[name]]
  const isSame = spell(before) === spell(after)
  const isBetter = isMoreBetter !== undefined && after > before === isMoreBetter
  const word = isSame ? 'same' : isMoreBetter === undefined ? 'other' : isBetter ? 'better' : 'worse'
  const tone = word === 'better' ? 'good' : word === 'worse' ? 'bad' : 'quiet'
  return [title, spell(before), spell(after), html`<span class=${tone}>${word}</span>`]
}

export class WhatIf extends Component {
  constructor(props) {
    super(props)
    this.state = {
      names: [],
      chosen: undefined,
      model: '',
      replicas: '',
      load: '',
      tenant: '',
      tenantRate: '',
      problem: '',
    }
  }

  async componentDidMount() {
    await this.try(async () => {
      const { data } = await call('/whatif')
      this.setState({ names: data })
      await this.choose(data.includes('burst') ? 'burst' : data[0])
    })
  }

  componentWillUnmount() {
    this.running?.abort()
  }

  async try(act) {
    try {
      await act()
    } catch (error) {
      if (error.name !== 'AbortError') this.setState({ problem: error.message })
    }
  }

  async choose(name) {
    const chosen = await call(`/whatif/${encodeURIComponent(name)}`)
    const [pool] = chosen.pools
    const replicas = pool === undefined ? '' : String(pool.replicas)
    this.setState({
      chosen,
      model: pool?.model ?? '',
      replicas,
      tenant: chosen.tenants[0] ?? '',
      load: '1',
      tenantRate: '1',
      end: undefined,
      problem: '',
    })
  }

  /** Only what differs from the scenario is asked. */
  asked() {
    const { chosen, model, replicas, load, tenant, tenantRate } = this.state
    const pool = chosen.pools.find((each) => each.model === model)
    return {
      scenario: chosen.name,
      ...(pool && Number(replicas) !== pool.replicas && { model, replicas: Number(replicas) }),
      ...(Number(load) !== 1 && { load: Number(load) }),
      ...(tenant && Number(tenantRate) !== 1 && { tenant, tenantRate: Number(tenantRate) }),
    }
  }

  async run(event) {
    event.preventDefault()
    this.running = new AbortController()
    this.setState({ step: { run: 1, ratio: 0 }, end: undefined, problem: '' })
    await this.try(async () => {
      const take = (line) => line.run && this.setState({ step: line })
      const end = await callLines('/whatif', this.asked(), take, this.running.signal)
      if (end?.kind === 'done') this.setState({ end })
      else this.setState({ problem: end?.problem ?? 'The server ended it.' })
    })
    this.running = undefined
    this.setState({ step: undefined })
  }

  field(name, label, more) {
    return html`<label>${label}${' '}<input type="number" required value=${this.state[name]} ...${more} onInput=${(event) => this.setState({ [name]: event.target.value })} /></label>${' '}`
  }

  choice(name, label, values, onChoice) {
    return html`<label>${label}${' '}<select value=${this.state[name] ?? this.state.chosen?.name} onChange=${(event) => onChoice(event.target.value)}>${values.map((value) => html`<option value=${value}>${value}</option>`)}</select></label>${' '}`
  }

  render(_, { names, chosen, step, end, problem }) {
    return html`<section>
      <h2>What if</h2>
      <p class="quiet">The simulator runs beside the server, at the lowest priority: the scenario as it is, then changed. One at a time, two minutes each at most.</p>
      ${
        chosen &&
        html`<form class="what-if" onSubmit=${(event) => this.run(event)}>
        <p>${this.choice('scenario', 'Scenario', names, (name) => this.try(() => this.choose(name)))}</p>
        <p>${chosen.about} ${chosen.durationS} s of traffic.</p>
        ${
          chosen.pools.length > 0 &&
          html`<p>${this.choice(
            'model',
            'Pool of',
            chosen.pools.map(({ model }) => model),
            (model) =>
              this.setState({ model, replicas: String(chosen.pools.find((pool) => pool.model === model).replicas) }),
          )}
        ${this.field('replicas', 'replicas', { min: 1, max: 100, step: 1 })}</p>`
        }
        <p>${this.field('load', 'Everybody’s rate, times', { min: 0.05, max: 20, step: 0.05 })}</p>
        ${
          chosen.tenants.length > 0 &&
          html`<p>${this.choice('tenant', 'Rate of', chosen.tenants, (tenant) => this.setState({ tenant }))}
        ${this.field('tenantRate', 'times', { min: 0.05, max: 20, step: 0.05 })}</p>`
        }
        <button class="act" disabled=${step !== undefined}>Compare</button>${' '}
        ${step && html`<button type="button" onClick=${() => this.running?.abort()}>Stop</button>`}
      </form>`
      }
      ${
        step &&
        html`<p role="status"><progress max="2" value=${step.run - 1 + step.ratio} aria-label="how far the simulation is"></progress>
        ${step.run === 1 ? 'As it is' : 'Changed'}: ${Math.round(100 * step.ratio)} %</p>`
      }
      ${problem && html`<p class="bad" role="alert">${problem}</p>`}
      ${end && this.result(end)}
    </section>`
  }

  result({ asIs, changed, command }) {
    const heads = [column('figure'), ...numbers('as it is', 'changed'), column('so it is')]
    const tenants = Object.keys(asIs.tenants).filter((name) => name in changed.tenants)
    return html`<div>
      <${Table} caption="All tenants, after the scenario’s warm-up" heads=${heads} rows=${FIGURES.map((figure) => compared(figure, asIs, changed))} />
      <${Table} caption="By tenant: answered as promised, and first token p95" heads=${[column('tenant'), ...numbers('kept as it is', 'kept changed', 'p95 as it is', 'p95 changed')]}
        rows=${tenants.map((name) => {
          const [before, after] = [asIs.tenants[name], changed.tenants[name]]
          return [name, ratio(before.goodRatio), ratio(after.goodRatio), ms(before.ttftP95Ms), ms(after.ttftP95Ms)]
        })} />
      <p class="quiet">The same by hand: <code>${command}</code></p>
    </div>`
  }
}
