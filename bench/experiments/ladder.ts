import { COMPARISONS } from '../../src/sim/scenario/comparisons.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import { playAll } from './kit/play.ts'
import type { Cell } from './kit/result.ts'

/** What does giving up quality before answers bring? One tenant goes viral, with the ladder on and off. */
const COLUMNS = [
  'in the spike',
  'good answers/s',
  'viral: completed',
  'viral: of those degraded',
  'viral: shed',
  'viral: TTFT p95 ms',
  'others: shed',
  'others: TTFT p95 ms',
  'rung changes',
]

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const rows: Cell[][] = []
  for (const [label, name] of [
    ['ladder on', 'spillway'],
    ['ladder off', 'no-ladder'],
    ['no admission either, first come, first served', 'fifo'],
  ] as const) {
    progress(label)
    const over = await playAll(
      { scenario: 'viral-spike-20x', set: { ...COMPARISONS[name], variants: {}, expect: [] } },
      seeds,
    )
    rows.push([
      label,
      over(({ parts }) => parts['spike']?.goodput.requestsPerS),
      over(({ parts }) => parts['spike']?.tenants['viral']?.requests.completed),
      over(({ parts }) => parts['spike']?.tenants['viral']?.degraded),
      over(({ parts }) => parts['spike']?.tenants['viral']?.requests.shed),
      over(({ parts }) => parts['spike']?.tenants['viral']?.latency.ttft.p95),
      over(({ parts }) => sum(['shop', 'bank'].map((id) => parts['spike']?.tenants[id]?.requests.shed ?? 0))),
      over(({ parts }) =>
        Math.max(...['shop', 'bank'].map((id) => parts['spike']?.tenants[id]?.latency.ttft.p95 ?? 0)),
      ),
      over(({ ladder }) => ladder.changes),
    ])
  }
  const [on, off] = rows as [Cell[], Cell[]]
  const more = Number(on[2]) - Number(off[2])
  return {
    tables: [
      {
        title: 'Thirty seconds of twenty times the traffic of one tenant, on two thirds of the capacity',
        columns: COLUMNS,
        rows,
      },
    ],
    verdict: [
      `With the ladder ${Math.round(more).toLocaleString('en-US')} more of the viral tenant’s requests are answered in the spike (${(100 * (Number(on[2]) / Number(off[2]) - 1)).toFixed(0)} %), ${Math.round(Number(on[3])).toLocaleString('en-US')} on a lower rung (less context, shorter answers, or the small model’s); good answers a second ${Number(on[1]).toFixed(0)} against ${Number(off[1]).toFixed(0)}. The small model’s replica is idle when the ladder is off: part of the gain is that hardware.`,
    ],
  }
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

await runExperiment({
  name: 'ladder',
  title: 'The ladder: quality before answers',
  about:
    'Scenario viral-spike-20x: four large replicas and one small; three tenants of equal weight, one of which sends twenty times as much for half a minute. Counts are of requests that arrived in that half minute.',
  seeds: 1,
  run,
})
