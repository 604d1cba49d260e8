import { describe, expect, it } from 'vitest'
import {
  LIVE_CASES,
  type LiveCase,
  type Pair,
  runFairPair,
  shedRatio,
} from '../../bench/experiments/kit/live-virtual.ts'

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
 *
 * A run in which they disagree is told, with how the event loop fared, and two further ones must agree. A stall of the
 * whole process is no part of how far 99 of 100 looks are behind: beside all other tests a live `burst` refused 11 of 134
 * more, twice, where every run by itself agreed within two. What a policy does otherwise live shows in every run.
 */
const SERVED_RATIO = 0.125
const SERVED_COUNT = 5
const SHED_RATIO = 0.07

const FURTHER_RUNS = 2

/** In what a live run differs from the simulated one by more than it may. */
function disagreements({ calm }: LiveCase, { live, virtual }: Pair): string[] {
  const found: string[] = []
  for (const [id, wanted] of Object.entries(virtual.tenants)) {
    const got = live.tenants[id]!
    const apart = Math.abs(got.requests.completed - wanted.requests.completed)
    if (apart > Math.max(SERVED_COUNT, SERVED_RATIO * wanted.requests.completed))
      found.push(`${id}: ${got.requests.completed} served, ${wanted.requests.completed} simulated`)
    if (Math.abs(shedRatio(got) - shedRatio(wanted)) > SHED_RATIO)
      found.push(`${id}: ${got.requests.shed} of ${got.requests.arrived} refused, ${wanted.requests.shed} simulated`)
  }
  for (const id of calm) {
    for (const { tenants } of [virtual, live]) {
      if (tenants[id]?.requests.shed !== 0) found.push(`${id} is refused`)
      if (!((tenants[id]?.latency.ttft.p95 ?? Number.NaN) < 1_000)) found.push(`${id} notices`)
    }
  }
  return found
}

describe('live and simulated runs agree', () => {
  it.for(LIVE_CASES)('$name', { timeout: 600_000 }, async (which, { skip }) => {
    const compared = async (): Promise<string[]> => {
      const pair = await runFairPair(which, 1)
      if (pair === undefined) {
        const because = `${which.name}: the event loop fell behind at every pace, so nothing was compared`
        if (process.env['CI'] !== undefined) throw new Error(because)
        return skip(because)
      }
      expect(pair.live.requests.failed).toBe(0)
      const found = disagreements(which, pair)
      if (found.length > 0) {
        const loop = `event loop behind ${pair.behindMs.toFixed(1)} ms at p99, ${pair.stallMs.toFixed(1)} ms at most`
        process.stderr.write(`${which.name}, live: ${found.join('; ')} (${loop})\n`)
      }
      return found
    }
    if ((await compared()).length === 0) return
    for (let i = 0; i < FURTHER_RUNS; i++) expect(await compared()).toEqual([])
  })
})
