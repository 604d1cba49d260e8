import type { ReportSeries, SeriesTenant, SeriesTotals, SeriesWindow } from '../report-series.ts'
import { escapeHtml, formatNumber } from './format.ts'
import { clockTime } from './plot.ts'

/** The tables of the page. */

export function tilesOf({ totals }: ReportSeries): string {
  const share = (count: number): string => formatNumber(totals.arrived === 0 ? 0 : count / totals.arrived, '%')
  const tiles: Array<[string, string, string]> = [
    [
      'Answered as promised',
      formatNumber(totals.goodputRatio, '%'),
      `${formatNumber(totals.goodputPerS, '')} a second`,
    ],
    ['Completed', formatNumber(totals.completed, ''), `of ${formatNumber(totals.arrived, '')} asked`],
    ['Shed', formatNumber(totals.shed, ''), `${share(totals.shed)} of all`],
    ['Failed', formatNumber(totals.failed, ''), `${share(totals.failed)} of all`],
    ['First token, p95', formatNumber(totals.ttftP95, 'ms'), `then ${formatNumber(totals.itlP95, 'ms')} a token`],
    ['Output', formatNumber(totals.outputTokensPerS, ''), 'tokens a second'],
  ]
  const html = tiles.map(
    ([name, value, more]) => `<div class="tile"><span>${name}</span><b>${value}</b><small>${more}</small></div>`,
  )
  return `<div class="tiles">${html.join('')}</div>`
}

interface Column {
  readonly heading: string
  /** Names the value where the table has no head; the heading if absent. */
  readonly label?: string
  readonly isText?: boolean
}

const TENANT_COLUMNS: readonly Column[] = [
  { heading: 'tenant' },
  { heading: 'share of service', isText: true },
  { heading: '', label: 'share' },
  { heading: 'asked' },
  { heading: 'completed' },
  { heading: 'shed' },
  { heading: 'first token p95' },
  { heading: 'promise' },
]

const VARIANT_COLUMNS: readonly Column[] = [
  { heading: 'run' },
  { heading: 'as promised' },
  { heading: 'a second' },
  { heading: 'completed' },
  { heading: 'shed' },
  { heading: 'first token p95' },
  { heading: 'token p95' },
  { heading: 'engines’ work' },
]

/**
 * A table that fits a phone: there each row becomes a block of named values, because columns beyond the edge of the
 * screen would not be noticed.
 */
function stackedTable(columns: readonly Column[], rows: readonly string[]): string {
  const heads = columns.map(({ heading, isText }) => `<th${isText === true ? ' class="text"' : ''}>${heading}</th>`)
  return `<div class="scroll stack"><table><thead><tr>${heads.join('')}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`
}

function stackedRow(columns: readonly Column[], values: ReadonlyArray<string | number>): string {
  const cells = columns.map(({ heading, label = heading }, i) => `<td data-label="${label}">${values[i] ?? ''}</td>`)
  return `<tr>${cells.join('')}</tr>`
}

/** Most tenants in the table; the others are one row. */
const TENANTS_MAX = 16

export function tenantTable({ tenants }: ReportSeries): string {
  const sorted = tenants.toSorted((a, b) => b.served - a.served)
  const weights = tenants.reduce((sum, { weight }) => sum + weight, 0)
  const longest = Math.max(1e-9, ...sorted.map(({ share, weight }) => Math.max(share, weight / weights)))
  const rows = sorted.slice(0, TENANTS_MAX).map((tenant) => tenantRow(tenant, weights, longest))
  const rest = sorted.slice(TENANTS_MAX)
  if (rest.length > 0) {
    const sum = (of: (tenant: SeriesTenant) => number): number => rest.reduce((total, each) => total + of(each), 0)
    const share = formatNumber(
      sum((tenant) => tenant.share),
      '%',
    )
    const counts = [sum(({ arrived }) => arrived), sum(({ completed }) => completed), sum(({ shed }) => shed)]
    rows.push(stackedRow(TENANT_COLUMNS, [`${rest.length} others`, '', share, ...counts, '', '']))
  }
  return `<section class="card wide" id="tenants"><h2>Service per tenant</h2>
<p>Bar: share of all weighted tokens served. Stroke: its share by weight, which it may claim when it asks for that much.</p>
${stackedTable(TENANT_COLUMNS, rows)}</section>`
}

function tenantRow(tenant: SeriesTenant, weights: number, longest: number): string {
  const { id, share, weight, arrived, completed, shed, ttftP95, sloTtft } = tenant
  const isLate = ttftP95 !== undefined && sloTtft !== undefined && ttftP95 > sloTtft
  const width = (ratio: number): string => `${Math.round((1_000 * ratio) / longest) / 10}%`
  const bar = `<div class="bar"><i style="width:${width(share)}"></i><s style="left:calc(${width(weight / weights)} - 1px)"></s></div>`
  const late = isLate ? ' <span class="mark bad">late</span>' : ''
  const firstToken = `<span>${formatNumber(ttftP95, 'ms')}${late}</span>`
  const promise = formatNumber(sloTtft, 'ms')
  const shown = formatNumber(share, '%')
  return stackedRow(TENANT_COLUMNS, [escapeHtml(id), bar, shown, arrived, completed, shed, firstToken, promise])
}

export function expectationTable({ expectations }: ReportSeries): string {
  if (expectations.length === 0) return ''
  const rows = expectations.map(({ what, holds, because }) => {
    const mark = holds ? '<span class="mark good">✓ holds</span>' : '<span class="mark bad">✗ fails</span>'
    return `<tr><td>${mark}</td><td class="text">${escapeHtml(what)}</td><td class="text">${escapeHtml(because)}</td></tr>`
  })
  return `<section class="card wide" id="expectations"><h2>Expectations</h2><div class="scroll"><table>
<thead><tr><th></th><th class="text">what should hold</th><th class="text">seen</th></tr></thead>
<tbody>${rows.join('')}</tbody></table></div></section>`
}

export function variantTable({ title, totals, variants }: ReportSeries): string {
  if (variants.length === 0) return ''
  const row = (name: string, each: SeriesTotals): string =>
    stackedRow(VARIANT_COLUMNS, [
      escapeHtml(name),
      formatNumber(each.goodputRatio, '%'),
      formatNumber(each.goodputPerS, ''),
      each.completed,
      each.shed,
      formatNumber(each.ttftP95, 'ms'),
      formatNumber(each.itlP95, 'ms'),
      formatNumber(each.utilisation, '%'),
    ])
  const rows = [row(title, totals), ...variants.map((variant) => row(variant.name, variant.totals))]
  return `<section class="card wide" id="variants"><h2>Side by side</h2>
${stackedTable(VARIANT_COLUMNS, rows)}</section>`
}

export function windowTable(windows: readonly SeriesWindow[]): string {
  const rows = windows.map(
    (window) =>
      `<tr><td>${clockTime(window.atS)}</td><td>${window.arrivals}</td><td>${window.admitted}</td><td>${window.shed}</td>` +
      `<td>${window.completed}</td><td>${window.failed}</td><td>${window.queueDepth}</td>` +
      `<td>${formatNumber(window.ttftP50, 'ms')}</td><td>${formatNumber(window.ttftP95, 'ms')}</td></tr>`,
  )
  return `<details class="card wide"><summary>The figures as a table</summary><div class="scroll"><table>
<thead><tr><th>from</th><th>arrivals</th><th>admitted</th><th>shed</th><th>completed</th><th>failed</th><th>waiting</th>
<th>first token p50</th><th>p95</th></tr></thead><tbody>${rows.join('')}</tbody></table></div></details>`
}
