/**
 * Claim: a pure-decode step of 256 sequences, taken one at a time, costs less than 20 µs and allocates nothing per token.
 *
 * Four ways to make an engine take single steps: asked at every boundary (nothing to report), one sequence of 256
 * watched token by token, all 256 watched, and speculation, which looks at every sequence.
 *
 *   node bench/micro/engine-decode-step.ts
 */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Engine, type EngineOptions } from '../../src/engine/engine.ts'
import {
  type GpuProfile,
  limitsOf,
  type RooflineCoefficients,
  servingCoefficients,
} from '../../src/engine/gpu-profile.ts'
import { findGpuProfile } from '../../src/engine/gpu-profiles.ts'
import { constantAcceptance } from '../../src/engine/speculation.ts'
import { stepUs } from '../../src/engine/step-time.ts'

const SEQUENCES = 256
const STEPS = 100_000
/** Few enough that the young generation is not collected on the way, which would hide what was allocated. */
const STEPS_WEIGHED = 40
const profile = findGpuProfile('h200-llama-8b') as GpuProfile
const limits = { ...limitsOf(profile), blockCount: 10_000_000 }
/** Contexts cost nothing here, so that every step takes the same time and somebody who asks can hit each one. */
const coefficients = { ...servingCoefficients(profile), kvReadUsPerToken: 0 } as RooflineCoefficients
const base: EngineOptions = { coefficients, limits }
const speculation = {
  draftTokens: 3,
  acceptance: constantAcceptance(3, 0.7),
  draftUsPerToken: 300,
  draftUsPerSequenceToken: 0.5,
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

interface Measured {
  readonly name: string
  readonly usPerStep: number
  readonly bytesPerToken: number
}

function measure(name: string, options: EngineOptions, watched: number): Measured {
  const engine = new Engine(options)
  for (let i = 0; i < SEQUENCES; i++) {
    const reports = i < watched ? 'every-step' : 'few'
    engine.submit(0, { id: `s${i}`, promptTokens: 500 + i, outputTokens: 8 * STEPS, reports })
  }
  let now = 60_000_000
  engine.advance(now)
  const decode = { decodeCount: SEQUENCES, decodeTokens: SEQUENCES, contextSum: 0, contextMax: 0 }
  const decodeUs = Math.ceil(stepUs(coefficients, { ...decode, prefillTokens: 0, chunkPairs: 0, contextPairs: 0 }))
  const isLeaping = watched === 0 && options.speculation === undefined
  const take = (steps: number): void => {
    for (let i = 0; i < steps; i++) {
      now = isLeaping ? now + decodeUs : (engine.nextEventAt() as number)
      engine.advance(now)
    }
  }
  take(STEPS / 10)
  const before = engine.view(now)
  const startedAt = process.threadCpuUsage()
  take(STEPS)
  const { user, system } = process.threadCpuUsage(startedAt)
  const after = engine.view(now)
  collectGarbage()
  const bytesBefore = process.memoryUsage().heapUsed
  take(STEPS_WEIGHED)
  const bytes = process.memoryUsage().heapUsed - bytesBefore
  const weighed = engine.view(now)
  return {
    name,
    usPerStep: (user + system) / (after.steps - before.steps),
    bytesPerToken: bytes / (weighed.generationTokens - after.generationTokens),
  }
}

const results = [
  measure('asked at every step', base, 0),
  measure('one of 256 watched', base, 1),
  measure('all 256 watched', base, SEQUENCES),
  measure('speculation, 3 draft tokens', { ...base, speculation }, 0),
]
console.log('256 sequences, one step            µs/step   bytes/token')
for (const { name, usPerStep, bytesPerToken } of results) {
  console.log(`${name.padEnd(32)} ${usPerStep.toFixed(2).padStart(9)} ${bytesPerToken.toFixed(2).padStart(13)}`)
}
console.log(JSON.stringify({ bench: 'engine-decode-step', results, claim: { usPerStep: 20 } }))
