import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Scenario } from '../../src/sim/scenario/scenario.ts'
import { simulate } from '../../src/sim/simulate.ts'
import { azureShape } from './kit/azure-shape.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import type { Cell } from './kit/result.ts'

/** How fast is the simulator, and how much memory does a million requests take? */
/** A full collection on demand, without a flag on the command line. */
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const REQUESTS = 1_000_000
const RATE_PER_S = 60
const ROWS = 10

interface Look {
  readonly requests: number
  readonly cpuS: number
  readonly wallS: number
  readonly heapMb: number
  readonly rssMb: number
}

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const seed = seeds[0]!
  // What a first run leaves behind (compiled code, caches) is not the run's memory.
  await simulate(azureShape(60, RATE_PER_S), { seed })
  progress('a million requests')
  const million = await lookAt(azureShape(Math.ceil((REQUESTS * 1.002) / RATE_PER_S), RATE_PER_S), seed)
  const last = million.at(-1)!
  const second = million[1]!
  return {
    tables: [{ title: 'A million requests, on four replicas', columns: COLUMNS, rows: million.map(rowOf) }],
    verdict: [
      `${Math.round(last.requests / last.cpuS).toLocaleString('en-US')} requests in a second of one core over the whole run (target 20,000: ${last.requests / last.cpuS >= 20_000 ? 'met' : 'missed'}); a million take ${Math.round((1e6 * last.cpuS) / last.requests)} s of it.`,
      `Memory after a collection: ${second.heapMb.toFixed(1)} MB after ${second.requests.toLocaleString('en-US')} requests, ${last.heapMb.toFixed(1)} MB after ${last.requests.toLocaleString('en-US')}.`,
    ],
  }
}

/** Looks ten times at evenly spaced requests: processor time of this thread and its collectors' share of it. */
async function lookAt(scenario: Scenario, seed: number): Promise<Look[]> {
  const looks: Look[] = []
  let requests = 0
  let lookedAt = 0
  const startedMs = performance.now()
  const before = process.threadCpuUsage()
  let collectingUs = 0
  const look = (): void => {
    const used = process.threadCpuUsage(before)
    const cpuS = (used.user + used.system - collectingUs) / 1e6
    const collecting = process.threadCpuUsage()
    collectGarbage()
    const { user, system } = process.threadCpuUsage(collecting)
    collectingUs += user + system
    const { heapUsed, rss } = process.memoryUsage()
    const wallS = (performance.now() - startedMs) / 1_000
    looks.push({ requests, cpuS, wallS, heapMb: heapUsed / 1e6, rssMb: rss / 1e6 })
  }
  await simulate(scenario, {
    seed,
    onEntry: (entry) => {
      if (entry.kind === 'arrived') requests++
    },
    onProgress: () => {
      if (requests - lookedAt < REQUESTS / ROWS) return
      lookedAt = requests
      look()
    },
  })
  if (lookedAt !== requests) look()
  return looks
}

const COLUMNS = ['requests', 'CPU s', 'requests per CPU second', 'seconds on the wall', 'heap MB', 'resident MB']

const rowOf = ({ requests, cpuS, wallS, heapMb, rssMb }: Look): Cell[] => [
  requests.toLocaleString('en-US'),
  cpuS,
  Math.round(requests / cpuS),
  wallS,
  heapMb,
  rssMb,
]

await runExperiment({
  name: 'simulator-speed',
  title: 'The simulator: speed and memory',
  about:
    'Chats with the lengths and the burstiness of Azure’s conversations, 60 a second from eight tenants on four replicas, through the whole story: admission, lanes, placement, engine steps, settlement, journal, laws and report. CPU seconds are those of the simulating thread; the wall depends on who else uses the machine. The heap is looked at after a full collection, which is not counted.',
  seeds: 1,
  run,
})
