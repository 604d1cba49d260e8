// What an operator can order when something goes wrong: pause a tenant, let admission only observe.
import { html } from './view.js'

const modeChange = (mode) =>
  mode === 'enforce'
    ? {
        title: 'Observe only',
        about:
          'Every request comes in, whatever its budget or its predicted lateness; the journal says what would have been refused. Engines may be overrun.',
        verb: 'Observe only',
        path: '/api/admin/v1/admission',
        body: { mode: 'observe' },
        command: 'npx spillway admission observe --because "…"',
        isDanger: true,
      }
    : {
        title: 'Enforce again',
        about: 'Requests over their budget, or that would be late, are degraded or refused again.',
        verb: 'Enforce',
        path: '/api/admin/v1/admission',
        body: { mode: 'enforce' },
        command: 'npx spillway admission enforce --because "…"',
        isDanger: false,
      }

const pauseChange = (tenant, isPaused) => ({
  title: isPaused ? `Let ${tenant} go on` : `Pause ${tenant}`,
  about: isPaused
    ? 'Its requests are taken again.'
    : 'Its new requests are refused (tenant_paused, with your reason); what was admitted finishes.',
  verb: isPaused ? 'Go on' : 'Pause it',
  path: `/api/admin/v1/tenants/${encodeURIComponent(tenant)}`,
  body: { state: isPaused ? 'active' : 'paused' },
  command: `npx spillway tenants ${isPaused ? 'resume' : 'pause'} ${tenant} --because "…"`,
  isDanger: !isPaused,
})

const orderButton = (change, word, onChange) =>
  html`<button onClick=${() => onChange(change)} aria-label=${change.title}>${word}</button>`

/** The button of one tenant. */
export const pauseButton = (tenant, admission, onChange) => {
  const isPaused = admission?.paused.some((pause) => pause.tenant === tenant) ?? false
  return orderButton(pauseChange(tenant, isPaused), isPaused ? 'Go on' : 'Pause', onChange)
}

/** The mode, and the tenants that are paused. */
export function Orders({ admission, onChange }) {
  if (admission === undefined) return ''
  const { mode, paused } = admission
  const isObserving = mode === 'observe'
  return html`<section class=${isObserving || paused.length > 0 ? 'orders trouble' : 'orders calm'}>
    <p><span class=${isObserving ? 'bad' : 'good'}>${isObserving ? 'Admission observes only: nothing is refused.' : 'Admission enforces its verdicts.'}</span>
      ${' '}${orderButton(modeChange(mode), isObserving ? 'Enforce' : 'Observe only', onChange)}</p>
    ${
      paused.length > 0 &&
      html`<ul>${paused.map(
        ({ tenant, because }) =>
          html`<li key=${tenant}><b class="warn">${tenant} is paused</b>: ${because} ${orderButton(pauseChange(tenant, true), 'Go on', onChange)}</li>`,
      )}</ul>`
    }
  </section>`
}
