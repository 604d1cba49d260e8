import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { compareVariants } from '../../src/sim/compare-variants.ts'
import { type CheckedExpectation, showFigure } from '../../src/sim/scenario/expectations.ts'
import { loadScenario } from '../../src/sim/scenario/fs-scenario.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import type { Cell } from './kit/result.ts'

/** Do the shipped scenarios hold what they expect, whatever the seed, and what is left of it at other loads? */
const FOLDER = join(import.meta.dirname, '../../scenarios')

/** Scenarios that take 3 to 16 s a run on one core: at their own load only. */
const OWN_LOAD_ONLY = new Set([
  'answer-cache',
  'bad-canary',
  'good-canary',
  'large-fleet',
  'noisy-neighbour',
  'prefix-heavy',
  'cold-prefix',
  'retrieval-dead',
  'retrieval-slow',
  'saturated',
])
/** Seeds at most, for a scenario that takes 45 s a run. */
const SEEDS_MAX: Readonly<Record<string, number>> = { 'large-fleet': 3 }

/** One expectation of one scenario at one load, over all seeds. */
interface Held {
  /** The figure nearest to its bound, of all seeds. */
  nearest: CheckedExpectation['nearest']
  /** Seeds with which it does not hold, and the first one's reason. */
  readonly failedSeeds: number[]
  because: string | undefined
}

/** One scenario at one load. */
interface Runs {
  readonly name: string
  readonly load: number
  holds: number
  runs: number
  readonly byWhat: Map<string, Held>
}

async function run({ seeds, loads, only, progress }: ExperimentOptions): Promise<Findings> {
  const names = only ?? namesWithExpectations()
  const all: Runs[] = []
  for (const name of names) {
    for (const load of loads) {
      if (load !== 1 && OWN_LOAD_ONLY.has(name)) continue
      const runs: Runs = { name, load, holds: 0, runs: 0, byWhat: new Map() }
      for (const seed of seeds.slice(0, SEEDS_MAX[name])) {
        progress(`${name} × ${load}, seed ${seed}`)
        add(runs, seed, await checkedRun(name, load, seed))
      }
      all.push(runs)
    }
  }
  return {
    tables: [
      {
        title: 'Seeds that hold all expectations',
        columns: ['scenario', ...loads.map((load) => `load × ${load}`)],
        rows: names.map((name) => [name, ...loads.map((load) => cellOf(all, name, load))]),
      },
      {
        title: 'Expectations: the figure of all seeds that is nearest to its bound, or furthest beyond it',
        columns: ['scenario', 'what', ...loads.map((load) => `load × ${load}`)],
        rows: names.flatMap((name) => rowsOf(all, name, loads)),
      },
    ],
    verdict: loads.map((load) => verdictOf(all, load)),
  }
}

function namesWithExpectations(): string[] {
  const names = readdirSync(FOLDER).filter((file) => file.endsWith('.yaml'))
  return names.map((file) => file.slice(0, -'.yaml'.length)).filter((name) => loadScenario(name).scenario.expect)
}

/** Variants that set a load of their own keep it. */
async function checkedRun(name: string, load: number, seed: number): Promise<CheckedExpectation[]> {
  const { file, scenario } = loadScenario(name)
  const set = load === 1 ? {} : { load: load * (scenario.load ?? 1) }
  const { expectations, report, variants } = await compareVariants(file, { seed, set, onProgress: () => {} })
  const broken = [report, ...Object.values(variants)].flatMap(({ laws }) => laws).length
  const nearest = { value: broken, bound: 0, isUpper: true, slack: -broken }
  return [...expectations, { what: 'no law is broken', holds: broken === 0, because: `${broken} broken`, nearest }]
}

function add(runs: Runs, seed: number, checked: readonly CheckedExpectation[]): void {
  runs.runs++
  if (checked.every(({ holds }) => holds)) runs.holds++
  for (const { what, holds, because, nearest } of checked) {
    const row = runs.byWhat.get(what) ?? { nearest, failedSeeds: [], because: undefined }
    runs.byWhat.set(what, row)
    if (nearest !== undefined && !(nearest.slack >= (row.nearest?.slack ?? Number.POSITIVE_INFINITY)))
      row.nearest = nearest
    if (holds) continue
    row.failedSeeds.push(seed)
    row.because ??= because
  }
}

function cellOf(all: readonly Runs[], name: string, load: number): Cell {
  const runs = all.find((each) => each.name === name && each.load === load)
  return runs === undefined ? null : `${runs.holds} of ${runs.runs}`
}

function rowsOf(all: readonly Runs[], name: string, loads: readonly number[]): Cell[][] {
  const ofLoad = loads.map((load) => all.find((each) => each.name === name && each.load === load)?.byWhat)
  const whats = new Set(ofLoad.flatMap((byWhat) => [...(byWhat?.keys() ?? [])]))
  return [...whats].map((what) => [name, what, ...ofLoad.map((byWhat) => figureOf(byWhat?.get(what)))])
}

function figureOf(held: Held | undefined): Cell {
  if (held === undefined) return null
  const { nearest, failedSeeds, because } = held
  const figure =
    nearest === undefined
      ? (because ?? '')
      : `${showFigure(nearest.value)} (${nearest.isUpper ? '≤' : '≥'} ${showFigure(nearest.bound)})`
  if (failedSeeds.length === 0) return figure
  return `${figure}, not ${failedSeeds.length === 1 ? 'seed' : 'seeds'} ${failedSeeds.join(', ')}`
}

function verdictOf(all: readonly Runs[], load: number): string {
  const runs = all.filter((each) => each.load === load)
  const broken = runs.filter(({ holds, runs: count }) => holds < count)
  const from = `At load × ${load}`
  if (broken.length === 0) return `${from} all ${runs.length} scenarios hold with every seed.`
  const which = broken.map(({ name, holds, runs: count }) => `${name} (${holds} of ${count})`)
  return `${from} ${runs.length - broken.length} of ${runs.length} scenarios hold with every seed; not ${which.join(', ')}.`
}

await runExperiment({
  name: 'scenarios',
  title: 'The shipped scenarios',
  about:
    "Every scenario with its expectations, as `npx spillway simulate NAME --seed N` checks them, at multiples of its own load. Bounds are set at a scenario's own load: at another one, an expectation about counts of requests or about room that is left over may fail without fault. Scenarios that take long run at their own load only.",
  seeds: 12,
  hasLoads: true,
  run,
})
