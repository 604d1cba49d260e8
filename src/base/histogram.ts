/**
 * How are these values distributed, exactly enough for a table? Log-linear buckets of whole numbers, every power of two
 * cut into 32 (HdrHistogram's layout): a quantile is within 1/64 of the true sample at its rank. It forgets nothing;
 * `quantile.ts` is the one that does. The array grows with the largest value seen, so a histogram of small values is
 * small.
 */
const SUB_BITS = 5
const SUBS = 1 << SUB_BITS

export class Histogram {
  #counts = new Uint32Array(SUBS)
  #count = 0
  #infinite = 0
  #sum = 0
  #max = 0

  get count(): number {
    return this.#count
  }

  get mean(): number | undefined {
    const finite = this.#count - this.#infinite
    return finite === 0 ? undefined : this.#sum / finite
  }

  get max(): number {
    return this.#infinite > 0 ? Number.POSITIVE_INFINITY : this.#max
  }

  /** Infinity counts: it stands for an answer that never came. */
  observe(value: number, count = 1): void {
    this.#count += count
    if (value === Number.POSITIVE_INFINITY) {
      this.#infinite += count
      return
    }
    const whole = Math.max(0, Math.min(2 ** 31 - 1, Math.round(value)))
    const bucket = bucketOf(whole)
    if (bucket >= this.#counts.length) this.#grow(bucket + 1)
    this.#counts[bucket] = (this.#counts[bucket] as number) + count
    this.#sum += value * count
    if (value > this.#max) this.#max = value
  }

  /** The value below which this share of the samples lies; undefined without samples. */
  quantile(ratio: number): number | undefined {
    if (this.#count === 0) return undefined
    const rank = Math.max(1, Math.ceil(ratio * this.#count))
    let seen = 0
    for (let i = 0; i < this.#counts.length; i++) {
      seen += this.#counts[i] as number
      if (seen >= rank) return Math.min(this.#max, middleOf(i))
    }
    return Number.POSITIVE_INFINITY
  }

  /** Adds the samples of another histogram. */
  add(other: Histogram): void {
    if (other.#counts.length > this.#counts.length) this.#grow(other.#counts.length)
    for (let i = 0; i < other.#counts.length; i++) {
      this.#counts[i] = (this.#counts[i] as number) + (other.#counts[i] as number)
    }
    this.#count += other.#count
    this.#infinite += other.#infinite
    this.#sum += other.#sum
    this.#max = Math.max(this.#max, other.#max)
  }

  #grow(length: number): void {
    const grown = new Uint32Array(Math.ceil(length / SUBS) * SUBS)
    grown.set(this.#counts)
    this.#counts = grown
  }
}

function bucketOf(value: number): number {
  if (value < SUBS) return value
  const shift = 31 - Math.clz32(value) - SUB_BITS
  return (shift << SUB_BITS) + (value >>> shift)
}

function middleOf(bucket: number): number {
  if (bucket < SUBS) return bucket
  const shift = (bucket >>> SUB_BITS) - 1
  return (SUBS + (bucket & (SUBS - 1))) * 2 ** shift + (2 ** shift - 1) / 2
}
