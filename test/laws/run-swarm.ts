import { Rng } from '../../src/base/rng.ts'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { journalOf } from '../support/simulated.ts'
import { spreadOut } from './draw-regions.ts'
import { drawScenario } from './draw-scenario.ts'

/**
 * Laws L1–L6 and L10's twin under random workloads, faults *and* configurations. L2, L3 and L6 are asserted by the
 * dispatcher at every window's end, L4 by the budgets; a broken assertion inside a request is a fault, and there must
 * be none. Gives what the first case that failed broke.
 *
 * Seeds of a test run are the same every time, so that a red run tells of the change that was made. New ones are
 * looked for apart (`npm run swarm`), and each case that fails prints its seed:
 *
 *   SPILLWAY_SWARM_SEED=123 npx vitest run test/laws/swarm.test.ts
 */
export async function brokenLawsInSwarm(seconds: number, firstSeed: number): Promise<string[]> {
  const given = process.env['SPILLWAY_SWARM_SEED']
  const first = given === 'new' ? Rng.stream(Date.now(), 'swarm').below(1_000_000_000) : Number(given ?? firstSeed)
  const isOne = given !== undefined && given !== 'new'
  const endsAt = performance.now() + Number(process.env['SPILLWAY_SWARM_SECONDS'] ?? seconds) * 1_000
  let count = 0
  for (let seed = first; count === 0 || (!isOne && performance.now() < endsAt); seed++) {
    const scenario = spreadOut(drawScenario(seed), seed)
    // A try with an id of its own has another truth to its judges: other tickets are under way when something is lost.
    const marksTries = seed % 2 === 1
    const problems = await brokenLawsOf(scenario, seed, marksTries).catch((error: unknown) => [String(error)])
    if (problems.length > 0) return [`SPILLWAY_SWARM_SEED=${seed}`, ...problems, JSON.stringify(scenario, null, 1)]
    count++
  }
  process.stderr.write(`swarm: ${count} cases from seed ${first}\n`)
  return []
}

export async function brokenLawsOf(scenario: Scenario, seed: number, marksTries = false): Promise<string[]> {
  const { entries, report } = await journalOf(scenario, { seed, marksTries })
  const problems = report.laws.map(({ law, ticketId, what }) => `${law} ${ticketId}: ${what}`)
  for (const entry of entries) if (entry.kind === 'fault-seen') problems.push(`fault: ${entry.because}`)
  return problems.slice(0, 5)
}
