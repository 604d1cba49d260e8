import { type GpuProfile, kvBlockCount, servingCoefficients } from '../../src/engine/gpu-profile.ts'
import { findGpuProfile } from '../../src/engine/gpu-profiles.ts'
import { IDLE_STEP } from '../../src/engine/mean-step.ts'
import { stepUs } from '../../src/engine/step-time.ts'

/**
 * The A100 of the reference documents beside one whose kernels were measured: how fast does it read, how fast does it
 * write, and what does a batch bring?
 *
 *   node bench/micro/reference-a100.ts
 */
const CONTEXT_TOKENS = 1_000
const CHUNK_TOKENS = 1_024
const BLOCK_TOKENS = 16

function decodePerS(profile: GpuProfile, sequences: number): number {
  const contextSum = sequences * CONTEXT_TOKENS
  const load = { ...IDLE_STEP, decodeCount: sequences, decodeTokens: sequences, contextSum, contextMax: CONTEXT_TOKENS }
  return (1e6 * sequences) / stepUs(servingCoefficients(profile), load)
}

function prefillPerS(profile: GpuProfile): number {
  const load = { ...IDLE_STEP, prefillTokens: CHUNK_TOKENS, chunkPairs: CHUNK_TOKENS ** 2 / 2 }
  return (1e6 * CHUNK_TOKENS) / stepUs(servingCoefficients(profile), load)
}

const round = (value: number): string => Math.round(value).toLocaleString('en-US')

for (const name of ['reference-a100', 'a100-llama-8b']) {
  const profile = findGpuProfile(name)!
  const one = decodePerS(profile, 1)
  const batch = (count: number): string => {
    const perS = decodePerS(profile, count)
    const usdPerMillion = (1e6 * profile.usdPerHour) / (3_600 * perS)
    return `${count}: ${round(perS)} (${(perS / one).toFixed(1)} ×, $${usdPerMillion.toFixed(2)}/M)`
  }
  console.log(`${name}, $${profile.usdPerHour} an hour`)
  console.log(`  reads ${round(prefillPerS(profile))} tokens/s, in a step of ${CHUNK_TOKENS}`)
  console.log(
    `  writes tokens/s by sequences, ${round(CONTEXT_TOKENS)} tokens of context each: ${[1, 4, 16, 64].map(batch).join(', ')}`,
  )
  console.log(
    `  keeps ${round(BLOCK_TOKENS * kvBlockCount(profile.memory, BLOCK_TOKENS))} tokens of keys and values, ${round(profile.memory.kvBytesPerToken)} bytes each`,
  )
}
