import { Crowd } from './crowd.ts'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: the cost of a cycle grows at most with the logarithm of the number of tenants, and not with the length of the
 * queue. Shown as two curves: 10 to 100,000 tenants with ten tickets each (at least 10,000), and 1,000 tenants with
 * 1,000 to 300,000 tickets. Caches grow with neither, so part of the rise is memory and not steps.
 */
const WARM_UP = 50_000
const CYCLES = 150_000

function cycleUs(tenantCount: number, queuedCount: number): number {
  const crowd = new Crowd({ tenantCount, queuedCount })
  for (let i = 0; i < WARM_UP; i++) crowd.cycle()
  const startedAt = performance.now()
  for (let i = 0; i < CYCLES; i++) crowd.cycle()
  return ((performance.now() - startedAt) * 1_000) / CYCLES
}

const findings: Finding[] = []
for (const tenants of [10, 100, 1_000, 10_000, 100_000]) {
  const queued = Math.max(10_000, tenants)
  findings.push({ name: `${tenants} tenants, ${queued} queued`, value: cycleUs(tenants, queued), unit: 'µs a cycle' })
}
for (const queued of [1_000, 10_000, 100_000, 300_000]) {
  findings.push({ name: `1000 tenants, ${queued} queued`, value: cycleUs(1_000, queued), unit: 'µs a cycle' })
}
const first = findings[0]?.value as number
const last = findings[4]?.value as number
// From 10 to 100,000 tenants the logarithm grows fivefold.
findings.push({ name: '100,000 tenants against 10', value: last / first, unit: 'times', below: 5 })
tell('cost of a cycle by tenants and by queue length', findings)
