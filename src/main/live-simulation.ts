import type { ConfigFile } from '../config/fs-config-file.ts'
import { type Checked, checkExpectations } from '../sim/expectations.ts'
import type { Report } from '../sim/report.ts'
import type { Scenario } from '../sim/scenario.ts'
import { withPaths } from '../sim/variants.ts'
import { checkScenario } from './fs-scenario.ts'
import { simulate } from './simulate.ts'

/** A scenario with everything that it compares itself with: the run, its variants, and whether it is as expected. */
export interface Simulation {
  readonly report: Report
  readonly variants: Readonly<Record<string, Report>>
  readonly expectations: readonly Checked[]
}

export interface SimulationOptions {
  readonly seed: number
  /** Paths set otherwise than in the file, variants included. */
  readonly set: Readonly<Record<string, unknown>>
  readonly onProgress: (what: string, atS: number, durationS: number) => void
}

export async function runSimulation(file: ConfigFile, options: SimulationOptions): Promise<Simulation> {
  const { seed, set, onProgress } = options
  const run = (paths: Readonly<Record<string, unknown>>, name: string): Promise<Report> => {
    const scenario = checkScenario(file, withPaths(file.tree, paths))
    return simulate(scenario, {
      seed,
      onProgress: (atS) => onProgress(name, atS, scenario.durationS),
      wallMs: () => performance.now(),
    })
  }
  const scenario: Scenario = checkScenario(file, withPaths(file.tree, set))
  const report = await run(set, scenario.name)
  const variants: Record<string, Report> = {}
  for (const [name, paths] of Object.entries(scenario.variants ?? {}))
    variants[name] = await run({ ...set, ...paths }, name)
  return { report, variants, expectations: checkExpectations(scenario.expect ?? [], report, variants) }
}
