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
    rows.push(
      `<tr><td>${rest.length} others</td><td></td><td>${share}</td><td>${sum(({ arrived }) => arrived)}</td>` +
        `<td>${sum(({ completed }) => completed)}</td><td>${sum(({ shed }) => shed)}</td><td></td><td></td></tr>`,
    )
  }
  return `<section class="card wide" id="tenants"><h2>Service per tenant</h2>
<p>Bar: share of all weighted tokens served. Stroke: its share by weight, which it may claim when it asks for that much.</p>
<div class="scroll"><table><thead><tr><th>tenant</th><th class="text">share of service</th><th></th><th>asked</th><th>completed</th>
<th>shed</th><th>first token p95</th><th>promise</th></tr></thead><tbody>${rows.join('')}</tbody></table></div></section>`
}

function tenantRow(tenant: SeriesTenant, weights: number, longest: number): string {
  const { id, share, weight, arrived, completed, shed, ttftP95, sloTtft } = tenant
  const isLate = ttftP95 !== undefined && sloTtft !== undefined && ttftP95 > sloTtft
  const width = (ratio: number): string => `${Math.round((1_000 * ratio) / longest) / 10}%`
  const bar = `<div class="bar"><i style="width:${width(share)}"></i><s style="left:calc(${width(weight / weights)} - 1px)"></s></div>`
  const late = isLate ? ' <span class="mark bad">late</span>' : ''
  return (
    `<tr><td>${escapeHtml(id)}</td><td>${bar}</td><td>${formatNumber(share, '%')}</td><td>${arrived}</td>` +
    `<td>${completed}</td><td>${shed}</td><td>${formatNumber(ttftP95, 'ms')}${late}</td><td>${formatNumber(sloTtft, 'ms')}</td></tr>`
  )
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
    `<tr><td>${escapeHtml(name)}</td><td>${formatNumber(each.goodputRatio, '%')}</td><td>${formatNumber(each.goodputPerS, '')}</td>` +
    `<td>${each.completed}</td><td>${each.shed}</td><td>${formatNumber(each.ttftP95, 'ms')}</td>` +
    `<td>${formatNumber(each.itlP95, 'ms')}</td><td>${formatNumber(each.utilisation, '%')}</td></tr>`
  const rows = [row(title, totals), ...variants.map((variant) => row(variant.name, variant.totals))]
  return `<section class="card wide" id="variants"><h2>Side by side</h2><div class="scroll"><table>
<thead><tr><th>run</th><th>as promised</th><th>a second</th><th>completed</th><th>shed</th><th>first token p95</th><th>token p95</th>
<th>engines’ work</th></tr></thead><tbody>${rows.join('')}</tbody></table></div></section>`
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
