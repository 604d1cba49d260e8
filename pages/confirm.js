// A change asks for its reason first, and shows the command that does the same.
import { call } from './api.js'
import { Component } from './vendor/preact.js'
import { html } from './view.js'

export class Confirm extends Component {
  constructor(props) {
    super(props)
    this.state = { because: '', problem: '', isBusy: false }
  }

  componentDidMount() {
    this.dialog.showModal()
  }

  async act(event) {
    event.preventDefault()
    const { change, onDone } = this.props
    this.setState({ isBusy: true, problem: '' })
    try {
      await call(change.path, {
        method: change.method ?? 'POST',
        body: { ...change.body, because: this.state.because },
      })
      onDone(`${change.title}: done.`)
    } catch (error) {
      this.setState({ problem: error.message, isBusy: false })
    }
  }

  render({ change, onDone }, { because, problem, isBusy }) {
    return html`<dialog ref=${(element) => (this.dialog = element)} onClose=${() => onDone()} aria-labelledby="confirm-title">
      <form onSubmit=${(event) => this.act(event)}>
        <h2 id="confirm-title">${change.title}</h2>
        <p>${change.about}</p>
        <label>Why? It is kept with the change.
          <input required maxlength="300" value=${because} onInput=${(event) => this.setState({ because: event.target.value })} />
        </label>
        <p class="quiet">The same by hand: <code>${change.command}</code></p>
        ${problem && html`<p class="bad" role="alert">${problem}</p>`}
        <button class=${change.isDanger ? 'danger' : 'act'} disabled=${isBusy}>${change.verb}</button>${' '}
        <button type="button" onClick=${() => onDone()}>Leave it</button>
      </form>
    </dialog>`
  }
}
