/**
 * Would a test notice? Changes one place of the policies, jobs, sharing and money at a time, as a mistake would (a sign,
 * a comparison, a condition, one more, a wrong unit, a forgotten `await`, a dropped statement), and runs the nearest
 * unit tests of `src`. A mutant that no test catches survives: it is a hole in the tests, or it changes nothing
 * (`accepted.ts`). The tree is not touched; results are kept in `dist/mutants.json` until a file that they depend on changes,
 * so a run that was interrupted goes on.
 *
 *   npm run mutants                              200 mutants of seed 1
 *   npm run mutants -- --mutants 50 --seed 7     others
 *   npm run mutants -- --only src/jobs           mutants of one folder
 *   npm run mutants -- --at-least 0.9 --json     exit code 1 below this part caught; the table as JSON
 *   npm run mutants -- --fresh                   forgets what earlier runs found
 */
import { globSync, readFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ACCEPTED } from './accepted.ts'
import { drawMutants } from './draw-mutants.ts'
import { type Mutation, mutationsOf } from './mutations.ts'
import { printReport, reportOf } from './report.ts'
import { TryMutants } from './try-mutants.ts'

const ROOT = join(import.meta.dirname, '../..')

/** What must not break silently: who goes first, what is sold, what is shared, what a job answers. */
const PARTS = [
  'src/policy/**/*.ts',
  'src/jobs/*.ts',
  'src/sharing/*.ts',
  'src/spool/*.ts',
  'src/lifecycle/cost/*.ts',
  'src/lifecycle/sharing/*.ts',
  'src/lifecycle/{keep-books,spending,balances,settle,report-budgets,reserve-work,meter-answer}.ts',
]
/** Adapters of the network and of databases: `test/contract` runs them against real ones, no unit test can. */
const ADAPTER = /\/(?:http|redis|pg|live)-[^/]*$/

/** Below everybody else's work on the machine. */
const NICE = 10

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      mutants: { type: 'string', default: '200' },
      seed: { type: 'string', default: '1' },
      'at-least': { type: 'string', default: '0.9' },
      only: { type: 'string', default: 'src/' },
      json: { type: 'boolean', default: false },
      fresh: { type: 'boolean', default: false },
    },
  })
  setPriority(NICE)
  const all = allMutations()
  const drawn = drawMutants(
    all.filter(({ file }) => file.startsWith(values.only)),
    Number(values.mutants),
    Number(values.seed),
  )
  const tests = pathsOf('src/**/*.test.ts').filter((path) => !path.endsWith('.long.test.ts'))
  const trials = new TryMutants(ROOT, tests, values.fresh)
  try {
    const tried = await trials.try(drawn, (text) => process.stderr.write(`${text}\n`))
    const report = reportOf(tried, { all, accepted: ACCEPTED, seed: Number(values.seed) })
    if (values.json) console.log(JSON.stringify({ ...report, brokenTests: trials.brokenTests }, undefined, 2))
    else printReport(report, trials.brokenTests)
    return report.caughtRatio >= Number(values['at-least']) ? 0 : 1
  } finally {
    await trials.close()
  }
}

function allMutations(): Mutation[] {
  const files = PARTS.flatMap(pathsOf).filter((path) => !path.endsWith('.test.ts') && !ADAPTER.test(path))
  return [...new Set(files)].sort().flatMap((file) => mutationsOf(file, readFileSync(join(ROOT, file), 'utf8')))
}

function pathsOf(pattern: string): string[] {
  return globSync(pattern, { cwd: ROOT }).map((path) => path.replaceAll('\\', '/'))
}

process.exitCode = await main()
