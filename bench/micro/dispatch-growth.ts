import { Crowd } from './crowd.ts'
import { cpuUsOf, type Finding, tell } from './tell.ts'

/**
 * Claim: the cost of a cycle grows at most with the logarithm of the number of tenants, and not with the length of the
 * queue. Shown as two curves: 10 to 100,000 tenants, and 1,000 tenants with 1,000 to 100,000 tickets. Each point is the
 * quietest of five batches, in processor time. Caches do not grow with either, so part of the rise is memory and not steps: what fits the
 * cache at 10,000 tickets does not at 100,000, where each ticket is touched twice, minutes apart.
 */
const WARM_UP = 30_000
const BATCHES = 5
const CYCLES_PER_BATCH = 20_000

function cycleUs(tenantCount: number, queuedCount: number): number {
  const crowd = new Crowd({ tenantCount, queuedCount })
  for (let i = 0; i < WARM_UP; i++) crowd.cycle()
  let bestUs = Number.POSITIVE_INFINITY
  for (let batch = 0; batch < BATCHES; batch++)
    bestUs = Math.min(
      bestUs,
      cpuUsOf(CYCLES_PER_BATCH, () => crowd.cycle()),
    )
  return bestUs
}

const findings: Finding[] = []
const unit = 'µs of processor a cycle'
for (const tenants of [10, 100, 1_000, 10_000, 100_000]) {
  const queued = Math.max(10_000, tenants)
  findings.push({ name: `${tenants} tenants, ${queued} queued`, value: cycleUs(tenants, queued), unit })
}
const byTenants = (findings.at(-1) as Finding).value / (findings[0] as Finding).value
for (const queued of [1_000, 10_000, 100_000]) {
  findings.push({ name: `1000 tenants, ${queued} queued`, value: cycleUs(1_000, queued), unit })
}
const byLength = (findings.at(-1) as Finding).value / (findings.at(-3) as Finding).value
// From 10 to 100,000 tenants the logarithm grows fivefold; linear would be ten thousandfold.
findings.push({ name: '100,000 tenants against 10', value: byTenants, unit: 'times', below: 5 })
// A hundred times as many tickets: linear would be a hundredfold; the heap of expiries and memory remain.
findings.push({ name: '100,000 queued against 1,000', value: byLength, unit: 'times', below: 5 })
tell('cost of a cycle by tenants and by queue length', findings)
