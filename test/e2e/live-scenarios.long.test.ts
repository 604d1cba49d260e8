import { describe, expect, it } from 'vitest'
import { LIVE_CASES, runFairPair, shedRatio } from '../../bench/experiments/kit/live-virtual.ts'

/**
 * Law L12: the first three scenarios at reduced scale, live and simulated, must agree on who was served, who was refused
 * and who noticed:
 *
 *   served per tenant    within an eighth, or five requests
 *   shed per tenant      within 7 of 100 that it asked for
 *   first tokens         of those who must not notice: 95 of 100 within a second in both, and none refused
 *
 * Only a fair run is compared: one in which the event loop kept up, everybody's clock running slower than the world's.
 * On a busy machine the first is not, and those after it run slower still. `bench/experiments/live-virtual.ts` repeats this
 * over seeds and tells the spread. Where none was fair, nothing is known: that fails where results count (in CI), and is
 * said elsewhere.
 */
const SERVED_RATIO = 0.125
const SERVED_COUNT = 5
const SHED_RATIO = 0.07

describe('live and simulated runs agree', () => {
  it.for(LIVE_CASES)('$name', { timeout: 400_000 }, async (which, { skip }) => {
    const pair = await runFairPair(which, 1)
    if (pair === undefined) {
      const because = `${which.name}: the event loop fell behind at every pace, so nothing was compared`
      if (process.env['CI'] !== undefined) throw new Error(because)
      return skip(because)
    }
    const { live, virtual } = pair
    expect(live.requests.failed).toBe(0)
    for (const [id, wanted] of Object.entries(virtual.tenants)) {
      const got = live.tenants[id]!
      const apart = Math.abs(got.requests.completed - wanted.requests.completed)
      const apartMax = Math.max(SERVED_COUNT, SERVED_RATIO * wanted.requests.completed)
      expect(apart, `${id}: served`).toBeLessThanOrEqual(apartMax)
      expect(Math.abs(shedRatio(got) - shedRatio(wanted)), `${id}: shed`).toBeLessThanOrEqual(SHED_RATIO)
    }
    for (const id of which.calm) {
      for (const report of [virtual, live]) {
        expect(report.tenants[id]?.requests.shed, `${id} is not refused`).toBe(0)
        expect(report.tenants[id]?.latency.ttft.p95, `${id} does not notice`).toBeLessThan(1_000)
      }
    }
  })
})
