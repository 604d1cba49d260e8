import { compareVariants } from '../../src/sim/compare-variants.ts'
import { loadScenario } from '../../src/sim/scenario/fs-scenario.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import type { Cell } from './kit/result.ts'

/** Do the shipped scenarios hold what they expect, whatever the seed? One row for each expectation. */
const NAMES = (
  'baseline noisy-neighbour burst viral-spike-20x saturated small-tenants mixed-sizes ' +
  'lying-clients disconnect-storm retry-storm replica-loss replica-slow blackout'
).split(' ')

interface Row {
  held: number
  /** With the first seed; or with those that failed. */
  seen: string
  readonly failed: string[]
}

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const rows: Cell[][] = []
  let failures = 0
  for (const name of NAMES) {
    const byWhat = new Map<string, Row>()
    for (const seed of seeds) {
      progress(`${name}, seed ${seed}`)
      for (const { what, holds, because } of await checkedRun(name, seed)) {
        const row = byWhat.get(what) ?? { held: 0, seen: because, failed: [] }
        if (holds) row.held++
        else row.failed.push(`seed ${seed}: ${because}`)
        byWhat.set(what, row)
      }
    }
    for (const [what, { held, seen, failed }] of byWhat) {
      failures += failed.length
      rows.push([name, what, `${held} of ${seeds.length}`, failed.length === 0 ? seen : failed.join('; ')])
    }
  }
  const verdict =
    failures === 0
      ? `All ${rows.length} expectations hold with every seed.`
      : `${failures} of ${rows.length * seeds.length} checks do not hold.`
  return {
    tables: [{ title: 'Expectations', columns: ['scenario', 'what', 'seeds', 'seen'], rows }],
    verdict: [verdict],
  }
}

async function checkedRun(name: string, seed: number) {
  const { file } = loadScenario(name)
  const options = { seed, set: {}, compare: [], trace: undefined, onProgress: () => {} }
  const { expectations, report, variants } = await compareVariants(file, options)
  const broken = [report, ...Object.values(variants)].flatMap(({ laws }) => laws).length
  return [...expectations, { what: 'no law is broken', holds: broken === 0, because: `${broken} broken` }]
}

await runExperiment({
  name: 'scenarios',
  title: 'The shipped scenarios',
  about:
    'Every scenario with its expectations, as `npx spillway simulate NAME --seed N` checks them. *Seen*: with seed 1, the least and the most where many values must hold; variants by their names.',
  seeds: 5,
  run,
})
