// The console: a session, a feed, and a page for each question.
import { call, watch } from './api.js'
import { Confirm } from './confirm.js'
import { merged } from './merge.js'
import { Money } from './money.js'
import { Now } from './now.js'
import { RequestPage } from './request.js'
import { Rollouts } from './rollouts.js'
import { Tenant } from './tenant.js'
import { Component, render } from './vendor/preact.js'
import { html } from './view.js'
import { WhatIf } from './what-if.js'

const EVENTS_MAX = 200
const HISTORY_MAX = 3600

class SignIn extends Component {
  constructor(props) {
    super(props)
    this.state = { key: '', problem: '' }
  }

  async begin(event) {
    event.preventDefault()
    try {
      this.props.onViewer(await call('/session', { method: 'POST', body: { key: this.state.key } }))
    } catch (error) {
      this.setState({ problem: error.message })
    }
  }

  render(_, { key, problem }) {
    return html`<main><form class="sign-in" onSubmit=${(event) => this.begin(event)}>
      <h1>Spillway</h1>
      <label>An administrator’s key, or a tenant’s
        <input type="password" autocomplete="current-password" required value=${key} onInput=${(event) => this.setState({ key: event.target.value })} />
      </label>
      ${problem && html`<p class="bad" role="alert">${problem}</p>`}
      <button class="act">Look</button>
      <p class="quiet">The key stays on the server as its hash; the page gets a cookie that no script can read. You see what the key may see.</p>
    </form></main>`
  }
}

const OPERATOR_PAGES = { now: 'Now', request: 'A request', rollouts: 'Rollouts', money: 'Money', 'what-if': 'What if' }
const TENANT_PAGES = { now: 'My view', request: 'A request', money: 'Money' }

/** How many gateways the sums cover; nothing where there is one. */
function Gateways({ of: gateways }) {
  if (!gateways || gateways.of <= 1) return ''
  const { heard, of: all } = gateways
  const isWhole = heard === all
  return html`<span class=${isWhole ? 'quiet' : 'bad'} role="status">${isWhole ? `${all} gateways` : `${heard} of ${all} gateways heard`}</span>`
}

class App extends Component {
  constructor(props) {
    super(props)
    this.state = {
      viewer: undefined,
      fleet: undefined,
      admission: undefined,
      view: undefined,
      events: [],
      history: [],
      state: 'connecting',
      change: undefined,
      told: '',
      hash: location.hash,
    }
  }

  componentDidMount() {
    addEventListener('hashchange', () => this.setState({ hash: location.hash }))
    call('/session').then(
      (viewer) => this.enter(viewer),
      () => this.setState({ viewer: null }),
    )
  }

  async enter(viewer) {
    this.setState({ viewer })
    const history = viewer.role === 'operator' ? await call('/history') : []
    this.setState({ history })
    if (viewer.role === 'operator') this.followFleet()
    this.stop = watch(
      (view, isSnapshot) => this.take(view, isSnapshot),
      (state) => this.setState({ state }),
    )
  }

  /** Replicas and orders as they are: the feed tells only what changes. */
  async lookAtFleet() {
    try {
      const [{ data }, admission] = await Promise.all([call('/api/admin/v1/pools'), call('/api/admin/v1/admission')])
      this.setState({ fleet: data, admission })
    } catch {
      // The feed says that the server is away; the last fleet stays.
    }
  }

  async followFleet() {
    await this.lookAtFleet()
    if (this.state.viewer) this.timer = setTimeout(() => this.followFleet(), 2000)
  }

  /** What was just changed is shown at once. */
  changed(done) {
    this.setState({ change: undefined, told: done ?? '' })
    if (done) this.lookAtFleet()
  }

  take(message, isSnapshot) {
    const view = isSnapshot ? message : merged(this.state.view, message)
    const newest = isSnapshot ? 0 : (this.state.events[0]?.id ?? 0)
    const fresh = view.events.filter(({ id }) => id > newest).toReversed()
    const events = isSnapshot ? fresh : [...fresh, ...this.state.events]
    this.setState({ view, events: events.slice(0, EVENTS_MAX), history: this.grown(view) })
  }

  /** The last hour, with the newest second at its end: the server keeps the same. */
  grown({ second }) {
    const { history } = this.state
    if (!second || history.at(-1)?.[0] >= second[0]) return history
    return [...history, second].slice(-HISTORY_MAX)
  }

  async leave() {
    this.stop?.()
    clearTimeout(this.timer)
    await call('/session', { method: 'DELETE' }).catch(() => {})
    this.setState({ viewer: null, view: undefined, events: [], history: [] })
  }

  page(name, rest, isOperator) {
    const { view, events, history, second, fleet, admission } = this.state
    const onChange = (change) => this.setState({ change })
    if (name === 'request') return html`<${RequestPage} id=${rest} isOperator=${isOperator} />`
    if (name === 'rollouts' && isOperator)
      return html`<${Rollouts} onChange=${onChange} trials=${view?.trials ?? []} />`
    if (name === 'what-if' && isOperator) return html`<${WhatIf} />`
    if (name === 'money') return html`<${Money} isOperator=${isOperator} />`
    if (view === undefined) return html`<p class="quiet">Waiting for the first second …</p>`
    if (!isOperator) return html`<${Tenant} view=${view} events=${events} />`
    return html`<${Now} view=${view} fleet=${fleet ?? []} admission=${admission} events=${events} history=${history} second=${second} onChange=${onChange}
      onSecond=${(at) => at !== this.state.second && this.setState({ second: at })} />`
  }

  render(_, { viewer, view, state, change, told, hash }) {
    if (viewer === undefined) return html`<main><h1>Spillway</h1><p class="quiet" role="status">One moment …</p></main>`
    if (viewer === null) return html`<${SignIn} onViewer=${(entered) => this.enter(entered)} />`
    const isOperator = viewer.role === 'operator'
    const pages = isOperator ? OPERATOR_PAGES : TENANT_PAGES
    const [asked, rest] = hash.slice(1).split('/', 2)
    const name = asked in pages ? asked : 'now'
    return html`
      <header>
        <h1>Spillway</h1>
        <nav aria-label="Pages">${Object.entries(pages).map(
          ([id, title]) => html`<a href=${`#${id}`} aria-current=${id === name ? 'page' : undefined}>${title}</a>`,
        )}</nav>
        <span class=${state === 'live' ? 'good' : 'bad'} role="status">${state === 'live' ? 'live' : 'no connection'}</span>
        <${Gateways} of=${view?.gateways} />
        <span class="quiet">${viewer.name}</span>
        <button onClick=${() => this.leave()}>Leave</button>
      </header>
      <main>
        ${told && html`<p class="good" role="status">${told}</p>`}
        ${this.page(name, rest, isOperator)}
        ${change && html`<${Confirm} change=${change} onDone=${(done) => this.changed(done)} />`}
      </main>`
  }
}

const place = document.getElementById('app')
place.replaceChildren()
render(html`<${App} />`, place)
