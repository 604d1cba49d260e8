import { HpaRule } from '../../src/policy/autoscale/hpa-rules.ts'
import { PredictRule } from '../../src/policy/autoscale/predict-rule.ts'
import type { ScalingRule } from '../../src/policy/autoscale/scaling-rule.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import { drawDemand, type FluidRun, playFluid } from './kit/fluid-fleet.ts'
import type { Cell } from './kit/result.ts'

/** GPU-hours against lateness: each rule at five targets, for three cold starts. */
const SECONDS = 6 * 3_600
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
const HPAS: readonly Rule[] = [
  {
    name: 'hpa-queue (requests each)',
    targets: [22, 26, 30, 32, 33.5],
    make: (queueTarget) => new HpaRule({ ...TERMS, queueTarget }, 'queue'),
  },
  {
    name: 'hpa-util (utilisation)',
    targets: [0.65, 0.72, 0.8, 0.85, 0.9],
    make: (utilisationRatio) => new HpaRule({ ...TERMS, utilisationRatio }, 'work'),
  },
]

interface Point {
  readonly target: number
  readonly gpuHours: number
  readonly lateRatio: number
  /** Changes of direction in two cold starts. */
  readonly turns: number
}

function run({ seeds, progress }: ExperimentOptions): Findings {
  const demands = seeds.map((seed) => drawDemand(seed, SECONDS, MEAN_REPLICAS))
  const rows: Cell[][] = []
  const saved: Cell[][] = []
  const verdict: string[] = []
  let turnsMax = 0
  for (const coldStartS of COLD_STARTS_S) {
    const curveOf = ({ name, targets, make }: Rule): Point[] =>
      targets.map((target) => {
        progress(`${coldStartS} s, ${name} ${target}`)
        const runs = demands.map((demand) => playFluid({ rule: make(target), demand, coldStartS }))
        const of = (value: (one: FluidRun) => number): number => mean(runs.map(value))
        const turns = of((one) => one.turns) / (SECONDS / (2 * coldStartS))
        const point = { target, gpuHours: of((one) => one.gpuHours), lateRatio: of((one) => one.lateRatio), turns }
        rows.push([
          coldStartS,
          name,
          target,
          round(point.gpuHours, 1),
          round(100 * point.lateRatio, 3),
          round(turns, 2),
        ])
        return point
      })
    const own = curveOf(PREDICT)
    turnsMax = Math.max(turnsMax, ...own.map(({ turns }) => turns))
    const ratios: number[] = []
    for (const hpa of HPAS) {
      for (const point of curveOf(hpa)) {
        const gpuHours = hoursAt(own, point.lateRatio)
        const ratio = gpuHours === undefined ? undefined : 1 - gpuHours / point.gpuHours
        if (ratio !== undefined) ratios.push(ratio)
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
    const least = Math.min(...ratios)
    const bar = BARS[coldStartS] ?? 0
    verdict.push(
      `Cold start ${coldStartS} s: ${percent(least)} to ${percent(Math.max(...ratios))} fewer GPU-hours than an HPA at equal lateness, ` +
        `${percent(mean(ratios))} on average; the bar is ${percent(bar)}, ${least >= bar ? 'met at every target' : mean(ratios) >= bar ? 'met on average' : 'missed'}.`,
    )
  }
  verdict.push(`Most changes of direction in two cold starts: ${turnsMax.toFixed(2)}; the bar is 1.`)
  return {
    tables: [
      {
        title:
          'Six hours, work of about 90 GPU-hours: hours paid for, share refused, changes of direction in two cold starts',
        columns: ['cold start, s', 'rule', 'target', 'GPU-hours', 'late, %', 'turns'],
        rows,
      },
      {
        title:
          'At the lateness of each HPA target: its hours, and those of the predicting rule (between two of its targets)',
        columns: ['cold start, s', 'HPA', 'target', 'late, %', 'GPU-hours', 'predict', 'saved, %'],
        rows: saved,
      },
    ],
    verdict,
  }
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
const percent = (ratio: number): string => `${(100 * ratio).toFixed(1)} %`

await runExperiment({
  name: 'autoscale-curve',
  title: 'Autoscaling: GPU-hours against lateness',
  about:
    'The rules of policy/autoscale on a fluid model of one pool (bench/experiments/kit/fluid-fleet.ts): two waves in six ' +
    'hours, gusts of minutes, sudden rises. Every rule at five targets. Better is fewer GPU-hours at the lateness of an ' +
    'HPA target. The HPA on requests counts those that run, too: on what waits alone it refused 11 to 32 % of the work ' +
    'with more replicas.',
  seeds: 4,
  run,
})
