// One request: every decision with its reason, on a line of time.
import { call } from './api.js'
import { Component } from './vendor/preact.js'
import { column, html, Table } from './view.js'

const ms = (us) => `${(us / 1000).toFixed(us < 100000 ? 1 : 0)} ms`

/** Stretches of a story, from its entries. */
function stretches(entries) {
  const at = (kind) => entries.find((entry) => entry.kind === kind)
  const settled = at('settled')
  const arrived = at('arrived')
  if (!settled || !arrived) return []
  const admitted = at('admitted')
  const rows = []
  const add = (name, from, to, note) =>
    to > from && rows.push({ name, from: from - arrived.at, to: to - arrived.at, note })
  const screened = at('screened')
  if (screened) add('screened', screened.at - screened.tookUs, screened.at, screened.because)
  const retrieved = at('retrieval-ended')
  if (retrieved) add('retrieved', retrieved.at - retrieved.tookUs, retrieved.at, retrieved.because)
  const granted = entries.filter((entry) => entry.kind === 'granted')
  if (admitted) add('waited', admitted.at, granted[0]?.at ?? settled.at, admitted.because)
  for (const turn of granted) {
    const ended = entries.find((entry) => entry.kind === 'attempt-ended' && entry.attempt === turn.attempt)
    add(`attempt ${turn.attempt}`, turn.at, ended?.at ?? settled.at, `${turn.replicaId}: ${ended?.ending ?? 'running'}`)
  }
  if (settled.firstTokenAt !== undefined && granted.length > 0) {
    add('prefill', granted.at(-1).at, settled.firstTokenAt, 'to the first token')
    add('decode', settled.firstTokenAt, settled.lastTokenAt ?? settled.at, `${settled.usage.outputTokens} tokens`)
  }
  return rows
}

function Timeline({ entries }) {
  const rows = stretches(entries)
  const end = Math.max(...rows.map(({ to }) => to), 1)
  return html`<div class="timeline">${rows.map(
    ({ name, from, to, note }) => html`<div>
      <span>${name} <span class="quiet">${ms(to - from)}</span></span>
      <svg viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label=${`${name}, ${ms(to - from)}, ${note}`}>
        <rect x=${(1000 * from) / end} width=${Math.max(2, (1000 * (to - from)) / end)} height="10" rx="2"><title>${note}</title></rect>
      </svg>
    </div>`,
  )}</div>`
}

export class RequestPage extends Component {
  constructor(props) {
    super(props)
    this.state = { id: props.id ?? '', story: undefined, problem: '' }
  }

  componentDidMount() {
    if (this.state.id) this.look()
  }

  componentDidUpdate(before) {
    if (before.id !== this.props.id && this.props.id) this.setState({ id: this.props.id }, () => this.look())
  }

  async look(event) {
    event?.preventDefault()
    const root = this.props.isOperator ? '/api/admin/v1/requests/' : '/api/spillway/requests/'
    try {
      this.setState({ story: await call(root + encodeURIComponent(this.state.id.trim())), problem: '' })
    } catch (error) {
      this.setState({ story: undefined, problem: error.message })
    }
  }

  render(_, { id, story, problem }) {
    const entries = story?.entries ?? []
    const admitted = entries.find((entry) => entry.kind === 'admitted')
    const settled = entries.find((entry) => entry.kind === 'settled')
    return html`<section>
      <h2>A request</h2>
      <form onSubmit=${(event) => this.look(event)}>
        <label>Its id (x-request-id) <input value=${id} size="36" onInput=${(event) => this.setState({ id: event.target.value })} /></label>
        ${' '}<button class="act">Look</button>
      </form>
      ${problem && html`<p class="bad" role="alert">${problem}</p>`}
      ${
        settled &&
        html`<p><b>${settled.outcome}</b>: ${settled.because}. ${settled.tenantId}, ${settled.model}, rung ${settled.rung}.
          ${admitted && settled.firstTokenAt && html` First token after ${ms(settled.firstTokenAt - settled.arrivedAt)}, predicted ${ms(admitted.at - settled.arrivedAt + admitted.predictedTtftUs)}; whole answer after ${ms(settled.at - settled.arrivedAt)}, predicted ${ms(admitted.at - settled.arrivedAt + admitted.predictedFinishUs)}.`}
        </p>`
      }
      <${Timeline} entries=${entries} />
      ${
        entries.length > 0 &&
        html`<${Table} caption="Every entry of the journal about it" heads=${[column('after'), column('what'), column('why')]}
          rows=${entries.map((entry) => [ms(entry.at - entries[0].at), entry.kind, entry.because ?? ''])} />`
      }
    </section>`
  }
}
