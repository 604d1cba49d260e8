/**
 * Claim: splitting a step of 256 sequences takes less than 15 µs, and all books of cost together at most 2 % of the
 * simulator's time.
 *
 * The first by the clock of this thread's CPU: 256 chunks of prompts in one step (the dearest step), a step of 256 decodes,
 * and a look at all 256 as once a second. The second by a profile of a simulated run: self time of the files that keep the
 * books, as a share of all samples that are not idle.
 *
 *   node bench/micro/attribution.ts [SCENARIO] [SECONDS]
 */
import { Session } from 'node:inspector/promises'
import { Engine } from '../../src/engine/engine.ts'
import { limitsOf, servingCoefficients } from '../../src/engine/gpu-profile.ts'
import { findGpuProfile } from '../../src/engine/gpu-profiles.ts'
import { Sequence } from '../../src/engine/sequence.ts'
import { StepShares } from '../../src/engine/step-share.ts'
import { StepTime, TICKS_PER_US } from '../../src/engine/step-time.ts'
import { checkScenario, loadScenario } from '../../src/sim/scenario/fs-scenario.ts'
import { withPaths } from '../../src/sim/scenario/variants.ts'
import { simulate } from '../../src/sim/simulate.ts'

const SEQUENCES = 256
const ROUNDS = 20_000
const profile = findGpuProfile('h200-llama-8b')
if (profile === undefined) throw new Error('the profile is gone')
const options = { coefficients: servingCoefficients(profile), limits: { ...limitsOf(profile), blockCount: 1_000_000 } }

function cpuUsOf(times: number, act: () => void): number {
  for (let i = 0; i < times / 10; i++) act()
  const before = process.threadCpuUsage()
  for (let i = 0; i < times; i++) act()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / times
}

function splitting(): { readonly chunksUs: number; readonly decodesUs: number; readonly lookUs: number } {
  const stepTime = new StepTime(options.coefficients, 2_048)
  const shares = new StepShares(options.coefficients, stepTime, { isBursty: false, draftUsAlone: 0 })
  const sequences = Array.from({ length: SEQUENCES }, (_, i) => {
    const sequence = new Sequence({ id: `s${i}`, promptTokens: 2_000, outputTokens: 9 }, i, 0)
    sequence.plannedTokens = 7
    sequence.computedTokens = 107
    return sequence
  })
  const idle = {
    decodeCount: 0,
    decodeTokens: 0,
    contextSum: 0,
    contextMax: 0,
    prefillTokens: 0,
    chunkPairs: 0,
    contextPairs: 0,
  }
  const reading = { ...idle, prefillTokens: 7 * SEQUENCES, chunks: sequences }
  const decoding = {
    ...idle,
    decodeCount: SEQUENCES,
    decodeTokens: SEQUENCES,
    contextSum: 2_000 * SEQUENCES,
    chunks: [],
  }
  const ticks = 10_000 * TICKS_PER_US
  const chunksUs = cpuUsOf(ROUNDS / 10, () => shares.begin(reading, [], ticks))
  const decodesUs = cpuUsOf(ROUNDS, () => shares.begin(decoding, [], ticks))
  const engine = new Engine(options)
  for (let i = 0; i < SEQUENCES; i++) engine.submit(0, { id: `s${i}`, promptTokens: 500, outputTokens: 1_000_000 })
  let now = 60_000_000
  engine.advance(now)
  const lookUs = cpuUsOf(ROUNDS / 10, () => {
    now += 1_000
    for (let i = 0; i < SEQUENCES; i++) engine.engineTime(now, `s${i}`)
  })
  return { chunksUs, decodesUs, lookUs }
}

/** The split in the engine, the books of the gateway, and what only the simulator does with them. */
const FILES = {
  split: /engine\/(step-share|share-terms|share-alone|sequence-time)/,
  books: /policy\/cost\/|lifecycle\/cost\//,
  checks: /sim\/(cost-law|report\/cost-tally)/,
} as const

type Ratios = Record<keyof typeof FILES, number>

async function simulatorRatios(name: string, seconds: number): Promise<Ratios> {
  const { file } = loadScenario(name)
  const set = { durationS: seconds, warmupS: 0, expect: [], variants: {} }
  const scenario = checkScenario(file, withPaths(file.tree, set))
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: 200 })
  await simulate(scenario, { seed: 2 })
  await session.post('Profiler.start')
  await simulate(scenario, { seed: 1 })
  const { profile: seen } = await session.post('Profiler.stop')
  session.disconnect()
  let all = 0
  const hits: Ratios = { split: 0, books: 0, checks: 0 }
  for (const { callFrame, hitCount = 0 } of seen.nodes) {
    if (callFrame.functionName === '(idle)') continue
    all += hitCount
    for (const part of ['split', 'books', 'checks'] as const)
      if (FILES[part].test(callFrame.url)) hits[part] += hitCount
  }
  return { split: hits.split / all, books: hits.books / all, checks: hits.checks / all }
}

const [scenario = 'noisy-neighbour', seconds = '20'] = process.argv.slice(2)
const { chunksUs, decodesUs, lookUs } = splitting()
const ratios = await simulatorRatios(scenario, Number(seconds))
const percent = (ratio: number): string => `${(100 * ratio).toFixed(2)} %`
console.log(`a step of 256 chunks        ${chunksUs.toFixed(2)} µs`)
console.log(`a step of 256 decodes       ${decodesUs.toFixed(3)} µs`)
console.log(`a look at 256 sequences     ${lookUs.toFixed(1)} µs, once a second`)
console.log(
  `of the simulator’s time     split ${percent(ratios.split)}, books ${percent(ratios.books)}, checks ${percent(ratios.checks)} (${scenario}, ${seconds} s)`,
)
console.log(
  JSON.stringify({
    bench: 'attribution',
    results: { chunksUs, decodesUs, lookUs, ...ratios },
    claim: { stepUs: 15, ratio: 0.02 },
  }),
)
