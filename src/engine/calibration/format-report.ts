import type { LatencyErrors, LatencySummary, RequestErrors, ThroughputErrors } from './compare-requests.ts'
import type { ProfileFit } from './fit-profile.ts'
import type { ServingFit } from './fit-serving.ts'
import type { StepErrors } from './step-errors.ts'
import type { Validation } from './validate-profile.ts'

/** Fits and validations as tables for people. */

export function formatFit(fit: ProfileFit): string {
  const rows = [
    ['', 'steps', 'median', 'p90', 'max', 'bias'],
    stepRow('all', fit.errors),
    ...Object.entries(fit.byKind).map(([kind, errors]) => stepRow(kind, errors)),
    stepRow('left out', fit.crossValidated),
  ]
  const terms = Object.entries(fit.coefficients).filter(([, value]) => typeof value === 'number' && value !== 0)
  return [
    `${fit.model}: error of step times`,
    table(rows),
    '',
    'coefficients (µs)',
    table(terms.map(([name, value]) => [name, String(value)])),
  ].join('\n')
}

export function formatServingFit(name: string, fit: ServingFit): string {
  return [
    `${name}: error of the steps of an engine at work`,
    table([
      ['', 'steps', 'median', 'p90', 'max', 'bias'],
      stepRow('kernels alone', fit.kernelErrors),
      stepRow('fitted', fit.errors),
      ...Object.entries(fit.byKind).map(([kind, errors]) => stepRow(kind, errors)),
    ]),
    '',
    'serving terms (µs)',
    table(Object.entries(fit.terms).map(([term, value]) => [term, String(value)])),
  ].join('\n')
}

export function formatValidation(validation: Validation): string {
  const { profile, steps, requests, runs = [] } = validation
  const parts: string[] = []
  if (steps !== undefined) {
    const what = steps.origin === 'kernels' ? 'steps timed alone' : 'steps of an engine at work'
    parts.push(
      [
        `${profile}: error of step times (${what})`,
        table([
          ['', 'steps', 'median', 'p90', 'max', 'bias'],
          stepRow('all', steps),
          ...Object.entries(steps.byKind).map(([kind, errors]) => stepRow(kind, errors)),
        ]),
      ].join('\n'),
    )
  }
  for (const run of runs) parts.push(requestTable(`${run.workload}: ${run.count} requests`, run))
  if (requests !== undefined) {
    parts.push(requestTable(`${runs.length > 0 ? 'all: ' : ''}${requests.count} requests`, requests))
  }
  return parts.join('\n\n')
}

function requestTable(title: string, errors: RequestErrors): string {
  return [
    `${title} replayed: measured → simulated (ms)`,
    table([
      ['', 'mean', 'p50', 'p90', 'p95', 'p99'],
      latencyRow('TTFT', errors.ttft),
      latencyRow('E2E', errors.e2e),
      latencyRow('per output token', errors.tpot),
    ]),
    throughputLine(errors.throughput),
  ].join('\n')
}

function throughputLine({ measured, simulated, requestsError, tokensError }: ThroughputErrors): string {
  const requests = `${measured.requestsPerSecond.toFixed(2)} → ${simulated.requestsPerSecond.toFixed(2)} requests a second`
  const tokens = `${measured.tokensPerSecond.toFixed(0)} → ${simulated.tokensPerSecond.toFixed(0)} output tokens a second`
  return `  throughput: ${requests} (${signedPercent(requestsError)}), ${tokens} (${signedPercent(tokensError)})`
}

function stepRow(name: string, errors: StepErrors): string[] {
  const { count, medianError, p90Error, maxError, bias } = errors
  return [name, String(count), percent(medianError), percent(p90Error), percent(maxError), signedPercent(bias)]
}

function latencyRow(name: string, errors: LatencyErrors): string[] {
  const cell = (key: keyof LatencySummary, error: number): string =>
    `${errors.measuredMs[key].toFixed(1)} → ${errors.simulatedMs[key].toFixed(1)} (${signedPercent(error)})`
  return [
    name,
    cell('mean', errors.meanError),
    cell('p50', errors.p50Error),
    cell('p90', errors.p90Error),
    cell('p95', errors.p95Error),
    cell('p99', errors.p99Error),
  ]
}

function percent(ratio: number): string {
  return `${(100 * ratio).toFixed(1)} %`
}

function signedPercent(ratio: number): string {
  return `${ratio < 0 ? '−' : '+'}${percent(Math.abs(ratio))}`
}

/** Columns as wide as their widest cell; the first flush left, the others flush right. */
function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const row of rows)
    row.forEach((cell, i) => {
      widths[i] = Math.max(widths[i] ?? 0, cell.length)
    })
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] as number) : cell.padStart(widths[i] as number)))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `  ${line}`)
    .join('\n')
}
