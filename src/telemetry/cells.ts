/** The cells of metrics, one per series. Hot paths write to cells; a scrape reads their lines. */
import { type Instant, usToSeconds } from '../base/clock.ts'
import { formatMetricValue } from './exposition.ts'

/** A ticket whose spans are made, as an example of what a bucket holds: from a figure to a trace. */
export interface Exemplar {
  readonly traceId: string
  readonly at: Instant
}

/** A value that only grows. */
export class CounterCell {
  readonly #prefix: string
  value = 0

  constructor(name: string, labels: string) {
    this.#prefix = `${name}${inBraces(labels)} `
  }

  inc(by = 1): void {
    if (by >= 0 && by < Number.POSITIVE_INFINITY) this.value += by
  }

  /** Takes the present value of a count kept elsewhere; the counter never goes back. */
  raiseTo(value: number): void {
    if (value > this.value && value < Number.POSITIVE_INFINITY) this.value = value
  }

  write(): string {
    return `${this.#prefix}${formatMetricValue(this.value)}\n`
  }
}

/** A value that goes up and down. */
export class GaugeCell {
  readonly #prefix: string
  value = 0

  constructor(name: string, labels: string) {
    this.#prefix = `${name}${inBraces(labels)} `
  }

  set(value: number): void {
    if (!Number.isNaN(value)) this.value = value
  }

  write(): string {
    return `${this.#prefix}${formatMetricValue(this.value)}\n`
  }
}

export interface Scale {
  readonly bounds: Float64Array
  readonly boundTexts: readonly string[]
  readonly perUnit: number
}

/**
 * Counts by size. Counts are kept per bucket and summed up only when written. The sum is kept in the small unit, in
 * which samples are whole numbers, so that the sum is exact for any order of samples.
 */
export class HistogramCell {
  readonly #scale: Scale
  readonly #counts: Float64Array
  readonly #bucketPrefixes: readonly string[]
  readonly #sumPrefix: string
  readonly #countPrefix: string
  /** The newest of each bucket with its sample; undefined until there is one. */
  #exemplars: Array<{ readonly sample: number; readonly exemplar: Exemplar } | undefined> | undefined
  #sum = 0

  constructor(name: string, labels: string, scale: Scale) {
    this.#scale = scale
    this.#counts = new Float64Array(scale.bounds.length + 1)
    const before = labels === '' ? '' : `${labels},`
    this.#bucketPrefixes = [...scale.boundTexts, '+Inf'].map((le) => `${name}_bucket{${before}le="${le}"} `)
    this.#sumPrefix = `${name}_sum${inBraces(labels)} `
    this.#countPrefix = `${name}_count${inBraces(labels)} `
  }

  /** A negative sample (a clock that was set back) counts as zero. */
  observe(value: number, exemplar?: Exemplar): void {
    if (!(value < Number.POSITIVE_INFINITY)) return
    const sample = value > 0 ? value : 0
    const bounds = this.#scale.bounds
    let bucket = 0
    while (bucket < bounds.length && sample > (bounds[bucket] as number)) bucket++
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1
    this.#sum += sample
    if (exemplar === undefined) return
    this.#exemplars ??= Array.from({ length: this.#counts.length }, () => undefined)
    this.#exemplars[bucket] = { sample, exemplar }
  }

  /** Adds many samples at once, already sorted into the same buckets (the last is beyond the last bound). */
  merge(counts: ArrayLike<number>, sum: number): void {
    if (counts.length !== this.#counts.length || !(sum >= 0 && sum < Number.POSITIVE_INFINITY)) return
    for (let i = 0; i < counts.length; i++) this.#counts[i] = (this.#counts[i] as number) + (counts[i] as number)
    this.#sum += sum
  }

  /** Exemplars are for OpenMetrics only: the older text has no place for them. */
  write(hasExemplars = false): string {
    const prefixes = this.#bucketPrefixes
    const counts = this.#counts
    let text = ''
    let upTo = 0
    for (let i = 0; i < counts.length; i++) {
      upTo += counts[i] as number
      text += `${prefixes[i] as string}${upTo}${hasExemplars ? this.#exemplarText(i) : ''}\n`
    }
    return `${text}${this.#sumPrefix}${formatMetricValue(this.#sum / this.#scale.perUnit)}\n${this.#countPrefix}${upTo}\n`
  }

  #exemplarText(bucket: number): string {
    const kept = this.#exemplars?.[bucket]
    if (kept === undefined) return ''
    const { traceId, at } = kept.exemplar
    return ` # {trace_id="${traceId}"} ${formatMetricValue(kept.sample / this.#scale.perUnit)} ${usToSeconds(at)}`
  }
}

function inBraces(labels: string): string {
  return labels === '' ? '' : `{${labels}}`
}
