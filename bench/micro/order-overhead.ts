import { FAIRNESS_NAMES } from '../../src/policy/fairness/make-fairness.ts'
import { Crowd } from './crowd.ts'
import { cpuUsOf, type Finding, tell } from './tell.ts'

/**
 * What does each order of turns cost? A full cycle (offer, dispatch, settle) with two tickets queued per tenant, at
 * 100, 1,000 and 10,000 tenants, for every order that configuration knows. Orders are measured in turn, batch by batch,
 * so that a busy neighbour disturbs all of them alike; each figure is the quietest batch, in processor time. The claim
 * is of the default alone: it costs no more than weighted fair queueing does, at any of the sizes.
 */
const WARM_UP = 20_000
const BATCHES = 7
const CYCLES_PER_BATCH = 20_000

const findings: Finding[] = []
for (const tenantCount of [100, 1_000, 10_000]) {
  const runs = FAIRNESS_NAMES.map((fairness) => ({
    fairness,
    crowd: new Crowd({ tenantCount, queuedCount: 2 * tenantCount, fairness }),
    cycleUs: Number.POSITIVE_INFINITY,
  }))
  for (const { crowd } of runs) for (let i = 0; i < WARM_UP; i++) crowd.cycle()
  for (let batch = 0; batch < BATCHES; batch++) {
    for (const run of runs) {
      const cycleUs = cpuUsOf(CYCLES_PER_BATCH, () => run.crowd.cycle())
      run.cycleUs = Math.min(run.cycleUs, cycleUs)
    }
  }
  const cycleUsOf = (name: string): number => runs.find(({ fairness }) => fairness === name)?.cycleUs ?? 0
  for (const { fairness, cycleUs } of runs) {
    findings.push({ name: `${tenantCount} tenants: ${fairness}`, value: cycleUs, unit: 'µs of processor' })
  }
  const value = cycleUsOf('deficit-round-robin') / cycleUsOf('weighted-fair-queueing')
  findings.push({ name: `${tenantCount} tenants: default ÷ fair queueing`, value, unit: 'times', below: 1 })
}
tell('cost of a cycle by order of turns', findings)
