import { measureServiceGap } from '../../test/support/service-gap.ts'
import { type Finding, tell } from '../micro/tell.ts'

/**
 * Claim: two and eight tenants that all ask for more than their share (256 tokens in, 256 out), through the whole
 * platform: with lengths predicted from history the accumulated service gap is at most 1.1 times that of our own run
 * with true lengths known, mean of ten seeds. `--seeds N` changes the effort. What the order of turns alone does, on an
 * engine of slots: `bench/micro/fairness-gap.ts`.
 */
const at = process.argv.indexOf('--seeds')
const SEEDS = at < 0 ? 10 : Number(process.argv[at + 1])

async function meanGap(tenantCount: number, knows: 'true-length' | 'history'): Promise<{ gap: number; perS: number }> {
  let gap = 0
  let perS = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const seen = await measureServiceGap({ tenantCount, knows, seed })
    gap += seen.gap / SEEDS
    perS += seen.servedPerS / SEEDS
  }
  return { gap, perS }
}

const findings: Finding[] = []
for (const tenantCount of [2, 8]) {
  const known = await meanGap(tenantCount, 'true-length')
  const predicted = await meanGap(tenantCount, 'history')
  findings.push({ name: `${tenantCount} tenants, true lengths`, value: known.gap, unit: 'service units' })
  findings.push({ name: `${tenantCount} tenants, history`, value: predicted.gap, unit: 'service units' })
  findings.push({ name: `${tenantCount} tenants, history: served`, value: predicted.perS, unit: 'units a second' })
  const value = predicted.gap / known.gap
  findings.push({ name: `${tenantCount} tenants: history ÷ true`, value, unit: 'times', below: 1.1 })
}
tell(`accumulated service gap of overloading tenants, mean of ${SEEDS} seeds`, findings)
