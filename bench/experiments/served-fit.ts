import { readFileSync } from 'node:fs'
import { loadProfile } from '../../src/assembly/fs-profiles.ts'
import { compareRequests, type RequestErrors } from '../../src/engine/calibration/compare-requests.ts'
import { fitServing } from '../../src/engine/calibration/fit-serving.ts'
import {
  type MeasuredRequest,
  type MeasuredStep,
  parseRequests,
  parseSteps,
} from '../../src/engine/calibration/measurements.ts'
import { type RooflineCoefficients, servingCoefficients } from '../../src/engine/gpu-profile.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import type { Cell, Table } from './kit/result.ts'

/** How near is the engine model to a real engine below, at and above the knee, on recordings that it was not fitted to? */

const FOLDER = new URL('../../test/fixtures/gpu/', import.meta.url)
const LIMITS = { sequencesMax: 256, tokenBudget: 2_048, blockCount: 40_000, blockTokens: 16 }

/** The catalogue's serving terms until 2026-11-15: four fitted, from one recording at 8 requests a second. */
const OLD_SERVING = {
  hostUs: 825.1,
  prefillBaseUs: 0,
  prefillFloorUs: 22_910,
  prefillFloorSharpness: 4.152,
  contextAttentionUsPerPair: 0.003193,
  contextUsPerToken: 0,
}

/** A recording ends in the seed of its requests; 101 and 202 were made on one machine, 303 on another. */
const FIRST_MACHINE = '-101'

const COLUMNS = ['recording', 'in the fit', 'requests'].concat(
  ['TTFT mean %', 'TTFT p50 %', 'TTFT p90 %', 'TTFT p99 %'],
  ['E2E mean %', 'E2E p50 %', 'E2E p90 %', 'E2E p99 %', 'throughput %'],
)

interface Candidate {
  readonly title: string
  readonly coefficients: RooflineCoefficients
  readonly isSeen: (workload: string) => boolean
}

function run({ progress }: ExperimentOptions): Findings {
  const recordings = [...requestsOf('served'), ...requestsOf('unseen'), ...requestsOf('replay')]
  const tables: Table[] = []
  const verdict: string[] = []
  for (const candidate of candidates()) {
    progress(candidate.title)
    const runs = compareRequests(candidate.coefficients, LIMITS, recordings).runs
    tables.push({
      title: candidate.title,
      columns: COLUMNS,
      rows: runs.map((one) => [one.workload, candidate.isSeen(one.workload) ? 'yes' : 'no', ...cellsOf(one)]),
    })
    const unseen = runs.filter((one) => !candidate.isSeen(one.workload))
    verdict.push(
      `${candidate.title}: on recordings that are not in the fit, mean E2E is off by at most ${worst(unseen, 'e2e')} and mean TTFT by at most ${worst(unseen, 'ttft')}; on all, by at most ${worst(runs, 'e2e')} and ${worst(runs, 'ttft')}.`,
    )
  }
  return { tables, verdict }
}

function candidates(): Candidate[] {
  const profile = loadProfile('h200-llama-8b')
  const kernels = profile.coefficients as RooflineCoefficients
  const isFirst = (workload: string): boolean => workload.endsWith(FIRST_MACHINE)
  const first = fitServing(
    kernels,
    stepsOf('served').filter((step) => isFirst(step.workload)),
    requestsOf('served').filter((request) => isFirst(request.workload)),
  )
  return [
    {
      title: 'Until now: four terms, one recording at 8 a second',
      coefficients: { ...kernels, ...OLD_SERVING },
      isSeen: (workload) => workload === 'conv-8rps',
    },
    {
      title: 'Seven terms, three recordings of one machine',
      coefficients: { ...kernels, ...first.terms },
      isSeen: isFirst,
    },
    {
      title: 'The catalogue: seven terms, six recordings of two machines',
      coefficients: servingCoefficients(profile) as RooflineCoefficients,
      isSeen: (workload) => isFirst(workload) || workload.endsWith('-303'),
    },
  ]
}

function cellsOf({ count, ttft, e2e, throughput }: RequestErrors): Cell[] {
  const latencies = [ttft, e2e].flatMap((one) => [one.meanError, one.p50Error, one.p90Error, one.p99Error])
  return [count, ...[...latencies, throughput.requestsError].map(signedPercent)]
}

function signedPercent(error: number): string {
  return `${error < 0 ? '−' : '+'}${Math.abs(100 * error).toFixed(1)}`
}

function worst(runs: readonly RequestErrors[], what: 'ttft' | 'e2e'): string {
  return `${(100 * Math.max(...runs.map((one) => Math.abs(one[what].meanError)))).toFixed(1)} %`
}

function requestsOf(name: string): readonly MeasuredRequest[] {
  const file = parseRequests(readFileSync(new URL(`h200-${name}-requests.csv`, FOLDER), 'utf8'))
  if (file.kind === 'bad-csv') throw new Error(`h200-${name}-requests.csv:${file.line}: ${file.because}`)
  return file.requests
}

function stepsOf(name: string): readonly MeasuredStep[] {
  const file = parseSteps(readFileSync(new URL(`h200-${name}-steps.csv`, FOLDER), 'utf8'))
  if (file.kind === 'bad-csv') throw new Error(`h200-${name}-steps.csv:${file.line}: ${file.because}`)
  return file.steps
}

await runExperiment({
  name: 'served-fit',
  title: 'The engine model at saturation',
  about:
    'An engine with paged keys and values, chunked prefill and CUDA graphs served Llama 3.1 8B’s shape on an H200 over HTTP, 15 to 45 s each at 8 to 26 requests a second; its knee is at 20 to 24. The arrivals are replayed through the simulated engine with three sets of serving terms. Errors are simulated ÷ measured − 1. Good: within 5 % in mean E2E and 10 % in mean TTFT on recordings that are not in the fit. 101 and 202 (the seeds of the arrivals) were recorded on one machine, 303 on another; conv-8rps is older, with latencies taken inside the engine.',
  seeds: 1,
  run,
})
