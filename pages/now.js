// Now: who is hurt, why, and what to press.
import { Chart } from './chart.js'
import { Orders, pauseButton } from './orders.js'
import { Queue } from './queue.js'
import { clockTime, column, count, figures, html, numbers, percent, perSecond, standing, Table, Tile } from './view.js'

const share = ({ kept, broken }) => {
  const { word, tone } = standing(kept, broken)
  return html`<span class=${tone}>${percent(kept, kept + broken)} ${word}</span>`
}

/** How fast the budget of broken promises is used: at 1 it lasts its 30 days (deploy/prometheus, 99 %). */
const burn = ({ kept, broken }) => (kept + broken > 0 ? (broken / (kept + broken) / 0.01).toFixed(1) : '–')

function partyRow(columns, { name, counts }) {
  const party = figures(columns, counts)
  return [
    name,
    share(party),
    burn(party),
    perSecond(party.arrived),
    count(party.refused),
    count(party.failed),
    count(party.degraded),
    count(party.tokens),
  ]
}

const PARTY_HEADS = (what) => [
  column(what),
  ...numbers('promises kept', 'burn', 'asked/s', 'refused', 'failed', 'degraded', 'tokens'),
]

const HEALTH_TONE = { steady: 'good', warming: 'warn', trial: 'warn', draining: 'warn', ejected: 'bad', away: 'bad' }

/** Replicas of a pool, with what the feed has heard of each. */
function replicaRows({ fleet, view, onChange }) {
  const heard = new Map(view.replicas.map((replica) => [replica.id, replica]))
  return fleet.flatMap((pool) => {
    const most = Math.max(1, ...pool.replicas.map(({ running }) => running))
    return pool.replicas.map((replica) => replicaRow({ ...replica, most }, heard.get(replica.id), onChange))
  })
}

const kv = (id, ratio) =>
  ratio === undefined
    ? html`<span class="quiet">unknown</span>`
    : html`<meter min="0" max="1" low="0.8" high="0.95" optimum="0" value=${ratio} aria-label=${`KV memory of ${id}`}></meter> ${percent(ratio, 1)}`

function replicaRow({ id, health, running, most, isLeaving, deniedBecause, kvRatio }, heard, onChange) {
  const isDrained = health === 'draining' || isLeaving
  const because = deniedBecause ?? heard?.because ?? ''
  const word = deniedBecause ? 'denies us' : heard?.isReady === false ? 'not ready' : health
  const tone = deniedBecause || heard?.isReady === false ? 'bad' : (HEALTH_TONE[health] ?? '')
  const change = {
    title: isDrained ? `Use ${id} again` : `Drain ${id}`,
    about: isDrained ? 'It gets requests again.' : 'It gets no new requests; running answers finish.',
    verb: isDrained ? 'Use it' : 'Drain it',
    path: `/api/admin/v1/replicas/${encodeURIComponent(id)}`,
    body: { state: isDrained ? 'ready' : 'draining' },
    command: `npx spillway replicas ${isDrained ? 'undrain' : 'drain'} ${id} --because "…"`,
    isDanger: !isDrained,
  }
  return [
    id,
    html`<span class=${tone}>${word}</span>`,
    html`<meter min="0" max=${most} value=${running} aria-label=${`${running} running at ${id}`}></meter> ${running}`,
    kv(id, kvRatio),
    because,
    html`<button onClick=${() => onChange(change)} aria-label=${change.title}>${isDrained ? 'Use' : 'Drain'}</button>`,
  ]
}

/** What is out of order now; nothing where nothing is. */
function Troubles({ troubles }) {
  if (troubles.length === 0) return ''
  return html`<section class="trouble" role="status"><h2>Out of order</h2>
    <ul>${troubles.map(({ what, since, text }) => html`<li key=${what}><b class="bad">${what}</b>: ${text} <span class="quiet">since ${clockTime(since)}</span></li>`)}</ul>
  </section>`
}

const waiting = ({ waiting: names, waitingCount }) =>
  names.map(([tenant, share]) => `${tenant} (${percent(share, 1)})`).join(', ') +
  (waitingCount > names.length ? ` and ${waitingCount - names.length} more` : '')

export function Events({ events, leftOut }) {
  if (events.length === 0) return html`<p class="quiet">Nothing was refused, and nothing changed.</p>`
  return html`<ol class="events">
    ${events.map(
      (event) => html`<li key=${event.id}>
        <time>${clockTime(event.at)}</time><b>${event.kind}</b> ${event.text}
        ${event.ticketId && html` <a href=${`#request/${event.ticketId}`}>its story</a>`}
      </li>`,
    )}
    ${leftOut > 0 && html`<li class="quiet">${leftOut} more were too many to show; spillway_requests_total counts all.</li>`}
  </ol>`
}

/** Columns for uPlot from the feed's seconds: time first. */
const columnsOf = (history, places) => places.map((place) => history.map((point) => point[place]))

export function Now({ view, fleet, admission, events, history, second, onSecond, onChange }) {
  const total = figures(view.columns, view.total)
  const { word, tone } = standing(total.kept, total.broken)
  const then = second === undefined || second === null ? undefined : history[second]
  return html`
    <${Troubles} troubles=${view.troubles} />
    <${Orders} admission=${admission} onChange=${onChange} />
    <div class="tiles" aria-live="off">
      <${Tile} title="Promises kept, last minute" value=${percent(total.kept, total.kept + total.broken)} note=${`${word}, burn ${burn(total)} · spillway_promises_total`} tone=${tone} />
      <${Tile} title="Asked" value=${`${perSecond(total.arrived)}/s`} note="last minute · spillway_requests_total" />
      <${Tile} title="Refused" value=${percent(total.refused, total.arrived)} note=${`${count(total.refused)} in the last minute`} tone=${total.refused > 0 ? 'warn' : ''} />
      <${Tile} title="First token, p95" value=${view.firstTokenP95Ms === undefined || view.firstTokenP95Ms === null ? '–' : `${Math.round(view.firstTokenP95Ms)} ms`} note="last second · spillway_time_to_first_token_seconds" />
      <${Tile} title="Waiting" value=${count(view.pools.reduce((sum, pool) => sum + pool.queued, 0))} note="now · spillway_queue_depth" />
      <${Tile} title="Failed" value=${count(total.failed)} note="last minute" tone=${total.failed > 0 ? 'bad' : ''} />
    </div>
    <div class="columns">
      <${Chart} title="Requests a second, last hour" data=${columnsOf(history, [0, 1, 2, 3])} onSecond=${onSecond}
        series=${[{ label: 'asked', tone: 'accent' }, { label: 'answered', tone: 'good' }, { label: 'refused', tone: 'bad' }]} />
      <${Chart} title="Waiting, and promises broken" data=${columnsOf(history, [0, 5, 4])} onSecond=${onSecond}
        series=${[{ label: 'waiting', tone: 'warn' }, { label: 'broken', tone: 'bad' }]} />
    </div>
    ${
      then &&
      html`<p class="quiet">At ${clockTime(then[0] * 1000)}: asked ${then[1]}, answered ${then[2]}, refused ${then[3]}, broken ${then[4]}, waiting ${then[5]}, pressure ${then[6]}, first token p95 ${Math.round(then[7])} ms.</p>`
    }
    <div class="columns">
      <section><h2>Tenants</h2><${Table} caption=${`The busiest of the last minute${view.others > 0 ? `, and ${view.others} more` : ''}`} heads=${[...PARTY_HEADS('tenant'), column('change')]} rows=${view.tenants.map((party) => [...partyRow(view.columns, party), party.name === 'other' ? '' : pauseButton(party.name, admission, onChange)])} /></section>
      <${Queue} queue=${view.queue} />
      <section><h2>Pools</h2><${Table} caption="Now; pressure 1 is full (spillway_pool_pressure)" heads=${[column('pool'), ...numbers('waiting', 'running', 'ready'), column('pressure'), column('state'), column('who waits (its share)')]}
        rows=${view.pools.map((pool) => [
          pool.id,
          pool.queued,
          pool.held,
          pool.ready,
          html`<meter min="0" max="2" low="0.8" high="1" optimum="0" value=${pool.pressure} aria-label=${`pressure of ${pool.id}`}></meter> <span class=${pool.pressure > 1 ? 'bad' : ''}>${pool.pressure.toFixed(2)}</span>`,
          pool.isShedding ? html`<span class="warn">refuses offline work</span>` : 'takes all work',
          waiting(pool),
        ])} /></section>
      <section><h2>Replicas</h2><${Table} caption="Health, running requests, KV memory that is booked for them, and why" heads=${[column('replica'), column('health'), column('running'), column('KV booked'), column('because'), column('change')]} rows=${replicaRows({ fleet, view, onChange })} empty="No replica is known yet." /></section>
      <section><h2>Models</h2><${Table} caption="Last minute" heads=${PARTY_HEADS('model')} rows=${view.models.map((party) => partyRow(view.columns, party))} /></section>
      <section><h2>As it happens</h2><${Events} events=${events} leftOut=${view.eventsLeftOut} /></section>
    </div>`
}
