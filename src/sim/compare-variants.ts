import { ConfigError } from '../config/config-error.ts'
import type { ConfigFile } from '../config/fs-config-file.ts'
import { nearest } from '../config/nearest.ts'
import type { Report } from './report/report.ts'
import { COMPARISONS } from './scenario/comparisons.ts'
import { type CheckedExpectation, checkExpectations } from './scenario/expectations.ts'
import { checkScenario } from './scenario/fs-scenario.ts'
import type { Scenario } from './scenario/scenario.ts'
import { withTraceTenants } from './scenario/scenario-trace.ts'
import { PathError, withPaths } from './scenario/variants.ts'
import { simulate } from './simulate.ts'
import { openTrace } from './traces/fs-trace.ts'
import { TraceError } from './traces/trace.ts'

/** A scenario with all its comparisons: the run, its variants, and whether its expectations hold. */
export interface Simulation {
  readonly scenario: Scenario
  readonly report: Report
  readonly variants: Readonly<Record<string, Report>>
  readonly expectations: readonly CheckedExpectation[]
  /** What a reader of the trace should know. */
  readonly notes: readonly string[]
}

export interface SimulationOptions {
  readonly seed: number
  /** Values at paths that replace those of the file, for the variants too. */
  readonly set: Readonly<Record<string, unknown>>
  /** Names of `COMPARISONS`, or PATH=VALUE: each is run beside the scenario. */
  readonly compare?: readonly string[]
  readonly trace?: { readonly path: string; readonly factor: number } | undefined
  /** `ratioOfAll` is the share of the simulated time of all runs, the scenario's and its variants', that has passed. */
  readonly onProgress: (what: string, atS: number, durationS: number, ratioOfAll: number) => void
  /** Real time, for the report's own speed. */
  readonly wallMs?: () => number
}

export async function compareVariants(file: ConfigFile, options: SimulationOptions): Promise<Simulation> {
  try {
    return await runAll(file, options)
  } catch (error) {
    // A broken trace or an unknown path is the user's to correct: one line, no stack.
    if (error instanceof TraceError || error instanceof PathError) throw new ConfigError([error.message])
    throw error
  }
}

async function runAll(file: ConfigFile, options: SimulationOptions): Promise<Simulation> {
  const { seed, set, onProgress } = options
  const trace = options.trace && openTrace(options.trace.path, { factor: options.trace.factor, seed })
  const tree = trace === undefined ? file.tree : withTraceTenants(file.tree, trace)
  const checked = (paths: Readonly<Record<string, unknown>>): Scenario => checkScenario(file, withPaths(tree, paths))
  const scenario = checked(set)
  // Everything is checked before the first run, so that a mistake in the last variant is reported now and not in an
  // hour.
  const others = new Map<string, Scenario>()
  for (const [name, paths] of Object.entries(scenario.variants ?? {})) others.set(name, checked({ ...set, ...paths }))
  for (const name of options.compare ?? []) others.set(name, checked({ ...set, ...comparisonOf(name) }))

  const allS = [scenario, ...others.values()].reduce((sum, { durationS }) => sum + durationS, 0)
  let earlierS = 0
  const run = async (which: Scenario, name: string): Promise<Report> => {
    const { durationS } = which
    const report = await simulate(which, {
      seed,
      trace: trace?.requests(),
      // Answers that are still running at the end take the clock beyond the duration.
      onProgress: (atS) => onProgress(name, atS, durationS, (earlierS + Math.min(atS, durationS)) / allS),
      ...(options.wallMs !== undefined && { wallMs: options.wallMs }),
    })
    earlierS += durationS
    return report
  }
  const report = await run(scenario, scenario.name)
  const variants: Record<string, Report> = {}
  for (const [name, other] of others) variants[name] = await run(other, name)
  return {
    scenario,
    report,
    variants,
    expectations: checkExpectations(scenario.expect ?? [], report, variants),
    notes: [...(trace?.notes ?? [])],
  }
}

function comparisonOf(name: string): Readonly<Record<string, unknown>> {
  const known = COMPARISONS[name]
  if (known !== undefined) return known
  const at = name.indexOf('=')
  if (at > 0) return { [name.slice(0, at)]: parseValue(name.slice(at + 1)) }
  const names = Object.keys(COMPARISONS)
  const meant = nearest(name, names)
  const hint = meant === undefined ? '' : ` Did you mean ${meant}?`
  throw new ConfigError([
    `nothing to compare with is called "${name}".${hint} Known: ${names.join(', ')}; or give PATH=VALUE.`,
  ])
}

/** A value that parses as JSON is that value; everything else is text. */
export function parseValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
