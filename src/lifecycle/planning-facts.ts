import type { Estimate } from '../domain/plan.ts'
import { promptTokensOf, type Request } from '../domain/request.ts'
import { makeConstantSpeed } from '../policy/planning/cost.ts'
import type { PlanningFacts } from '../policy/planning/make-plan.ts'
import { habitOf } from '../policy/planning/output-length.ts'
import type { Policies } from './policies.ts'
import { pickRelease } from './rollout/pick-release.ts'

/**
 * What planning must know, asked of the meters. Made once for a platform: everything about one request comes as an
 * argument.
 */
export function makePlanningFacts(policies: Policies): PlanningFacts {
  return {
    model: (name) => policies.models.get(name),
    releaseOf: (model, request) => pickRelease(policies, request, model)?.release,
    speedOf: (releaseId) => policies.poolsByRelease.get(releaseId)?.[0]?.speed ?? NO_POOL_SPEED,
    correctTokens: (request, model, tokens) => correctTokens(policies, request, model, tokens),
    predictOutput: (request, capTokens) => policies.outputs.predict(habitOf(request), capTokens),
    cachedTokensOf: (releaseId, request) => cachedTokens(policies, releaseId, request),
    outputWeight: policies.outputWeight,
  }
}

/** For a model whose last pool was removed: its plan is made, and refused for want of a replica. */
const NO_POOL_SPEED = makeConstantSpeed({ prefillUsPerToken: 40, tokenUs: 12_000 })

/**
 * Leading prompt tokens that the likeliest owner of this prompt's beginning holds already. Counted only while several
 * replicas are open: in a full pool the next free place decides, and a plan that counts on a prefix held elsewhere
 * overfills the replica that it gets.
 */
function cachedTokens(policies: Policies, releaseId: string, request: Request): number {
  if (request.prefixHashes.length === 0) return 0
  const hasChoice = policies.poolsByRelease
    .get(releaseId)
    ?.some(({ pool }) => (policies.dispatcher.poolFacts(pool.id)?.openReplicaCount ?? 0) > 1)
  if (hasChoice !== true) return 0
  const { prefixHashes, arrivedAt } = request
  const held = policies.placer.cachedTokens(arrivedAt, { prefixHashes, estimate: smallest(policies, request) })
  return Math.round(held * (policies.poolsByRelease.get(releaseId)?.[0]?.twins?.cache.ratio ?? 1))
}

/** Counts stay as they are; estimates are corrected by what this tenant's prompts to the model turned out to be. */
export function correctTokens({ ratios }: Policies, request: Request, model: string, tokens: number): number {
  if (request.isEstimated !== true) return tokens
  return ratios.get(model)?.correct(request.tenant.id, tokens) ?? tokens
}

/** The least that a request will need, before a plan is made: its prompt and one token. */
export function smallest(policies: Policies, request: Request): Estimate {
  const corrected = correctTokens(policies, request, request.model, promptTokensOf(request))
  const windowTokens = policies.models.get(request.model)?.contextTokensMax ?? corrected
  // As in the plan: a prompt that was not counted fills the window at most.
  const promptTokens = request.isEstimated === true ? Math.min(corrected, windowTokens) : corrected
  return { promptTokens, cachedTokens: 0, outputTokens: 1, outputTokensHigh: 1, cost: promptTokens, engineUs: 0 }
}
