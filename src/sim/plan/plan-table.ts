import type { PlannedFleet } from './fs-plan.ts'
import { ms, type PlanPoint, percent, worstOf } from './plan-point.ts'
import type { PlanTarget } from './plan-scenario.ts'

/** A plan as text: the curve as a table, a picture of it, and the answer in a sentence. */
export interface PlanFacts {
  readonly profile: string
  readonly target: PlanTarget
  readonly seedCount: number
  readonly load: number
}

const HEAD = [
  '',
  'replicas',
  'ttft p95',
  'itl p95',
  'worst minute: ttft p95',
  'itl p95',
  'refused',
  'good/s',
  '$/hour',
  '$/M tokens',
  'seeds',
]

export function planTable(plan: PlannedFleet, facts: PlanFacts): string {
  const rows = [HEAD, ...plan.points.map((point) => rowOf(point, plan, facts))]
  return [
    ...headingOf(plan, facts),
    '',
    ...aligned(rows),
    '',
    ...pictureOf(plan, facts),
    '',
    ...planAnswer(plan, facts),
  ].join('\n')
}

export function headingOf({ workload, requestCount }: PlannedFleet, { profile, target, load }: PlanFacts): string[] {
  const { name, durationS, tenants } = workload
  const count = (value: number, noun: string): string =>
    `${value.toLocaleString('en-US')} ${noun}${value === 1 ? '' : 's'}`
  const times = load === 1 ? '' : `, times ${load}`
  return [
    `${name}: ${count(requestCount, 'request')} in ${durationS.toLocaleString('en-US')} s, ${count(tenants.length, 'tenant')}${times}; on ${profile}`,
    `wanted: first token p95 at most ${ms(target.ttftMs)}, token p95 at most ${ms(target.itlMs)}, over the run and in its worst minute; at most ${percent(target.refusedRatioMax)} refused`,
  ]
}

function rowOf(point: PlanPoint, { answer }: PlannedFleet, { seedCount }: PlanFacts): string[] {
  const run = worstOf(point)
  const met = point.meets ? point.runs.length : point.runs.length - 1
  return [
    point === answer ? '→' : point.meets ? '' : '✗',
    String(point.replicas),
    ms(run.ttftP95),
    ms(run.itlP95),
    ms(run.peak.ttftP95),
    ms(run.peak.itlP95),
    percent(run.refusedRatio),
    run.goodputPerS.toFixed(1),
    run.usdPerHour.toFixed(2),
    run.usdPerMillionTokens === undefined ? '–' : run.usdPerMillionTokens.toPrecision(3),
    point.meets ? `${met} of ${seedCount} meet it` : `${met + 1} run, the last misses`,
  ]
}

/** The first column is a mark and the last one words; the others are numbers, which end at the same place. */
function aligned(rows: ReadonlyArray<readonly string[]>): string[] {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const isText = column === 0 || column === HEAD.length - 1
        return isText ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
      })
      .join('  ')
      .trimEnd(),
  )
}

/** Characters of the longest bar; the target stands at half of it. */
const BAR_CHARACTERS = 48

function pictureOf({ points }: PlannedFleet, { target }: PlanFacts): string[] {
  const width = Math.max(...points.map(({ replicas }) => String(replicas).length))
  const unitMs = (2 * target.ttftMs) / BAR_CHARACTERS
  const bars = points.map((point) => {
    const { peak, refusedRatio } = worstOf(point)
    const { ttftP95 } = peak
    const length = Math.max(1, Math.min(BAR_CHARACTERS, Math.round(ttftP95 / unitMs)))
    const isBeyond = ttftP95 / unitMs > BAR_CHARACTERS
    const bar = '█'.repeat(length) + (isBeyond ? '▶' : '')
    const half = BAR_CHARACTERS / 2
    const marked = length < half ? `${bar.padEnd(half)}│` : bar
    return `${String(point.replicas).padStart(width)} ${marked.padEnd(BAR_CHARACTERS + 2)}${ms(ttftP95)}, ${percent(refusedRatio)} refused`
  })
  const scale = `${' '.repeat(width + 1)}${' '.repeat(BAR_CHARACTERS / 2)}│ wanted: ${ms(target.ttftMs)}`
  return ['first token p95 in the worst minute, by replicas', ...bars, scale]
}

export function planAnswer({ answer, because, points }: PlannedFleet, { seedCount }: PlanFacts): string[] {
  if (answer === undefined) return [`No answer: ${because}`]
  const { usdPerHour, usdPerMillionTokens, peak } = worstOf(answer)
  const { replicas, runs } = answer
  const times = runs.map((run) => run.peak.ttftP95)
  const spread = `${ms(Math.min(...times))} to ${ms(Math.max(...times))}`
  const fewer = points.find((point) => point.replicas === replicas - 1)
  return [
    `${replicas} replica${replicas === 1 ? '' : 's'}: $${usdPerHour.toFixed(2)} an hour, $${(usdPerMillionTokens ?? 0).toPrecision(3)} a million tokens.`,
    seedCount === 1
      ? 'One seed: no confidence. Give --seeds 5 to see how much depends on chance.'
      : `All ${seedCount} seeds meet the target; first token p95 in the worst minute is ${spread} (it begins at ${Math.round(peak.atS)} s).`,
    ...(fewer === undefined ? [] : [`With ${fewer.replicas}: ${fewer.because}.`]),
  ]
}
