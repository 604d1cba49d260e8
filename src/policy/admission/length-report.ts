/**
 * Are long prompts treated like short ones?
 *
 * Admission by predicted finish is fair between tenants, but not of itself between sizes: whoever needs more time is
 * late sooner. So what was offered, admitted, late and wrongly refused is counted by prompt length and told by decile
 * of what was offered. Counters sit in quarter octaves of length (four per power of two, up to a million tokens);
 * deciles are formed from them when somebody asks, so a bucket belongs to the decile in which its middle lies.
 *
 * Counters only grow: a report is the difference of two views, as with every metric. It decides nothing.
 *
 * Example: ten equal groups of 100, …, 1,000 tokens, the longest refused half of the time: the tenth decile shows an
 * admitted share of 0.5, all others 1.
 */
const BUCKETS_PER_OCTAVE = 4
const OCTAVES = 20
const BUCKET_COUNT = BUCKETS_PER_OCTAVE * OCTAVES

export type LengthEvent = 'offered' | 'admitted' | 'late' | 'refused-late' | 'false-reject'

export interface DecileRow {
  /** 1 … 10. */
  readonly decile: number
  /** Shortest and longest prompt that may be in it. */
  readonly tokensFrom: number
  readonly tokensTo: number
  readonly offered: number
  readonly admitted: number
  readonly late: number
  readonly refusedLate: number
  readonly falseRejects: number
}

export class LengthReport {
  readonly #counts: Readonly<Record<LengthEvent, Float64Array>> = {
    offered: new Float64Array(BUCKET_COUNT),
    admitted: new Float64Array(BUCKET_COUNT),
    late: new Float64Array(BUCKET_COUNT),
    'refused-late': new Float64Array(BUCKET_COUNT),
    'false-reject': new Float64Array(BUCKET_COUNT),
  }

  count(event: LengthEvent, promptTokens: number): void {
    const counts = this.#counts[event]
    const bucket = bucketOf(promptTokens)
    counts[bucket] = (counts[bucket] as number) + 1
  }

  /** Deciles that hold nothing are left out. */
  byDecile(): readonly DecileRow[] {
    const offered = this.#counts.offered
    const total = offered.reduce((sum, count) => sum + count, 0)
    const members = new Map<number, number[]>()
    let seen = 0
    for (let bucket = 0; bucket < BUCKET_COUNT; bucket++) {
      const count = offered[bucket] as number
      if (count === 0) continue
      const middle = (seen + count / 2) / total
      const decile = Math.min(10, 1 + Math.floor(middle * 10))
      members.set(decile, [...(members.get(decile) ?? []), bucket])
      seen += count
    }
    return [...members].map(([decile, buckets]) => this.#rowOf(decile, buckets))
  }

  #rowOf(decile: number, buckets: readonly number[]): DecileRow {
    const sum = (event: LengthEvent): number =>
      buckets.reduce((all, bucket) => all + (this.#counts[event][bucket] as number), 0)
    return {
      decile,
      tokensFrom: lowestOf(buckets[0] as number),
      tokensTo: lowestOf((buckets.at(-1) as number) + 1) - 1,
      offered: sum('offered'),
      admitted: sum('admitted'),
      late: sum('late'),
      refusedLate: sum('refused-late'),
      falseRejects: sum('false-reject'),
    }
  }
}

/** Quarter octaves by the two bits below the leading one: 4, 5, 6, 7 | 8–9, 10–11, 12–13, 14–15 | … */
function bucketOf(tokens: number): number {
  const value = Math.max(BUCKETS_PER_OCTAVE, Math.min(2 ** (OCTAVES + 1), Math.round(tokens)))
  const octave = 31 - Math.clz32(value) - 2
  return Math.min(BUCKET_COUNT - 1, octave * BUCKETS_PER_OCTAVE + ((value >>> octave) & (BUCKETS_PER_OCTAVE - 1)))
}

function lowestOf(bucket: number): number {
  if (bucket === 0) return 0
  const octave = bucket >> 2
  return (BUCKETS_PER_OCTAVE + (bucket & (BUCKETS_PER_OCTAVE - 1))) * 2 ** octave
}
