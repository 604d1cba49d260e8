import type { ReportSeries } from '../report-series.ts'
import { escapeHtml, escapeJson, formatNumber } from './format.ts'
import { plotsOf } from './page-plots.ts'
import { PAGE_SCRIPT } from './page-script.ts'
import { PAGE_STYLE } from './page-style.ts'
import { expectationTable, tenantTable, tilesOf, variantTable, windowTable } from './page-tables.ts'
import { clockTime, type Plot, renderPlot } from './plot.ts'
import { thinWindows } from './thin-windows.ts'

/**
 * The report's page: one file that loads nothing from the network, for light and dark. First whether expectations hold,
 * then what happened over time, then the tenants.
 */
export function renderPage(series: ReportSeries): string {
  const windows = thinWindows(series.windows)
  const windowS = windows.length > 1 ? (windows[1]?.atS ?? 0) - (windows[0]?.atS ?? 0) : series.windowS
  const plots = plotsOf(series, windows, windowS)
  return framePage({
    title: series.title,
    plots,
    body: `<header><h1>${escapeHtml(series.title)}</h1><p>${escapeHtml(series.about)}</p>${verdictOf(series)}</header>
${tilesOf(series)}
<div class="grid2">${plots.map(renderPlot).join('\n')}</div>
${tenantTable(series)}
${expectationTable(series)}
${variantTable(series)}
${windowTable(windows)}
<footer>${series.isLive ? 'Live' : 'Simulated'} run of ${formatNumber(series.durationS, '')} s, seed ${series.seed}; windows of ${formatNumber(windowS, '')} s.</footer>`,
  })
}

/** A page of ours: its style, its script, and the values under the cursor of its plots. */
export function framePage(page: { title: string; body: string; plots: readonly Plot[] }): string {
  const { title, body, plots } = page
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="content-security-policy" content="default-src 'none';style-src 'unsafe-inline';script-src 'unsafe-inline'">
<title>${escapeHtml(title)} · Spillway</title><style>${PAGE_STYLE}</style></head>
<body><main>
${body}
</main><script type="application/json" id="data">${escapeJson(tipsOf(plots))}</script><script>${PAGE_SCRIPT}</script></body></html>
`
}

function verdictOf({ expectations }: ReportSeries): string {
  if (expectations.length === 0) return ''
  const failing = expectations.filter(({ holds }) => !holds).length
  return failing === 0
    ? `<p class="verdict good"><b>✓</b> All ${expectations.length} expectations hold</p>`
    : `<p class="verdict bad"><b>✗</b> ${failing} of ${expectations.length} expectations fail</p>`
}

/** Texts for the cursor, so that the page's script does not format numbers. */
function tipsOf(plots: readonly Plot[]): unknown {
  return {
    times: plots[0]?.labels ?? (plots[0]?.atS ?? []).map(clockTime),
    plots: Object.fromEntries(
      plots.map(({ id, unit, series }) => [
        id,
        series.map(({ name, color, values }) => ({
          name,
          color,
          values: values.map((value) => formatNumber(value, unit)),
        })),
      ]),
    ),
  }
}
