import type { GapView } from './entry.ts'

/**
 * Buckets of the inter-token times of one answer, the same as the metric's: a stream of a thousand tokens keeps
 * thirteen counters, not a thousand samples, and the histogram is updated once, when the ticket is settled.
 */
export const GAP_BUCKETS_US: readonly number[] = [
  2_000, 5_000, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 75_000, 100_000, 200_000, 500_000, 1_000_000,
]

export class Gaps implements GapView {
  readonly counts = new Uint32Array(GAP_BUCKETS_US.length + 1)
  sumUs = 0
  maxUs = 0

  observe(gapUs: number, count = 1): void {
    let bucket = 0
    while (bucket < GAP_BUCKETS_US.length && gapUs > (GAP_BUCKETS_US[bucket] as number)) bucket++
    this.counts[bucket] = (this.counts[bucket] as number) + count
    this.sumUs += gapUs * count
    if (gapUs > this.maxUs) this.maxUs = gapUs
  }
}
