import type { Report } from '../../../src/sim/report/report.ts'
import { checkScenario, loadScenario } from '../../../src/sim/scenario/fs-scenario.ts'
import { withPaths } from '../../../src/sim/scenario/variants.ts'
import { type SimulateOptions, simulate } from '../../../src/sim/simulate.ts'
import { openTrace } from '../../../src/sim/traces/fs-trace.ts'
import { mean } from './experiment.ts'

/** One shipped scenario, with some paths set otherwise, through the whole platform in virtual time. */
export interface Play {
  readonly scenario: string
  readonly set: Readonly<Record<string, unknown>>
  readonly seed: number
  readonly trace?: { readonly path: string; readonly factor: number }
  /** Puts an experiment's own policy in the place of ours. */
  readonly install?: SimulateOptions['onAssembled']
}

export async function play({ scenario: name, set, seed, trace, install }: Play): Promise<Report> {
  const { file } = loadScenario(name)
  const scenario = checkScenario(file, withPaths(file.tree, set))
  const requests = trace === undefined ? undefined : openTrace(trace.path, { factor: trace.factor, seed }).requests()
  const report = await simulate(scenario, {
    seed,
    trace: requests,
    ...(install === undefined ? {} : { onAssembled: install }),
  })
  if (report.laws.length > 0) throw new Error(`${name}: law ${report.laws[0]?.law} is broken`)
  return report
}

/** The same under several seeds; `pick` says what to take the mean of. */
export async function playAll(
  plays: Omit<Play, 'seed'>,
  seeds: readonly number[],
): Promise<(pick: (report: Report) => number | undefined) => number> {
  const reports: Report[] = []
  for (const seed of seeds) reports.push(await play({ ...plays, seed }))
  return (pick) => mean(reports.map((report) => pick(report) ?? 0))
}
