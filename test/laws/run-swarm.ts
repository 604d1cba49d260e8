import { Rng } from '../../src/base/rng.ts'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { journalOf } from '../support/simulated.ts'
import { spreadOut } from './draw-regions.ts'
import { drawScenario } from './draw-scenario.ts'

/**
 * Laws L1–L6 and L10's twin under random workloads, faults *and* configurations. L2, L3 and L6 are asserted by the
 * dispatcher at every window's end, L4 by the budgets; a broken assertion inside a request is a fault, and there must
 * be none. Gives what the first case that failed broke. Every case is drawn from one seed, printed when it fails:
 *
 *   SPILLWAY_SWARM_SEED=123 npx vitest run test/laws/swarm.test.ts
 */
export async function brokenLawsInSwarm(seconds: number): Promise<string[]> {
  const given = process.env['SPILLWAY_SWARM_SEED']
  const first = given === undefined ? Rng.stream(Date.now(), 'swarm').below(1_000_000_000) : Number(given)
  const endsAt = performance.now() + seconds * 1_000
  let count = 0
  for (let seed = first; count === 0 || (given === undefined && performance.now() < endsAt); seed++) {
    const scenario = spreadOut(drawScenario(seed), seed)
    const problems = await brokenLawsOf(scenario, seed).catch((error: unknown) => [String(error)])
    if (problems.length > 0) return [`SPILLWAY_SWARM_SEED=${seed}`, ...problems, JSON.stringify(scenario, null, 1)]
    count++
  }
  process.stderr.write(`swarm: ${count} cases from seed ${first}\n`)
  return []
}

export async function brokenLawsOf(scenario: Scenario, seed: number): Promise<string[]> {
  const { entries, report } = await journalOf(scenario, { seed })
  const problems = report.laws.map(({ law, ticketId, what }) => `${law} ${ticketId}: ${what}`)
  for (const entry of entries) if (entry.kind === 'fault-seen') problems.push(`fault: ${entry.because}`)
  return problems.slice(0, 5)
}
