import { assert } from './assert.ts'

/**
 * How long are these things usually, in bounded memory?
 *
 * A sketch of whole numbers in log-linear buckets: below 8 each number has its own; above, every power of two is cut
 * into 8 equal parts (HdrHistogram's layout; DDSketch gives the same relative guarantee with logarithms, which we
 * avoid: `clz32` and shifts are the same bit for bit on every processor).
 *
 *     value   8 9 … 15 | 16–17 18–19 … 30–31 | 32–35 … 60–63 | …      width ÷ value ≤ 1/8
 *
 * A quantile is answered with the middle of its bucket, so it is within 1/16 of the true sample at that rank (exact
 * below 16). Forgetting is by halving: a sample weighs 16 at first, and when the whole weighs two memories' worth
 * every counter is shifted right, so that a recent sample outweighs an old one and yet a lone sample in the tail
 * survives four halvings instead of none.
 *
 * Example: samples 1 … 100, quantile 0.9 → rank 90 lies in bucket 88–95, answered 91.
 */
const SUB_BITS = 3
const SUBS = 1 << SUB_BITS
const SAMPLE_WEIGHT = 16

/** Largest value that is distinguished; larger ones count as this. */
export const QUANTILE_VALUE_MAX = 2 ** 31 - 1

export interface QuantileSketchOptions {
  /** Values above this fall into the last bucket: memory is 4 bytes × 8 per power of two. */
  readonly valueMax: number
  /** Number of recent samples that the answer covers; older ones fade. */
  readonly memorySamples: number
}

export class QuantileSketch {
  readonly #counts: Uint32Array
  readonly #valueMax: number
  readonly #weightMax: number
  #weight = 0
  /** Sum of weight × value over all samples. */
  #sum = 0

  constructor(options: QuantileSketchOptions) {
    assert(options.valueMax >= SUBS && options.valueMax <= QUANTILE_VALUE_MAX, 'a sketch spans 8 to 2^31 − 1')
    assert(options.memorySamples >= 1, 'a sketch remembers at least one sample')
    this.#valueMax = options.valueMax
    this.#counts = new Uint32Array(bucketOf(options.valueMax) + 1)
    this.#weightMax = 2 * SAMPLE_WEIGHT * options.memorySamples
  }

  /** Number of samples in the sketch, with faded ones counted in part. */
  get sampleCount(): number {
    return this.#weight / SAMPLE_WEIGHT
  }

  /** The mean of the remembered samples; undefined without samples. */
  get mean(): number | undefined {
    return this.#weight === 0 ? undefined : this.#sum / this.#weight
  }

  observe(value: number): void {
    const whole = Math.min(this.#valueMax, Math.max(0, Math.round(value)))
    const bucket = bucketOf(whole)
    this.#counts[bucket] = (this.#counts[bucket] as number) + SAMPLE_WEIGHT
    this.#weight += SAMPLE_WEIGHT
    this.#sum += SAMPLE_WEIGHT * whole
    if (this.#weight >= this.#weightMax) this.fade()
  }

  /** The value below which this share of the samples lies; undefined without samples. */
  quantile(ratio: number): number | undefined {
    return this.#fromRank(ratio * this.#weight)
  }

  /** The same for samples in buckets above `value` only: for guessing how long a cut-off sample would have become. */
  quantileAbove(value: number, ratio: number): number | undefined {
    const bucket = bucketOf(Math.min(this.#valueMax, Math.max(0, Math.round(value))))
    let below = 0
    for (let i = 0; i <= bucket; i++) below += this.#counts[i] as number
    const above = this.#weight - below
    return above === 0 ? undefined : this.#fromRank(below + Math.max(1, ratio * above))
  }

  /** Halves the weight of all samples so far, for owners whose memory is a time. */
  fade(): void {
    const counts = this.#counts
    let weight = 0
    for (let i = 0; i < counts.length; i++) {
      const count = (counts[i] as number) >>> 1
      counts[i] = count
      weight += count
    }
    // The mean is unchanged: halving changes the weight of a sample, not its value.
    this.#sum = this.#weight === 0 ? 0 : (this.#sum * weight) / this.#weight
    this.#weight = weight
  }

  /** As if it were new. */
  clear(): void {
    this.#counts.fill(0)
    this.#weight = 0
    this.#sum = 0
  }

  #fromRank(rank: number): number | undefined {
    if (this.#weight === 0) return undefined
    const counts = this.#counts
    let seen = 0
    for (let i = 0; i < counts.length; i++) {
      const count = counts[i] as number
      if (count === 0) continue
      seen += count
      if (seen >= rank) return bucketMiddle(i)
    }
    return bucketMiddle(counts.length - 1)
  }
}

function bucketOf(value: number): number {
  if (value < SUBS) return value
  const shift = 31 - Math.clz32(value) - SUB_BITS
  return (shift << SUB_BITS) + (value >>> shift)
}

function bucketMiddle(bucket: number): number {
  if (bucket < SUBS) return bucket
  const shift = (bucket >>> SUB_BITS) - 1
  const low = (SUBS + (bucket & (SUBS - 1))) * 2 ** shift
  return low + ((2 ** shift - 1) >> 1)
}
