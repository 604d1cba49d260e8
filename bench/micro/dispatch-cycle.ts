import { Crowd } from './crowd.ts'
import { type Finding, quantile, tell } from './tell.ts'

/**
 * Claim: with 10,000 queued tickets of 1,000 tenants, a full cycle (offer, dispatch, settle) takes under 5 µs on
 * average, and one scheduling decision (a lease comes back, the next ticket is chosen and placed) under 100 µs at p99.
 */
const WARM_UP = 100_000
const CYCLES = 500_000
const DECISIONS = 200_000

const crowd = new Crowd({ tenantCount: 1_000, queuedCount: 10_000 })
for (let i = 0; i < WARM_UP; i++) crowd.cycle()

const startedAt = performance.now()
for (let i = 0; i < CYCLES; i++) crowd.cycle()
const cycleUs = ((performance.now() - startedAt) * 1_000) / CYCLES

const tookUs = new Float64Array(DECISIONS)
for (let i = 0; i < DECISIONS; i++) {
  crowd.offer(crowd.nextOffer())
  const before = performance.now()
  crowd.release()
  tookUs[i] = (performance.now() - before) * 1_000
}
tookUs.sort()
crowd.dispatcher.assertInvariants()

const findings: Finding[] = [
  { name: 'cycle, mean', value: cycleUs, unit: 'µs', below: 5 },
  { name: 'decision, p50', value: quantile(tookUs, 0.5), unit: 'µs' },
  { name: 'decision, p99', value: quantile(tookUs, 0.99), unit: 'µs', below: 100 },
  { name: 'decision, p99.9', value: quantile(tookUs, 0.999), unit: 'µs' },
  { name: 'decision, max', value: quantile(tookUs, 1), unit: 'µs' },
]
tell('10,000 queued tickets of 1,000 tenants', findings)
