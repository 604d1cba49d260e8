import { createHash } from 'node:crypto'
import type { Entry } from '../../src/domain/entry.ts'
import { compareVariants, type Simulation } from '../../src/sim/compare-variants.ts'
import type { Report } from '../../src/sim/report/report.ts'
import { checkScenario, loadScenario } from '../../src/sim/scenario/fs-scenario.ts'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { withPaths } from '../../src/sim/scenario/variants.ts'
import { type SimulateOptions, simulate } from '../../src/sim/simulate.ts'

/** Scenarios in virtual time, for tests: by name with some paths set otherwise, or made up on the spot. */
export function runNamed(name: string, seed: number, set: Readonly<Record<string, unknown>> = {}): Promise<Simulation> {
  const { file } = loadScenario(name)
  return compareVariants(file, { seed, set, compare: [], trace: undefined, onProgress: () => {} })
}

/** What did not hold, as sentences; broken laws of any of its runs included. */
export function failuresOf({ expectations, report, variants }: Simulation): string[] {
  const failed = expectations.filter(({ holds }) => !holds).map(({ what, because }) => `${what}: ${because}`)
  const laws = [report, ...Object.values(variants)].flatMap((each) => each.laws)
  return [...failed, ...laws.map(({ law, what }) => `${law}: ${what}`)]
}

export async function journalOf(
  scenario: Scenario,
  options: SimulateOptions,
): Promise<{ entries: Entry[]; report: Report }> {
  const entries: Entry[] = []
  const report = await simulate(scenario, { ...options, onEntry: (entry) => entries.push(entry) })
  return { entries, report }
}

export function namedScenario(name: string, set: Readonly<Record<string, unknown>> = {}): Scenario {
  const { file } = loadScenario(name)
  return checkScenario(file, withPaths(file.tree, set))
}

export function hashOf(entries: readonly Entry[]): string {
  const hash = createHash('sha256')
  for (const entry of entries) hash.update(JSON.stringify(entry))
  return hash.digest('hex')
}

/** Ten seconds of a shipped scenario, after four to warm up, without what it expects of a whole run. */
export const shortScenario = (name: string, terms: Partial<Scenario> = {}): Scenario => ({
  ...loadScenario(name).scenario,
  durationS: 14,
  warmupS: 4,
  parts: {},
  expect: [],
  ...terms,
})
