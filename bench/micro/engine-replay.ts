/**
 * Claim: one replica under conversation traffic at its capacity runs at least 1,000 times faster than real time on one
 * core, and a request costs the engine at most about 15 µs in all.
 *
 * Plays the load (a file, or drawn) at rising speeds through one engine, as the simulator would: submit, and advance
 * whenever the engine says so. Capacity is the highest speed at which the 95th percentile of TTFT is within 2 s and the
 * mean time per output token within 50 ms.
 *
 *   node bench/micro/engine-replay.ts [TRACE.csv] [--profile h100-llama-8b] [--requests 20000]
 */
import { parseArgs } from 'node:util'
import { Engine } from '../../src/engine/engine.ts'
import { type GpuProfile, limitsOf, servingCoefficients } from '../../src/engine/gpu-profile.ts'
import { findGpuProfile } from '../../src/engine/gpu-profiles.ts'
import { drawLoad, type LoadItem, quickened, readLoad } from './conversation-load.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    profile: { type: 'string', default: 'h100-llama-8b' },
    requests: { type: 'string', default: '20000' },
  },
})
const TTFT_US_MAX = 2_000_000
const TPOT_US_MAX = 50_000
const SPEEDS = [1, 2, 3, 3.5, 4, 4.5, 5, 6, 8]

const profile = findGpuProfile(values.profile) as GpuProfile
const load = positionals[0] === undefined ? drawLoad(Number(values.requests), 1) : readLoad(positionals[0])

interface Played {
  readonly speed: number
  readonly requestsPerS: number
  readonly cpuUsPerRequest: number
  readonly timesRealTime: number
  readonly stepsPerRequest: number
  readonly wakeUpsPerRequest: number
  readonly ttftP95Ms: number
  readonly tpotMeanMs: number
  readonly isWithinSlo: boolean
}

function play(items: readonly LoadItem[], speed: number): Played {
  const engine = new Engine({ coefficients: servingCoefficients(profile), limits: limitsOf(profile) })
  const ttftsUs: number[] = []
  let tpotSumUs = 0
  let tpotCount = 0
  let wakeUps = 0
  let now = 0
  const startedAt = process.threadCpuUsage()
  const runUntil = (until: number): void => {
    for (let at = engine.nextEventAt(); at !== undefined && at < until; at = engine.nextEventAt()) {
      now = at
      wakeUps++
      for (const event of engine.advance(at)) {
        if (event.kind !== 'finished') continue
        ttftsUs.push(event.firstTokenAt - event.arrivedAt)
        if (event.usage.outputTokens < 2) continue
        tpotSumUs += (event.at - event.firstTokenAt) / (event.usage.outputTokens - 1)
        tpotCount++
      }
    }
  }
  for (const [i, { atUs, promptTokens, outputTokens }] of items.entries()) {
    runUntil(atUs)
    engine.submit(atUs, { id: `r${i}`, promptTokens, outputTokens })
  }
  runUntil(Number.POSITIVE_INFINITY)
  const { user, system } = process.threadCpuUsage(startedAt)
  const cpuUs = user + system
  const ttftP95Us = ttftsUs.toSorted((a, b) => a - b)[Math.floor(0.95 * ttftsUs.length)] as number
  const tpotMeanUs = tpotSumUs / tpotCount
  return {
    speed,
    requestsPerS: items.length / ((items.at(-1) as LoadItem).atUs / 1e6),
    cpuUsPerRequest: cpuUs / items.length,
    timesRealTime: now / cpuUs,
    stepsPerRequest: engine.view(now).steps / items.length,
    wakeUpsPerRequest: wakeUps / items.length,
    ttftP95Ms: ttftP95Us / 1e3,
    tpotMeanMs: tpotMeanUs / 1e3,
    isWithinSlo: ttftP95Us <= TTFT_US_MAX && tpotMeanUs <= TPOT_US_MAX,
  }
}

// Two rounds unmeasured: the compiler should have seen the paths.
for (const speed of [1, 4]) play(quickened(load, speed), speed)
const played = SPEEDS.map((speed) => play(quickened(load, speed), speed))
const atCapacity = played.findLast((run) => run.isWithinSlo) as Played

console.log(`${profile.name}, ${load.length} requests`)
console.log('req/s   × real time   µs CPU/request   steps/request   wake-ups/request   TTFT p95 ms   ms/token')
for (const run of played) {
  const cells = [
    run.requestsPerS.toFixed(1).padStart(5),
    run.timesRealTime.toFixed(0).padStart(12),
    run.cpuUsPerRequest.toFixed(1).padStart(16),
    run.stepsPerRequest.toFixed(1).padStart(15),
    run.wakeUpsPerRequest.toFixed(1).padStart(18),
    run.ttftP95Ms.toFixed(0).padStart(13),
    run.tpotMeanMs.toFixed(1).padStart(10),
  ]
  console.log(`${cells.join(' ')}${run === atCapacity ? '   ← capacity' : ''}`)
}
console.log(
  JSON.stringify({ bench: 'engine-replay', profile: profile.name, atCapacity, claim: { timesRealTime: 1_000 } }),
)
