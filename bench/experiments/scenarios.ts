import { loadScenario } from '../../src/main/fs-scenario.ts'
import { runSimulation } from '../../src/main/live-simulation.ts'

/**
 * Do the shipped scenarios hold what they expect, whatever the seed? Prints a table in Markdown, one row for each
 * expectation: what was seen with each seed, or that it failed. `--seeds N` (5), names to run only some.
 */
const NAMES = (
  'baseline noisy-neighbour burst viral-spike-20x saturated small-tenants mixed-sizes ' +
  'lying-clients disconnect-storm retry-storm replica-loss replica-slow blackout'
).split(' ')
const at = process.argv.indexOf('--seeds')
const seedCount = at < 0 ? 5 : Number(process.argv[at + 1])
const given = process.argv.slice(2).filter((word, i, words) => !word.startsWith('--') && words[i - 1] !== '--seeds')

console.log(`| scenario | expectation | seeds that hold | seed 1 |\n|---|---|---|---|`)
let isFine = true
for (const name of given.length > 0 ? given : NAMES) {
  const { file } = loadScenario(name)
  const held = new Map<string, { count: number; first: string; failed: string[] }>()
  for (let seed = 1; seed <= seedCount; seed++) {
    const run = await runSimulation(file, { seed, set: {}, compare: [], trace: undefined, onProgress: () => {} })
    const laws = [run.report, ...Object.values(run.variants)].flatMap((report) => report.laws)
    const all = [...run.expectations, { what: 'no law is broken', holds: laws.length === 0, because: `${laws.length}` }]
    for (const { what, holds, because } of all) {
      const row = held.get(what) ?? { count: 0, first: because, failed: [] }
      if (holds) row.count++
      else row.failed.push(`${seed}: ${because}`)
      held.set(what, row)
    }
  }
  for (const [what, { count, first, failed }] of held) {
    isFine &&= failed.length === 0
    console.log(
      `| ${name} | ${what} | ${count} of ${seedCount} | ${failed.length > 0 ? `FAILS ${failed.join('; ')}` : first} |`,
    )
  }
}
process.exitCode = isFine ? 0 : 1
