import type { Report } from '../report/report.ts'
import type { Expectation } from './scenario.ts'

/**
 * Compares a report with the scenario's expectations. Paths walk the report; `*` stands for every name, and then each
 * value must satisfy the expectation. A missing value fails, because an expectation without a value checks nothing. An
 * expectation about a part that was not run to its end fails too.
 */
export interface CheckedExpectation {
  readonly what: string
  readonly holds: boolean
  /** The worst value found, where it was, and what it should have been. */
  readonly because: string
  /** Undefined: there was no value to compare. */
  readonly nearest?: NearestValue
}

/** The value that is nearest to its bound, or furthest beyond it, of all that the expectation is about. */
export interface NearestValue {
  readonly value: number
  readonly bound: number
  readonly isUpper: boolean
  /** Distance to the bound as a share of the bound, or absolute where the bound is 0; below 0 the value is beyond it. */
  readonly slack: number
}

export function checkExpectations(
  expectations: readonly Expectation[],
  report: Report,
  variants: Readonly<Record<string, Report>>,
): CheckedExpectation[] {
  return expectations.map((expectation) => {
    if (expectation.of !== '*') return check(expectation, report, variants)
    const all = [undefined, ...Object.keys(variants)].map((of) => ({
      of,
      checked: check({ ...expectation, of }, report, variants),
    }))
    const worst = all.find(({ checked }) => !checked.holds) ?? all[0]!
    const because = all.map(({ of, checked }) => `${of === undefined ? '' : `${of}: `}${checked.because}`)
    const nearest = nearestOf(all.map(({ checked }) => checked.nearest))
    return worst.checked.holds
      ? { ...worst.checked, ...nearest, because: because.join('; ') }
      : {
          ...worst.checked,
          ...nearest,
          because: `${worst.of === undefined ? '' : `${worst.of}: `}${worst.checked.because}`,
        }
  })
}

/** As a part of a checked expectation, because an optional field is absent, never undefined. */
function nearestOf(values: ReadonlyArray<NearestValue | undefined>): { nearest?: NearestValue } {
  let nearest: NearestValue | undefined
  for (const value of values) {
    if (value !== undefined && (nearest === undefined || value.slack < nearest.slack)) nearest = value
  }
  return nearest === undefined ? {} : { nearest }
}

interface Found {
  readonly path: readonly string[]
  readonly value: unknown
}

/** `of` may be absent or undefined. */
type Asked = Omit<Expectation, 'of'> & { readonly of?: string | undefined }

function check(expectation: Asked, report: Report, variants: Readonly<Record<string, Report>>): CheckedExpectation {
  const { what } = expectation
  const looked = expectation.of === undefined ? report : variants[expectation.of]
  if (looked === undefined) return { what, holds: false, because: `there is no variant called ${expectation.of}` }
  const found = valuesAt(looked, expectation.path.split('.'), new Set(expectation.except ?? []))
  if (found.length === 0) return { what, holds: false, because: `nothing is at ${expectation.path}` }
  const near: NearestValue[] = []
  let failed: string | undefined
  for (const { path, value } of found) {
    const cutShort = partCutShort(looked, path)
    if (cutShort !== undefined) return { what, holds: false, because: cutShort }
    const where = path.join('.')
    const number = value === undefined || value === null ? Number.NaN : Number(value)
    const bounds = boundsFor(expectation, path, variants)
    if (typeof bounds === 'string') return { what, holds: false, because: bounds }
    if (Number.isNaN(number)) return { what, holds: false, because: `${where} has no value` }
    near.push(...slacks(number, bounds))
    if (number < bounds.min) failed ??= `${where} is ${showFigure(number)}, below ${showFigure(bounds.min)}`
    if (number > bounds.max) failed ??= `${where} is ${showFigure(number)}, above ${showFigure(bounds.max)}`
  }
  return { what, holds: failed === undefined, because: failed ?? summary(expectation, found), ...nearestOf(near) }
}

function slacks(value: number, { min, max }: { readonly min: number; readonly max: number }): NearestValue[] {
  const near: NearestValue[] = []
  const slackOf = (distance: number, bound: number): number => (bound === 0 ? distance : distance / Math.abs(bound))
  if (Number.isFinite(min)) near.push({ value, bound: min, isUpper: false, slack: slackOf(value - min, min) })
  if (Number.isFinite(max)) near.push({ value, bound: max, isUpper: true, slack: slackOf(max - value, max) })
  return near
}

function partCutShort(report: Report, path: readonly string[]): string | undefined {
  const name = path[0] === 'parts' ? path[1] : undefined
  const ranRatio = name === undefined ? 1 : (report.parts[name]?.ranRatio ?? 1)
  if (ranRatio >= 1) return undefined
  const ran = ranRatio > 0 ? `only ${Math.round(100 * ranRatio)} % of the part ${name} was` : `the part ${name} was not`
  return `${ran} run: it ends after the run does, so this says nothing. Run longer, or move the part`
}

function boundsFor(
  expectation: Asked,
  path: readonly string[],
  variants: Readonly<Record<string, Report>>,
): { min: number; max: number } | string {
  let min = expectation.atLeast ?? Number.NEGATIVE_INFINITY
  let max = expectation.atMost ?? Number.POSITIVE_INFINITY
  const times = expectation.atMostTimes ?? expectation.atLeastTimes
  if (times !== undefined) {
    const variant = variants[times.variant]
    if (variant === undefined) return `there is no variant called ${times.variant}`
    const otherPath = times.path?.split('.') ?? path
    const other = Number(valuesAt(variant, otherPath, new Set())[0]?.value ?? Number.NaN)
    if (Number.isNaN(other)) return `${otherPath.join('.')} has no value in the variant ${times.variant}`
    if (expectation.atMostTimes !== undefined) max = Math.min(max, other * times.factor + (times.plus ?? 0))
    else min = Math.max(min, other * times.factor + (times.plus ?? 0))
  }
  return { min, max }
}

function valuesAt(node: unknown, path: readonly string[], except: ReadonlySet<string>): Found[] {
  let found: Found[] = [{ path: [], value: node }]
  for (const step of path) {
    found = found.flatMap(({ path: walked, value }) => {
      if (typeof value !== 'object' || value === null) return []
      const names = step === '*' ? Object.keys(value).filter((name) => !except.has(name)) : [step]
      return names
        .filter((name) => name in value)
        .map((name) => ({ path: [...walked, name], value: (value as Record<string, unknown>)[name] }))
    })
  }
  // A window without requests has no percentile, and breaks no promise.
  return path.includes('*') ? found.filter(({ value }) => value !== undefined) : found
}

function summary(expectation: Asked, found: readonly Found[]): string {
  const numbers = found.map(({ value }) => Number(value))
  const least = Math.min(...numbers)
  const most = Math.max(...numbers)
  const seen = least === most ? showFigure(least) : `${showFigure(least)} … ${showFigure(most)}`
  const wanted: string[] = []
  if (expectation.atLeast !== undefined) wanted.push(`≥ ${showFigure(expectation.atLeast)}`)
  if (expectation.atMost !== undefined) wanted.push(`≤ ${showFigure(expectation.atMost)}`)
  if (expectation.atMostTimes !== undefined) {
    const { factor, variant, plus } = expectation.atMostTimes
    wanted.push(`≤ ${factor} × ${variant}${plus === undefined ? '' : ` + ${plus}`}`)
  }
  if (expectation.atLeastTimes !== undefined) {
    wanted.push(`≥ ${expectation.atLeastTimes.factor} × ${expectation.atLeastTimes.variant}`)
  }
  return `${seen} (${wanted.join(', ')})`
}

/** A figure with as many digits as a reader can use. */
export function showFigure(number: number): string {
  if (!Number.isFinite(number)) return number > 0 ? '∞' : '−∞'
  const size = Math.abs(number)
  if (size >= 100 || Number.isInteger(number)) return String(Math.round(number))
  return size >= 1 ? number.toFixed(2) : number.toPrecision(3)
}
