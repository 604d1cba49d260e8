import { Rng } from '../../src/base/rng.ts'
import type { Tenant } from '../../src/domain/tenant.ts'
import { Demand } from '../../src/policy/ladder/demand.ts'
import { Ladder, type LadderOptions } from '../../src/policy/ladder/ladder.ts'
import { pressureOf } from '../../src/policy/ladder/pressure.ts'
import { DEFAULT_RUNGS } from '../../src/policy/ladder/rungs.ts'
import { makeTenant } from '../../test/support/demand.ts'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: through two minutes of steady overload the dwelling rung changes at most six times, and it is `full` again
 * within ten seconds after. One tenant before a pool that does 100 a second; requests of cost 1 in full, less on deeper
 * rungs; a queue that refuses beyond two seconds. Thresholds alone, and hysteresis with dwell but without asking for
 * the demand in full, are run beside it.
 */
const SECOND = 1_000_000
const TICK = 10_000
const STORM_S = 120
const DRAIN_PER_S = 100
const PATIENCE_US = 2 * SECOND
/** Cost of a request by rung, relative to full: trimming saves a third, capping more, the fallback's pool the rest. */
const COST_BY_DEPTH = [1, 0.7, 0.5, 0.15, 0.15]

interface Result {
  readonly changes: number
  readonly refusedRatio: number
  readonly backAfterS: number
}

function run(load: number, options: Partial<LadderOptions>, isDemandAsked: boolean): Result {
  const tenant: Tenant = makeTenant('t')
  const ladder = new Ladder(DEFAULT_RUNGS, options)
  const demand = new Demand()
  const rng = Rng.stream(1, 'arrivals')
  let backlog = 0
  let changes = 0
  let offered = 0
  let refused = 0
  let lastNotFullAt = 0
  const note = (change: unknown): void => {
    if (change !== undefined) changes++
  }
  for (let now = 0; now < (STORM_S + 40) * SECOND; now += TICK) {
    const rate = now < STORM_S * SECOND ? load : 0.4
    backlog = Math.max(0, backlog - (DRAIN_PER_S * TICK) / SECOND)
    // About one arrival a tick at load 1, at random.
    const arrivals = Math.floor(rate) + (rng.next() < rate % 1 ? 1 : 0)
    for (let i = 0; i < arrivals; i++) {
      const cost = COST_BY_DEPTH[ladder.depthOf(tenant, 'p')] as number
      const pressure = pressureOf({ predictedUs: (backlog / DRAIN_PER_S) * SECOND, affordableUs: PATIENCE_US })
      demand.observe(now, { tenant, cost: 1 })
      note(ladder.observe(now, { tenant, poolId: 'p', pressure, demand: isDemandAsked ? demand.of(now, 't') : 0 }))
      offered++
      if (pressure >= 1) refused++
      else backlog += cost
    }
    if (now % 100_000 === 0) {
      demand.settleLevel(now, DRAIN_PER_S / SECOND)
      for (const change of ladder.tick(now)) note(change)
    }
    if (ladder.depthOf(tenant, 'p') > 0) lastNotFullAt = now
  }
  return { changes, refusedRatio: refused / offered, backAfterS: lastNotFullAt / SECOND - STORM_S }
}

const VARIANTS: readonly [string, Partial<LadderOptions>, boolean][] = [
  ['thresholds alone', { hysteresis: 0, deepenDwellUs: 0, relaxDwellUs: 0, memoryUs: 1 }, false],
  ['hysteresis and dwell', {}, false],
  ['hysteresis, dwell and demand', {}, true],
]

const findings: Finding[] = []
for (const load of [1.3, 1.8, 3]) {
  for (const [name, options, isDemandAsked] of VARIANTS) {
    const seen = run(load, options, isDemandAsked)
    const label = `${load}×, ${name}`
    findings.push({ name: `${label}: changes`, value: seen.changes, unit: '', ...(isDemandAsked ? { below: 7 } : {}) })
    findings.push({ name: `${label}: refused`, value: 100 * seen.refusedRatio, unit: '%' })
    findings.push({
      name: `${label}: full again after`,
      value: seen.backAfterS,
      unit: 's',
      ...(isDemandAsked ? { below: 10 } : {}),
    })
  }
}
tell('ladder through 120 s of overload', findings)
