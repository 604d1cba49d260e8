import { promptTokensOf, type Request } from '../domain/request.ts'
import type { Verdict } from '../policy/admission/admission.ts'
import type { Try } from '../policy/admission/facts.ts'
import type { Patience, Prediction } from '../policy/admission/feasibility.ts'
import type { RungChange } from '../policy/ladder/ladder.ts'
import { pressureOf } from '../policy/ladder/pressure.ts'
import { weightedTokens } from '../policy/planning/cost.ts'
import { habitOf } from '../policy/planning/output-length.ts'
import type { Platform } from './platform.ts'
import type { PoolPolicies } from './policies.ts'

/**
 * Every decision on a request also says how hard pressed its tenant is: the ladder hears of it, and so does the audit,
 * if the request was refused for lateness. The tick hears of those who are silent.
 */
export function feelPressure(platform: Platform, request: Request, verdict: Verdict): void {
  const { policies, world } = platform
  const pool = policies.poolsByModel.get(request.model)
  if (pool === undefined) return
  const now = world.clock.now()
  const { tenant } = request
  policies.lengths.count('offered', promptTokensOf(request))
  pool.demand.observe(now, { tenantId: tenant.id, weight: tenant.weight, cost: costInFull(platform, request) })
  const seen = verdict.kind === 'admitted' ? verdict : verdict.nearest
  if (seen === undefined) return
  const change = policies.ladder.observe(now, {
    tenant,
    poolId: pool.pool.id,
    pressure: pressureIn(platform, request, seen, pool),
    demand: pool.demand.of(now, tenant.id),
  })
  if (change !== undefined) journalRungChange(platform, change)
  if (verdict.kind === 'rejected' && verdict.refusal.code === 'predicted-late' && verdict.nearest !== undefined) {
    watchRefusal(platform, verdict.nearest)
  }
}

export function journalRungChange(platform: Platform, change: RungChange): void {
  const { at, tenantId, poolId, from, to, pressure, because } = change
  platform.world.journal.record({
    kind: 'rung-changed',
    at,
    tenantId,
    poolId,
    from: from.name,
    to: to.name,
    depth: to.depth,
    pressure,
    because,
  })
}

/** What it would cost on the full rung: degraded demand must not look like little demand. */
function costInFull(platform: Platform, request: Request): number {
  const { outputs, outputWeight, models } = platform.policies
  const cap = request.outputTokensMax ?? models.get(request.model)?.outputTokensDefault ?? 1
  const outputTokens = outputs.predict(habitOf(request), cap).tokens * request.choiceCount
  return weightedTokens({ promptTokens: promptTokensOf(request), cachedTokens: 0, outputTokens }, outputWeight)
}

interface Seen {
  readonly predicted: Prediction
  readonly patience: Patience
  readonly plan: Try['plan']
}

/** The nearer of its two promises counts. */
function pressureIn(platform: Platform, request: Request, seen: Seen, pool: PoolPolicies): number {
  const { predicted, patience, plan } = seen
  const cell = { poolId: pool.pool.id, sloName: request.slo.name, promptTokens: plan.estimate.promptTokens }
  const { ttft, finish } = platform.policies.calibration.termsFor(cell)
  return Math.max(
    pressureOf({
      predictedUs: predicted.ttftUs * ttft.biasRatio,
      affordableUs: patience.ttftUs * (1 - ttft.marginRatio),
    }),
    pressureOf({
      predictedUs: predicted.finishUs * finish.biasRatio,
      affordableUs: patience.finishUs * (1 - finish.marginRatio),
    }),
  )
}

function watchRefusal(platform: Platform, nearest: Try): void {
  const now = platform.world.clock.now()
  const { plan, predicted, patience } = nearest
  const prefillUs = predicted.ttftUs - predicted.waitUs
  const { promptTokens, cost, engineUs } = plan.estimate
  const startBy = now + Math.min(patience.ttftUs - prefillUs, patience.finishUs - engineUs)
  platform.policies.lengths.count('refused-late', promptTokens)
  const pool = platform.policies.poolsById.get(nearest.pool.poolId)
  if (startBy > now) pool?.audit.refused(now, { cost, startBy, heldUs: engineUs, promptTokens })
}
