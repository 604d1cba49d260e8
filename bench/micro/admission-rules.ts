import { type LoopShape, runAdmissionLoop } from '../../test/support/admission-loop.ts'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: predicting the wait from everybody's backlog and flow, with a calibrated margin, keeps the late below 5 % of
 * the admitted at full goodput, where the own lane alone or one queue for all do not, or refuse the light tenants.
 * A small model pool (64 slots, deficit round robin, lopsided true costs), 120 virtual seconds, mean of three seeds.
 */
const WORLDS: Readonly<Record<string, Partial<LoopShape>>> = {
  '200 small tenants, 1.5×': { tenantCount: 200, load: 1.5 },
  '200 small tenants, 3×': { tenantCount: 200, load: 3 },
  'noisy neighbour, 2×': { tenantCount: 10, load: 2, heavyFactor: 20 },
}
const RULES = [
  { name: 'own lane', rule: 'own-lane', isCalibrated: false },
  { name: 'whole queue', rule: 'whole-queue', isCalibrated: false },
  { name: 'fair share', rule: 'fair-share', isCalibrated: false },
  { name: 'fair share, calibrated', rule: 'fair-share', isCalibrated: true },
] as const

const findings: Finding[] = []
for (const [world, shape] of Object.entries(WORLDS)) {
  for (const { name, rule, isCalibrated } of RULES) {
    const runs = [1, 2, 3].map((seed) =>
      runAdmissionLoop({ seed, tenantCount: 10, load: 1.5, seconds: 120, rule, isCalibrated, ...shape }),
    )
    const mean = (of: (run: (typeof runs)[number]) => number): number =>
      runs.reduce((sum, run) => sum + of(run) / runs.length, 0)
    const label = `${world}: ${name}`
    const late = { name: `${label}, late`, value: 100 * mean((run) => run.lateRatio), unit: '% of admitted' }
    findings.push(isCalibrated ? { ...late, below: 5 } : late)
    findings.push({ name: `${label}, done in time`, value: 100 * mean((run) => run.goodput), unit: '% of capacity' })
    findings.push({ name: `${label}, light refused`, value: 100 * mean((run) => run.lightRefusedRatio), unit: '%' })
    findings.push({ name: `${label}, false rejects`, value: 100 * mean((run) => run.falseRejectRatio), unit: '%' })
  }
}
tell('admission rules in a model pool', findings)
