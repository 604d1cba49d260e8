import { loadProfile } from '../../src/assembly/fs-profiles.ts'
import { Engine } from '../../src/engine/engine.ts'
import type { FinishedEvent } from '../../src/engine/engine-event.ts'
import type { EngineLimits } from '../../src/engine/engine-state.ts'
import { limitsOf, servingCoefficients } from '../../src/engine/gpu-profile.ts'
import type { TraceRequest } from '../../src/sim/traces/trace.ts'
import { conversations } from './kit/conversations.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import type { Cell, Table } from './kit/result.ts'

/** What does letting sequences join at every step bring, against batches that run until their last answer is done? */
const MODES: ReadonlyArray<readonly [string, Partial<EngineLimits>]> = [
  ['continuous', {}],
  ['static', { staticBatching: { windowUs: 0 } }],
  ['micro-batch, 10 ms', { staticBatching: { windowUs: 10_000 } }],
]
const SIZES = [16, 64, 256]
/** Requests a second: one engine answers the first in every mode, and the last only in continuous batches. */
const RATES_PER_S = [1, 4, 12]
const DURATION_S = 200

interface Played {
  readonly ends: readonly FinishedEvent[]
  readonly meanBatch: number
  readonly busyRatio: number
}

function play(profileName: string, limits: Partial<EngineLimits>, requests: readonly TraceRequest[]): Played {
  const profile = loadProfile(profileName)
  const coefficients = servingCoefficients(profile)
  const engine = new Engine({ coefficients, limits: { ...limitsOf(profile), ...limits } })
  const ends: FinishedEvent[] = []
  const advanceTo = (until: number): void => {
    for (let at = engine.nextEventAt(); at !== undefined && at <= until; at = engine.nextEventAt()) {
      for (const event of engine.advance(at)) if (event.kind === 'finished') ends.push(event)
    }
  }
  requests.forEach(({ atUs, promptTokens, outputTokens }, index) => {
    advanceTo(atUs - 1)
    engine.submit(atUs, { id: `${index}`, promptTokens, outputTokens })
  })
  advanceTo(Number.MAX_SAFE_INTEGER)
  const endAt = ends.at(-1)?.at ?? 1
  const { generationTokens, steps, busyUs } = engine.view(endAt)
  return { ends, meanBatch: generationTokens / steps, busyRatio: busyUs / endAt }
}

function run({ trace, seeds, progress }: ExperimentOptions): Findings {
  const full = SIZES.map((size) => fullTable('h100-llama-8b', size, { trace, seeds, progress }))
  const reference = fullTable('reference-a100', 16, { trace, seeds, progress })
  const open = RATES_PER_S.map((rate) => openTable(rate, { trace, seeds, progress }))
  const factor = ([continuous, fixed]: readonly Cell[][]): number => Number(continuous![1]) / Number(fixed![1])
  return {
    tables: [...full, reference, ...open],
    verdict: [
      `With work always waiting, continuous batching makes ${full.map((table, i) => `${factor(table.rows as Cell[][]).toFixed(2)} times (${SIZES[i]} places)`).join(', ')} the tokens of static batches on h100-llama-8b; on reference-a100 with 16 places ${factor(reference.rows as Cell[][]).toFixed(2)} times.`,
      'The reason is the mean batch: places whose answers have ended stay empty until the longest is done. A window adds nothing where work waits; where it does not, it adds up to its own length to every first token.',
      'The comparison is kind to static batches: true lengths count where a server reserves the longest allowed, and an answer that has ended costs no more time, where a server pads it.',
    ],
  }
}

type Playing = Pick<ExperimentOptions, 'trace' | 'seeds' | 'progress'>

/** Everything is there at once: what the engine can do. */
function fullTable(profile: string, sequencesMax: number, { trace, seeds, progress }: Playing): Table {
  const rows = MODES.map(([label, limits]): Cell[] => {
    progress(`${profile}, ${sequencesMax} places: ${label}`)
    const all = seeds.map((seed) => {
      const requests = conversations({ trace, ratePerS: 10, durationS: DURATION_S, seed })
      const played = play(
        profile,
        { ...limits, sequencesMax },
        requests.map((one) => ({ ...one, atUs: 0 })),
      )
      const tokens = played.ends.reduce((sum, { usage }) => sum + usage.outputTokens, 0)
      return [(1e6 * tokens) / played.ends.at(-1)!.at, played.meanBatch, 100 * played.busyRatio]
    })
    return [label, ...all[0]!.map((_, index) => mean(all.map((one) => one[index]!)))]
  })
  const columns = ['batching', 'output tokens/s', 'mean batch', 'GPU busy %']
  return { title: `${profile}, ${sequencesMax} places, work always waiting`, columns, rows }
}

/** Poisson arrivals: what a client sees. */
function openTable(ratePerS: number, { trace, seeds, progress }: Playing): Table {
  const rows = MODES.map(([label, limits]): Cell[] => {
    progress(`${ratePerS} a second: ${label}`)
    const all = seeds.map((seed) => {
      const { ends, busyRatio } = play(
        'h100-llama-8b',
        limits,
        conversations({ trace, ratePerS, durationS: DURATION_S, seed }),
      )
      const ttfts = ends.map(({ arrivedAt, firstTokenAt }) => firstTokenAt - arrivedAt)
      const totals = ends.map(({ arrivedAt, at }) => at - arrivedAt)
      return [...[ttfts, totals].flatMap((us) => [quantileMs(us, 0.5), quantileMs(us, 0.95)]), 100 * busyRatio]
    })
    return [label, ...all[0]!.map((_, index) => mean(all.map((one) => one[index]!)))]
  })
  const columns = ['batching', 'TTFT p50 ms', 'TTFT p95 ms', 'answer p50 ms', 'answer p95 ms', 'GPU busy %']
  return { title: `h100-llama-8b, 256 places, ${ratePerS} requests a second`, columns, rows }
}

function quantileMs(us: readonly number[], ratio: number): number {
  return (us.toSorted((a, b) => a - b)[Math.floor(ratio * (us.length - 1))] ?? 0) / 1_000
}

await runExperiment({
  name: 'static-batching',
  title: 'Continuous, static and micro-batches',
  about:
    'One engine serves the lengths of the Azure conversation trace, first come, first served, with nothing before it. *Static*: a batch is formed of whoever waits and fits into the KV memory to the end, and nobody joins until its last answer is done. *Micro-batch*: the same, and an idle engine first gathers for 10 ms, as the fourth reference document has it. *Mean batch*: output tokens a step.',
  seeds: 2,
  run,
})
