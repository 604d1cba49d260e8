/**
 * How are these values distributed, exactly enough for a table? Log-linear buckets of whole numbers, every power of two
 * cut into 32 (HdrHistogram's layout): a quantile is within 1/64 of the true sample at its rank. It forgets nothing;
 * `quantile.ts` is the one that does.
 *
 * Most histograms of a large run are those of small tenants and hold a handful of values: their buckets are a short list
 * of those that hold anything. Only when there are more does an array take its place, which is as long as the largest
 * value needs.
 */
const SUB_BITS = 5
const SUBS = 1 << SUB_BITS

/** Buckets of the list: at 16 it takes a fifth of the array's memory, and looking through it less than a cache miss. */
const LISTED_MAX = 16

const NO_COUNTS = new Uint32Array(0)

export class Histogram {
  /** Bucket and count in turns, until there are too many. */
  #listed: number[] | undefined = []
  #counts = NO_COUNTS
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
    this.#put(bucketOf(whole), count)
    this.#sum += value * count
    if (value > this.#max) this.#max = value
  }

  /** The value below which this share of the samples lies; undefined without samples. */
  quantile(ratio: number): number | undefined {
    if (this.#count === 0) return undefined
    const rank = Math.max(1, Math.ceil(ratio * this.#count))
    const bucket = this.#listed === undefined ? rankIn(this.#counts, rank) : rankAmong(this.#listed, rank)
    return bucket === undefined ? Number.POSITIVE_INFINITY : Math.min(this.#max, middleOf(bucket))
  }

  /** Adds the samples of another histogram. */
  add(other: Histogram): void {
    const { length } = other.#counts
    for (let i = 0; i < length; i++) if (other.#counts[i] !== 0) this.#put(i, other.#counts[i] as number)
    const listed = other.#listed ?? []
    for (let i = 0; i < listed.length; i += 2) this.#put(listed[i] as number, listed[i + 1] as number)
    this.#count += other.#count
    this.#infinite += other.#infinite
    this.#sum += other.#sum
    this.#max = Math.max(this.#max, other.#max)
  }

  #put(bucket: number, count: number): void {
    const listed = this.#listed
    if (listed !== undefined) {
      for (let i = 0; i < listed.length; i += 2) {
        if (listed[i] !== bucket) continue
        listed[i + 1] = (listed[i + 1] as number) + count
        return
      }
      if (listed.length < 2 * LISTED_MAX) {
        listed.push(bucket, count)
        return
      }
      this.#spread(listed)
    }
    if (bucket >= this.#counts.length) this.#grow(bucket + 1)
    this.#counts[bucket] = (this.#counts[bucket] as number) + count
  }

  #spread(listed: readonly number[]): void {
    this.#listed = undefined
    let top = 0
    for (let i = 0; i < listed.length; i += 2) top = Math.max(top, listed[i] as number)
    this.#grow(top + 1)
    for (let i = 0; i < listed.length; i += 2) this.#counts[listed[i] as number] = listed[i + 1] as number
  }

  #grow(length: number): void {
    const grown = new Uint32Array(Math.ceil(length / SUBS) * SUBS)
    grown.set(this.#counts)
    this.#counts = grown
  }
}

/** The bucket in which the sample of this rank lies; undefined when there are fewer samples. */
function rankIn(counts: Uint32Array, rank: number): number | undefined {
  let seen = 0
  for (let bucket = 0; bucket < counts.length; bucket++) {
    seen += counts[bucket] as number
    if (seen >= rank) return bucket
  }
  return undefined
}

function rankAmong(listed: readonly number[], rank: number): number | undefined {
  const buckets: number[] = []
  for (let i = 0; i < listed.length; i += 2) buckets.push(i)
  buckets.sort((a, b) => (listed[a] as number) - (listed[b] as number))
  let seen = 0
  for (const at of buckets) {
    seen += listed[at + 1] as number
    if (seen >= rank) return listed[at]
  }
  return undefined
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
