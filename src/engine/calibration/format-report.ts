import type { ProfileFit } from './fit-profile.ts'
import type { StepErrors } from './step-errors.ts'
import type { LatencyErrors, LatencySummary, Validation } from './validate-profile.ts'

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

export function formatValidation(validation: Validation): string {
  const { steps, requests } = validation
  const what = steps.origin === 'kernels' ? 'steps timed alone' : 'steps of an engine at work'
  const parts = [
    `${validation.profile}: error of step times (${what})`,
    table([
      ['', 'steps', 'median', 'p90', 'max', 'bias'],
      stepRow('all', steps),
      ...Object.entries(steps.byKind).map(([kind, errors]) => stepRow(kind, errors)),
    ]),
  ]
  if (requests !== undefined) {
    parts.push(
      '',
      `${requests.count} requests replayed: measured → simulated (ms)`,
      table([
        ['', 'mean', 'p50', 'p95', 'p99'],
        latencyRow('TTFT', requests.ttft),
        latencyRow('E2E', requests.e2e),
        latencyRow('per output token', requests.tpot),
      ]),
    )
  }
  return parts.join('\n')
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
