import { LENGTH_NAMES } from '../../test/support/answer-lengths.ts'
import { measureServiceGap } from '../../test/support/served-gap.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import type { Cell } from './kit/result.ts'

/**
 * How much fairness do wrong predictions of length cost, through the whole platform? What the order of turns alone does,
 * on an engine of slots, is in `bench/micro/fairness-gap.ts`; on the VTC paper's engine in `vtc.ts`.
 */
const TIMES_MAX = 1.1
/** Sixteen times what the replica does. */
const BACKLOGGED_PER_S = 960

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const rows: Cell[][] = []
  for (const tenantCount of [2, 8]) {
    const gapOf = async (knows: 'true-length' | 'history'): Promise<number> => {
      const gaps: number[] = []
      for (const seed of seeds) {
        progress(`${tenantCount} tenants, ${knows}, seed ${seed}`)
        gaps.push((await measureServiceGap({ tenantCount, knows, seed })).gap)
      }
      return mean(gaps)
    }
    const known = await gapOf('true-length')
    const predicted = await gapOf('history')
    rows.push([
      `${tenantCount} tenants`,
      Math.round(known),
      Math.round(predicted),
      Number((predicted / known).toFixed(3)),
    ])
  }
  const varied: Cell[][] = []
  for (const lengths of LENGTH_NAMES) {
    for (const tenantCount of [2, 8]) {
      const gaps: number[] = []
      for (const seed of seeds) {
        progress(`${tenantCount} tenants, ${lengths}, seed ${seed}`)
        const load = { tenantCount, lengths, ratePerS: BACKLOGGED_PER_S, durationS: 150 }
        gaps.push((await measureServiceGap({ ...load, knows: 'history', seed })).gap)
      }
      varied.push([`${tenantCount} tenants, ${lengths}`, Math.round(mean(gaps))])
    }
  }
  const worst = Math.max(...rows.map((row) => Number(row[3])))
  return {
    tables: [
      { title: 'Accumulated service gap', columns: ['', 'true lengths', 'from history', 'times'], rows },
      { title: 'The same where no lane is ever empty, by lengths', columns: ['', 'from history'], rows: varied },
    ],
    verdict: [`At most ${TIMES_MAX} times was asked for; ${worst} is ${worst <= TIMES_MAX ? 'met' : 'missed'}.`],
  }
}

await runExperiment({
  name: 'served-gap',
  title: 'Predicted against true lengths, through the whole platform',
  about:
    'Two and eight tenants that ask for four times what one replica does, 256 tokens in and 256 out, five minutes. Service is prompt + 4 · output tokens, as the platform shares it; the gap is the most that anybody was ahead of anybody. Mean over seeds.',
  seeds: 10,
  run,
})
