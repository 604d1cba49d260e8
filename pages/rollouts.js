// Rollouts: the stable release against the one on trial, in words.
import { call } from './api.js'
import { evidenceInWords, phaseInWords, verdictInWords } from './rollout-words.js'
import { Component } from './vendor/preact.js'
import { column, html, numbers, Table } from './view.js'

/** One comparison of the judge, as a row. */
function evidenceRow(evidence) {
  const { question, answer, tone, seen, odds, limit, way, proof } = evidenceInWords(evidence)
  return [
    question,
    html`<span class=${tone}>${answer}</span>${proof && html` <span class="quiet">${proof}</span>`}`,
    html`<meter min="0" max="1" value=${way} aria-label=${`how sure: ${question}`}></meter> ${odds}`,
    limit,
    seen,
  ]
}

const ratio = (part, of) => (of > 0 ? `${((100 * part) / of).toFixed(1)} %` : '–')

/** Copies of requests that a release answered unseen, and its holdout set. */
function unseen(trials) {
  if (trials.length === 0) return ''
  return html`<${Table} caption="Unseen by clients, since this server started: copies of requests (shadows), and the holdout set"
    heads=${[column('release'), ...numbers('copies', 'same answer', 'same words', 'copies failed', 'holdout items', 'mean score')]}
    rows=${trials.map((trial) => [
      trial.release,
      trial.copies,
      ratio(trial.equal, trial.compared),
      ratio(trial.sameWords, trial.compared),
      trial.failed,
      trial.items,
      trial.items > 0 ? (trial.score / trial.items).toFixed(2) : '–',
    ])} />`
}

export class Rollouts extends Component {
  constructor(props) {
    super(props)
    this.state = { rollouts: undefined, problem: '' }
  }

  componentDidMount() {
    this.look()
    this.timer = setInterval(() => this.look(), 3000)
  }

  componentWillUnmount() {
    clearInterval(this.timer)
  }

  async look() {
    try {
      this.setState({ rollouts: (await call('/api/admin/v1/rollouts')).data, problem: '' })
    } catch (error) {
      this.setState({ problem: error.message })
    }
  }

  button(rollout, command, verb, about, isDanger) {
    const change = {
      title: `${verb} ${rollout.canary ?? rollout.model}`,
      about,
      verb,
      isDanger,
      path: `/api/admin/v1/rollouts/${encodeURIComponent(rollout.model)}`,
      body: { command },
      command: `npx spillway rollout ${command} ${rollout.model} --because "…"`,
    }
    return html`<button class=${isDanger ? 'danger' : 'act'} onClick=${() => this.props.onChange(change)}>${verb}</button>${' '}`
  }

  render({ trials }, { rollouts, problem }) {
    if (problem) return html`<p class="bad" role="alert">${problem}</p>`
    if (rollouts === undefined) return html`<p class="quiet">One moment …</p>`
    if (rollouts.length === 0)
      return html`<section><h2>Rollouts</h2><p class="quiet">No model has a release on trial. Start one: <code>npx spillway rollout start MODEL --release 2 --because "…"</code></p></section>`
    return rollouts.map(
      (rollout) => html`<section>
        <h2>${rollout.model}</h2>
        <p>
          <b>${rollout.stable}</b> serves ${100 - rollout.percent} % of the requests,
          ${rollout.canary ? html` <b>${rollout.canary}</b> is on trial with ${rollout.percent} %` : ' nothing is on trial'}.
          Now ${phaseInWords(rollout.phase)}${rollout.isPaused ? ', paused by hand' : ''}.
        </p>
        ${
          rollout.verdict &&
          html`<p class=${rollout.verdict.kind === 'roll-back' ? 'bad' : ''}>${verdictInWords(rollout.verdict)}</p>
        <${Table} caption="Is the release on trial worse? Odds are how many times its stake a bet on that has won at most: for two equal releases a bet wins N to 1 once in N trials, or less"
          heads=${[column('question'), column('answer'), column('how sure'), column('rolls back at'), column('seen')]}
          rows=${(rollout.verdict.evidence ?? []).map(evidenceRow)} />`
        }
        ${unseen(trials.filter(({ model }) => model === rollout.model))}
        ${
          rollout.canary &&
          html`<p>
            ${this.button(rollout, 'promote', 'Promote', 'All requests go to the release on trial.', false)}
            ${rollout.isPaused ? this.button(rollout, 'resume', 'Resume', 'The judge goes on.', false) : this.button(rollout, 'pause', 'Pause', 'The share stays as it is.', false)}
            ${this.button(rollout, 'roll-back', 'Roll back', 'All requests go to the stable release, at once.', true)}
          </p>`
        }
      </section>`,
    )
  }
}
