import { loadProfile } from '../../src/assembly/fs-profiles.ts'
import { limitsOf, servingCoefficients } from '../../src/engine/gpu-profile.ts'
import type { TraceRequest } from '../../src/sim/traces/trace.ts'
import { conversations } from './kit/conversations.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import type { Cell, Table } from './kit/result.ts'
import { type Answer, type Mode, runStepEngine } from './kit/step-engine.ts'

/** What does reading prompts in pieces beside the decodes bring, against reading them first? */
const RATES_PER_S = [8, 16, 22]
const DURATION_S = 200
const SEQUENCES_MAX = 256
const TTFT_US = 2_000_000
const TOKEN_US = 50_000

const MODES: ReadonlyArray<readonly [string, Mode]> = [
  ['prefill first', 'prefill-first'],
  ['chunked', 'chunked'],
]

const COLUMNS = [
  'mode',
  'TTFT p50 ms',
  'TTFT p99 ms',
  'mean token p50 ms',
  'mean token p99 ms',
  'longest gap p50 ms',
  'longest gap p99 ms',
  'in time %',
]

function run({ trace, seeds, progress }: ExperimentOptions): Findings {
  const tables: Table[] = []
  const verdict: string[] = []
  for (const rate of RATES_PER_S) {
    const rows: Cell[][] = []
    for (const [label, mode] of MODES) {
      progress(`${rate} a second: ${label}`)
      const all = seeds.map((seed) =>
        measure(serve(conversations({ trace, ratePerS: rate, durationS: DURATION_S, seed }), mode)),
      )
      rows.push([label, ...all[0]!.map((_, index) => mean(all.map((one) => one[index] ?? 0)))])
    }
    tables.push({ title: `${rate} requests a second`, columns: COLUMNS, rows })
    const [first, chunked] = rows.map((row) => row.slice(1).map(Number)) as [number[], number[]]
    verdict.push(
      `${rate} a second: the longest pause of the median answer is ${chunked[4]!.toFixed(0)} ms chunked, ${first[4]!.toFixed(0)} ms prefill first; first tokens at P99 ${chunked[1]!.toFixed(0)} against ${first[1]!.toFixed(0)} ms; in time ${chunked[6]!.toFixed(1)} against ${first[6]!.toFixed(1)} %.`,
    )
  }
  return { tables, verdict }
}

function serve(requests: readonly TraceRequest[], mode: Mode): Answer[] {
  const profile = loadProfile('h100-llama-8b')
  const { tokenBudget, blockCount, blockTokens } = limitsOf(profile)
  const coefficients = servingCoefficients(profile)
  return runStepEngine(requests, {
    mode,
    coefficients,
    tokenBudget,
    sequencesMax: SEQUENCES_MAX,
    kvTokens: blockCount * blockTokens,
  })
}

function measure(answers: readonly Answer[]): number[] {
  const ttfts = answers.map(({ request, firstTokenAtUs }) => firstTokenAtUs - request.atUs)
  const spoken = answers.filter(({ request }) => request.outputTokens > 1)
  const meanToken = ({ request, firstTokenAtUs, endedAtUs }: Answer): number =>
    (endedAtUs - firstTokenAtUs) / Math.max(1, request.outputTokens - 1)
  const gaps = spoken.map(({ longestGapUs }) => longestGapUs)
  const inTime = answers.filter(
    (answer) => answer.firstTokenAtUs - answer.request.atUs <= TTFT_US && meanToken(answer) <= TOKEN_US,
  )
  return [
    quantileMs(ttfts, 0.5),
    quantileMs(ttfts, 0.99),
    quantileMs(spoken.map(meanToken), 0.5),
    quantileMs(spoken.map(meanToken), 0.99),
    quantileMs(gaps, 0.5),
    quantileMs(gaps, 0.99),
    (100 * inTime.length) / answers.length,
  ]
}

function quantileMs(us: readonly number[], ratio: number): number {
  return (us.toSorted((a, b) => a - b)[Math.floor(ratio * (us.length - 1))] ?? 0) / 1_000
}

await runExperiment({
  name: 'chunked-prefill',
  title: 'Prompts in pieces, or first',
  about:
    'One engine with the step times of h100-llama-8b serves the lengths of the Azure conversation trace, first come, first served, with nothing before it. *Longest gap*: the longest time between two tokens of one answer, which is what a reader sees as a pause. In time: first token within 2 s and 50 ms a token on the average.',
  seeds: 2,
  run,
})
