import { Crowd } from './crowd.ts'
import { cpuUsOf, type Finding, tell } from './tell.ts'

/**
 * Claim: the cost of a cycle does not grow with the length of the queue, and at most with the logarithm of the number
 * of tenants. Two curves: 10 to 100,000 tenants with two tickets each, and 1,000 tenants with 1,000 to 100,000 tickets.
 * Time grows for two reasons, steps and memory: at 100,000 tenants the records take hundreds of megabytes, and every
 * cycle meets three tenants that no cache holds. To tell them apart, beside each cycle stands the time of looking three
 * tenants' records up and changing nothing, which takes the same number of steps everywhere. The claim is about the
 * whole time all the same. Each point is the quietest of five batches, in processor time.
 */
const WARM_UP = 30_000
const BATCHES = 5
const CYCLES_PER_BATCH = 20_000

interface Point {
  readonly cycleUs: number
  readonly lookUpUs: number
}

function measure(tenantCount: number, queuedCount: number): Point {
  const crowd = new Crowd({ tenantCount, queuedCount })
  for (let i = 0; i < WARM_UP; i++) crowd.cycle()
  let [cycleUs, lookUpUs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let batch = 0; batch < BATCHES; batch++) {
    cycleUs = Math.min(
      cycleUs,
      cpuUsOf(CYCLES_PER_BATCH, () => crowd.cycle()),
    )
    lookUpUs = Math.min(
      lookUpUs,
      cpuUsOf(CYCLES_PER_BATCH, () => void crowd.lookUp()),
    )
  }
  return { cycleUs, lookUpUs }
}

const findings: Finding[] = []

function note(tenantCount: number, queuedCount: number): Point {
  const point = measure(tenantCount, queuedCount)
  const name = `${tenantCount} tenants, ${queuedCount} queued`
  findings.push({ name: `${name}: cycle`, value: point.cycleUs, unit: 'µs of processor' })
  findings.push({ name: `${name}: look-up alone`, value: point.lookUpUs, unit: 'µs of processor' })
  return point
}

const byTenants = [10, 100, 1_000, 10_000, 100_000].map((tenants) => note(tenants, 2 * tenants))
const byLength = [1_000, 10_000, 100_000].map((queued) => note(1_000, queued))

function growth(points: readonly Point[], of: keyof Point): number {
  return (points.at(-1) as Point)[of] / (points[0] as Point)[of]
}

// The logarithm grows fivefold from 10 to 100,000; linear would be ten thousandfold.
findings.push({
  name: '100,000 tenants against 10: cycle',
  value: growth(byTenants, 'cycleUs'),
  unit: 'times',
  below: 5,
})
findings.push({
  name: '100,000 tenants against 10: look-up alone',
  value: growth(byTenants, 'lookUpUs'),
  unit: 'times',
})
// A hundred times as many tickets: linear would be a hundredfold.
findings.push({
  name: '100,000 queued against 1,000: cycle',
  value: growth(byLength, 'cycleUs'),
  unit: 'times',
  below: 5,
})
tell('cost of a cycle by tenants and by queue length', findings)
