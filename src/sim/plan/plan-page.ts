import { escapeHtml, formatNumber } from '../report/page/format.ts'
import { type Plot, type PlotSeries, renderPlot } from '../report/page/plot.ts'
import { framePage } from '../report/page/render-page.ts'
import type { PlannedFleet } from './fs-plan.ts'
import { ms, type PlanPoint, type PlanRun, percent, worstOf } from './plan-point.ts'
import { headingOf, type PlanFacts, planAnswer } from './plan-table.ts'

/** The page of a plan: the answer, the curve as plots and as a table. In the report's own style. */
export function renderPlanPage(plan: PlannedFleet, facts: PlanFacts): string {
  const title = `Plan for ${plan.workload.name}`
  const plots = plotsOf(plan.points, facts)
  const isFound = plan.answer !== undefined
  const [answer = '', ...more] = planAnswer(plan, facts)
  const verdict = `<p class="verdict ${isFound ? 'good' : 'bad'}"><b>${isFound ? '✓' : '✗'}</b> ${escapeHtml(answer)}</p>`
  const told = [...headingOf(plan, facts), ...more].map((text) => `<p>${escapeHtml(text)}</p>`).join('')
  const body = `<header><h1>${escapeHtml(title)}</h1>${told}${verdict}</header>
<div class="grid2" style="margin-top:22px">${plots.map(renderPlot).join('\n')}</div>
${tableOf(plan)}
<footer>Simulated; the worst of the seeds, for each figure.</footer>`
  return framePage({ title, body, plots })
}

function plotsOf(points: readonly PlanPoint[], { target }: PlanFacts): Plot[] {
  const runs = points.map(worstOf)
  const axis = { atS: points.map(({ replicas }) => replicas), labels: points.map(({ replicas }) => String(replicas)) }
  const line = (name: string, color: string, of: (run: PlanRun) => number): PlotSeries => ({
    name,
    color: `var(--${color})`,
    kind: 'line',
    values: runs.map(of),
  })
  const wanted = (value: number): PlotSeries => ({
    name: `wanted ${ms(value)}`,
    color: 'var(--promise)',
    kind: 'dashed',
    values: runs.map(() => value),
  })
  const inWorst = (color: string, of: (run: PlanRun) => number): PlotSeries => line('worst minute', color, of)
  const overRun = (color: string, of: (run: PlanRun) => number): PlotSeries => line('whole run', color, of)
  const firstToken = [inWorst('slow', ({ peak }) => peak.ttftP95), overRun('calm', ({ ttftP95 }) => ttftP95)]
  const token = [inWorst('slow', ({ peak }) => peak.itlP95), overRun('calm', ({ itlP95 }) => itlP95)]
  const refused = [
    inWorst('failed', ({ peak }) => peak.refusedRatio),
    overRun('shed', ({ refusedRatio }) => refusedRatio),
  ]
  return [
    {
      id: 'ttft',
      title: 'Time to first token, by replicas',
      caption: 'p95; at the top edge: never',
      ...axis,
      unit: 'ms',
      isLogarithmic: true,
      series: [...firstToken, wanted(target.ttftMs)],
    },
    {
      id: 'itl',
      title: 'Time per token, by replicas',
      caption: 'p95; in the worst minute of answers’ means, over the run of single gaps',
      ...axis,
      unit: 'ms',
      series: [...token, wanted(target.itlMs)],
    },
    {
      id: 'refused',
      title: 'Refused, by replicas',
      caption: 'Share of the requests that got no answer',
      ...axis,
      unit: '%',
      series: refused,
    },
    {
      id: 'cost',
      title: 'Money, by replicas',
      caption: 'US dollars an hour',
      ...axis,
      unit: '',
      series: [line('an hour', 'served', ({ usdPerHour }) => usdPerHour)],
    },
  ]
}

const HEADS = [
  'replicas',
  'first token p95',
  'token p95',
  'worst minute: first',
  'token',
  'refused',
  'good a second',
  '$ an hour',
  '$ a M tokens',
  'seeds',
]

function tableOf({ points, answer }: PlannedFleet): string {
  const rows = points.map((point) => {
    const run = worstOf(point)
    const mark = point.meets ? '<span class="mark good">✓</span>' : '<span class="mark bad">✗</span>'
    const cells = [
      `${mark} ${point.replicas}${point === answer ? ' (the answer)' : ''}`,
      ms(run.ttftP95),
      ms(run.itlP95),
      ms(run.peak.ttftP95),
      ms(run.peak.itlP95),
      percent(run.refusedRatio),
      formatNumber(run.goodputPerS, ''),
      run.usdPerHour.toFixed(2),
      formatNumber(run.usdPerMillionTokens, ''),
      String(point.runs.length),
    ]
    return `<tr>${cells.map((cell, i) => `<td data-label="${HEADS[i]}">${cell}</td>`).join('')}</tr>`
  })
  const heads = HEADS.map((head) => `<th>${head}</th>`).join('')
  return `<section class="card wide" id="curve"><h2>The curve</h2><div class="scroll stack"><table>
<thead><tr>${heads}</tr></thead><tbody>${rows.join('')}</tbody></table></div></section>`
}
