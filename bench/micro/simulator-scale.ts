import { loadScenario } from '../../src/sim/scenario/fs-scenario.ts'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { simulate } from '../../src/sim/simulate.ts'
import { azureShape } from '../experiments/kit/azure-shape.ts'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: the simulator takes 20,000 requests in a second of CPU time with eight tenants and with a thousand, on four
 * replicas, and 10,000 with ten thousand tenants on a thousand replicas. CPU time is the whole process's, user and
 * system: collecting garbage and compiling happen on other threads. One case for each process, because the peak of
 * memory is a process's: `--case few`, `--case many`, `--case large-fleet`; `--seconds N` of simulated time (3,000) for
 * the first two.
 */
const valueAfter = (flag: string, otherwise: string): string => {
  const at = process.argv.indexOf(flag)
  return at < 0 ? otherwise : (process.argv[at + 1] ?? otherwise)
}

const RATE_PER_S = 60

const seconds = Number(valueAfter('--seconds', '3000'))
const name = valueAfter('--case', 'many')

interface Case {
  readonly scenario: () => Scenario
  /** Microseconds of CPU time for each request. */
  readonly belowUs: number
}

const CASES: Readonly<Record<string, Case>> = {
  few: { scenario: () => azureShape(seconds, RATE_PER_S), belowUs: 50 },
  many: { scenario: () => azureShape(seconds, RATE_PER_S, 1_000), belowUs: 50 },
  'large-fleet': { scenario: () => loadScenario('large-fleet').scenario, belowUs: 100 },
}

const chosen = CASES[name]
if (chosen === undefined) throw new Error(`--case is ${name}, not one of ${Object.keys(CASES).join(', ')}`)

let requests = 0
const before = process.cpuUsage()
await simulate(chosen.scenario(), {
  seed: 1,
  onEntry: ({ kind }) => {
    if (kind === 'arrived') requests++
  },
})
const { user, system } = process.cpuUsage(before)
const cpuUs = user + system
const findings: Finding[] = [
  { name: `${requests} requests, CPU time of one`, value: cpuUs / requests, unit: 'µs', below: chosen.belowUs },
  { name: 'requests in a second of CPU time', value: requests / (cpuUs / 1e6), unit: '' },
  { name: 'peak of resident memory', value: process.resourceUsage().maxRSS / 1_024, unit: 'MB' },
]
tell(`simulator, whole story: ${name}`, findings)
