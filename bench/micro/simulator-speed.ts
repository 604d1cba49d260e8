import { memoryUsage } from 'node:process'
import { simulate } from '../../src/sim/simulate.ts'
import { azureShape } from '../experiments/kit/azure-shape.ts'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: the simulator takes at least 20,000 requests a second of one core through the whole story, on chats like
 * Azure's with four replicas, and its memory does not grow with the length of the run. CPU time, not time on the wall:
 * other people use the machine. `--seconds N` of simulated time
 * (2,000), `--rate N` requests a second (60). Run it with --expose-gc to have the heap looked at after a collection.
 */
const numberAfter = (flag: string, otherwise: number): number => {
  const at = process.argv.indexOf(flag)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}

const seconds = numberAfter('--seconds', 2_000)
const rate = numberAfter('--rate', 60)

async function run(durationS: number): Promise<{ perS: number; heapMb: number; requests: number }> {
  const before = process.threadCpuUsage()
  const report = await simulate(azureShape(durationS, rate), { seed: 1 })
  const used = process.threadCpuUsage(before)
  const cpuS = (used.user + used.system) / 1e6
  globalThis.gc?.()
  return {
    perS: report.requests.arrived / cpuS,
    heapMb: memoryUsage().heapUsed / 1e6,
    requests: report.requests.arrived,
  }
}

await run(20)
const short = await run(seconds / 4)
const long = await run(seconds)
const findings: Finding[] = [
  { name: `${long.requests} requests, CPU time of one`, value: 1e6 / long.perS, unit: 'µs', below: 50 },
  { name: 'requests in a second of one core', value: long.perS, unit: '' },
  { name: `heap after ${short.requests} requests`, value: short.heapMb, unit: 'MB' },
  { name: `heap after ${long.requests} requests`, value: long.heapMb, unit: 'MB' },
]
tell('simulator, whole story, chats like Azure’s on four replicas', findings)
