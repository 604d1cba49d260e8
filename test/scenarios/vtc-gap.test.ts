import { describe, expect, it } from 'vitest'
import { runVtc } from '../../bench/experiments/vtc/a10g-engine.ts'
import { measureVtc } from '../../bench/experiments/vtc/metrics.ts'
import { SYNTHETIC } from '../../bench/experiments/vtc/workloads.ts'

/**
 * The VTC paper's engine, where memory is what everybody waits for: all heads are passed over, called back when an answer
 * ends, and all but one in vain. `bench/experiments/vtc.ts` has the whole of it.
 */
describe('the accumulated gap where memory is full', () => {
  it.each(['overload', 'overload-multi'])('%s: is about one request, 256 in and twice 256 out', (name) => {
    const workload = SYNTHETIC[name]!
    const seeds = [1]
    const gaps = seeds.map((seed) => {
      const run = {
        fairness: 'deficit-round-robin',
        knows: 'history',
        requests: workload.requests(seed),
        seed,
      } as const
      return measureVtc(runVtc(run), workload).gapMax
    })
    // Were a lane counted as owed whenever it is called back in vain, the gap would be twice as large.
    expect(Math.max(...gaps), gaps.join(' ')).toBeLessThan(256 + 2 * 256)
  })
})
