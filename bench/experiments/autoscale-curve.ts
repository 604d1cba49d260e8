import { basename } from 'node:path'
import { secondsToUs } from '../../src/base/clock.ts'
import { HpaRule } from '../../src/policy/autoscale/hpa-rules.ts'
import { PredictRule } from '../../src/policy/autoscale/predict-rule.ts'
import type { ScalingRule } from '../../src/policy/autoscale/scaling-rule.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import { drawDemand, type FluidRun, playFluid, REQUESTS_PER_WORK } from './kit/fluid-fleet.ts'
import type { Cell } from './kit/result.ts'
import { drawTracedDay, readWork, type TraceGrowth } from './kit/traced-demand.ts'

/** GPU-hours against lateness: each rule at five targets, for three cold starts. */
const SECONDS = 6 * 3_600
const DAY_S = 24 * 3_600
const GROWTHS: ReadonlyArray<readonly [TraceGrowth, string]> = [
  ['grown', 'One grown service. '],
  ['many', 'Many such services. '],
]
const MEAN_REPLICAS = 14.4
const COLD_STARTS_S = [15, 60, 180]
const TERMS = { drainTargetUs: 60_000_000, queueTarget: 26, utilisationRatio: 0.8, minWarm: 1, max: 200 }
/** Share of GPU-hours that must be saved at equal lateness. */
const BARS: Readonly<Record<number, number>> = { 15: 0.15, 60: 0.15, 180: 0.05 }

interface Rule {
  readonly name: string
  readonly targets: readonly number[]
  readonly make: (target: number) => ScalingRule
}

const PREDICT: Rule = {
  name: 'predict (utilisation)',
  targets: [0.7, 0.8, 0.88, 0.95, 1.02],
  make: (utilisationRatio) => new PredictRule({ ...TERMS, utilisationRatio }),
}
/** More targets of ours, to look up hours between them: recordings differ much in how late everybody is. */
const PREDICT_FINE: Rule = {
  ...PREDICT,
  targets: [0.25, 0.3, 0.37, 0.45, 0.55, 0.62, 0.7, 0.76, 0.82, 0.88, 0.95, 1.02, 1.1],
}

const hpasOf = (metricAgeS: number | undefined): readonly Rule[] => [
  {
    name: 'hpa-queue (requests each)',
    targets: [22, 26, 30, 32, 33.5],
    make: (queueTarget) => new HpaRule({ ...TERMS, queueTarget }, 'queue', ageUs(metricAgeS)),
  },
  {
    name: 'hpa-util (utilisation)',
    targets: [0.65, 0.72, 0.8, 0.85, 0.9],
    make: (utilisationRatio) => new HpaRule({ ...TERMS, utilisationRatio }, 'work', ageUs(metricAgeS)),
  },
]

const ageUs = (ageS: number | undefined): number | undefined => (ageS === undefined ? undefined : secondsToUs(ageS))

interface Point {
  readonly target: number
  readonly gpuHours: number
  readonly lateRatio: number
  /** Changes of direction in two cold starts. */
  readonly turns: number
}

/** Demands of the same kind, one for each seed. */
interface World {
  /** As it begins a sentence; empty where there is one world only. */
  readonly name: string
  readonly demands: readonly Float64Array[]
  readonly own: Rule
}

function run({ seeds, trace, given, progress }: ExperimentOptions): Findings {
  const age = given['metric-age']
  const metricAgeS = typeof age === 'string' ? Number(age) : undefined
  if (metricAgeS !== undefined && !(metricAgeS >= 0)) throw new Error(`--metric-age is ${age}, not a number of seconds`)
  if (trace === undefined) {
    const demands = seeds.map((seed) => drawDemand(seed, SECONDS, MEAN_REPLICAS))
    return measure({ name: '', demands, own: PREDICT }, { metricAgeS, progress })
  }
  const recorded = readWork(trace)
  const found = GROWTHS.map(([growth, name]) => {
    const day = { seconds: DAY_S, meanReplicas: MEAN_REPLICAS, requestsPerWork: REQUESTS_PER_WORK, growth }
    const demands = seeds.map((seed) => drawTracedDay(recorded, { ...day, seed }))
    // The whole of our own curve would fill a page: what it costs at each HPA's lateness is what matters.
    const { tables, verdict } = measure({ name, demands, own: PREDICT_FINE }, { metricAgeS, progress })
    return { tables: tables.slice(1), verdict }
  })
  const name = basename(trace).replace(/\.[^.]*$/, '')
  return {
    tables: found.flatMap(({ tables }) => tables),
    verdict: found.flatMap(({ verdict }) => verdict),
    recordAs: `autoscale-curve-${name}`,
    title: `Autoscaling on a recording: ${name}`,
  }
}

interface MeasureOptions {
  readonly metricAgeS: number | undefined
  readonly progress: (what: string) => void
}

function measure({ name, demands, own }: World, { metricAgeS, progress }: MeasureOptions): Findings {
  const rows: Cell[][] = []
  const saved: Cell[][] = []
  const verdict: string[] = []
  let turnsMax = 0
  for (const coldStartS of COLD_STARTS_S) {
    const curveOf = (rule: Rule): Point[] => {
      progress(`${name} ${coldStartS} s, ${rule.name}`)
      const curve = drawCurve(rule, demands, coldStartS)
      for (const { target, gpuHours, lateRatio, turns } of curve)
        rows.push([coldStartS, rule.name, target, round(gpuHours, 1), round(100 * lateRatio, 3), round(turns, 2)])
      return curve
    }
    const ours = curveOf(own)
    turnsMax = Math.max(turnsMax, ...ours.map(({ turns }) => turns))
    const ratios: number[] = []
    const seldomLate: Point[] = []
    for (const hpa of hpasOf(metricAgeS)) {
      for (const point of curveOf(hpa)) {
        const gpuHours = hoursAt(ours, point.lateRatio)
        const ratio = gpuHours === undefined ? undefined : 1 - gpuHours / point.gpuHours
        if (ratio !== undefined) ratios.push(ratio)
        if (point.lateRatio < LATE_RATIO_MIN) seldomLate.push(point)
        const cells = [round(100 * point.lateRatio, 3), round(point.gpuHours, 1)]
        saved.push([
          coldStartS,
          hpa.name,
          point.target,
          ...cells,
          gpuHours === undefined ? null : round(gpuHours, 1),
          ratio === undefined ? null : round(100 * ratio, 1),
        ])
      }
    }
    verdict.push(name + judge(coldStartS, ratios) + judgeSeldomLate(ours, seldomLate))
  }
  verdict.push(`${name}Most changes of direction in two cold starts: ${turnsMax.toFixed(2)}; the bar is 1.`)
  return {
    tables: [
      {
        title:
          'Six hours, work of about 90 GPU-hours: hours paid for, share refused, changes of direction in two cold starts',
        columns: ['cold start, s', 'rule', 'target', 'GPU-hours', 'late, %', 'turns'],
        rows,
      },
      {
        title: `${name}At the lateness of each HPA target: its hours, and those of the predicting rule (between two of its targets)`,
        columns: ['cold start, s', 'HPA', 'target', 'late, %', 'GPU-hours', 'predict', 'saved, %'],
        rows: saved,
      },
    ],
    verdict,
  }
}

function drawCurve({ targets, make }: Rule, demands: readonly Float64Array[], coldStartS: number): Point[] {
  return targets.map((target) => {
    const runs = demands.map((demand) => playFluid({ rule: make(target), demand, coldStartS }))
    const of = (value: (one: FluidRun) => number): number => mean(runs.map(value))
    const seconds = demands[0]?.length ?? 1
    const turns = of((one) => one.turns) / (seconds / (2 * coldStartS))
    return { target, gpuHours: of((one) => one.gpuHours), lateRatio: of((one) => one.lateRatio), turns }
  })
}

function judge(coldStartS: number, ratios: readonly number[]): string {
  const bar = BARS[coldStartS] ?? 0
  if (ratios.length === 0)
    return `Cold start ${coldStartS} s: nothing to compare at equal lateness, because no HPA target is noticeably late, or none of ours is as late; the bar is ${percent(bar)}.`
  const least = Math.min(...ratios)
  const met = least >= bar ? 'met at every target' : mean(ratios) >= bar ? 'met on average' : 'missed'
  return (
    `Cold start ${coldStartS} s: ${percent(least)} to ${percent(Math.max(...ratios))} fewer GPU-hours than an HPA at equal lateness, ` +
    `${percent(mean(ratios))} on average of ${ratios.length} targets; the bar is ${percent(bar)}, ${met}.`
  )
}

/** Where next to nothing is late there is no equal lateness; there each rule's cheapest target is what an operator takes. */
function judgeSeldomLate(ours: readonly Point[], hpas: readonly Point[]): string {
  const least = Math.min(...hpas.map(({ gpuHours }) => gpuHours))
  const gpuHours = hoursAt(ours, LATE_RATIO_MIN)
  if (gpuHours === undefined || !Number.isFinite(least)) return ''
  return ` With less than ${percent(LATE_RATIO_MIN, 3)} late, the cheapest HPA target takes ${least.toFixed(0)} GPU-hours, ours ${gpuHours.toFixed(0)}: ${percent(1 - gpuHours / least)} fewer.`
}

/** Below this share nobody notices, and a ratio of two such shares means nothing. */
const LATE_RATIO_MIN = 0.000_05

/** Hours of a curve at this lateness, on a line between two points with the lateness on a logarithmic scale. */
function hoursAt(curve: readonly Point[], lateRatio: number): number | undefined {
  if (lateRatio < LATE_RATIO_MIN) return undefined
  const points = curve.toSorted((a, b) => a.lateRatio - b.lateRatio)
  for (const [i, above] of points.entries()) {
    const below = points[i - 1]
    if (below === undefined || lateRatio < below.lateRatio || lateRatio > above.lateRatio) continue
    const scale = (ratio: number): number => Math.log(Math.max(LATE_RATIO_MIN, ratio))
    const span = scale(above.lateRatio) - scale(below.lateRatio)
    const part = span === 0 ? 0 : (scale(lateRatio) - scale(below.lateRatio)) / span
    return below.gpuHours + part * (above.gpuHours - below.gpuHours)
  }
  return undefined
}

const round = (value: number, digits: number): number => Number(value.toFixed(digits))
const percent = (ratio: number, digits = 1): string => `${(100 * ratio).toFixed(digits)} %`

await runExperiment({
  name: 'autoscale-curve',
  title: 'Autoscaling: GPU-hours against lateness',
  about:
    'The rules of policy/autoscale on a fluid model of one pool (bench/experiments/kit/fluid-fleet.ts): two waves in six ' +
    'hours, gusts of minutes, sudden rises. With --trace the demand is a recording instead, stretched by one day and night ' +
    '(kit/traced-demand.ts): *grown*, each recorded request stands for many within a minute; *many*, so many services at ' +
    'other places of the recording. Every HPA at five targets; it reads metrics that are 7 s old. Better is fewer GPU-hours ' +
    'at the lateness of an HPA target. The HPA on requests counts those that run, too: on what waits alone it refused 11 to ' +
    '32 % of the work with more replicas.',
  options: { 'metric-age': { type: 'string' } },
  seeds: 4,
  run,
})
