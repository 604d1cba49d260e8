import { assert } from '../base/assert.ts'
import type { Passage } from '../domain/corpus.ts'
import type { Estimate, Plan } from '../domain/plan.ts'
import { promptTokensOf, type Request } from '../domain/request.ts'
import { makeConstantSpeed } from '../policy/planning/cost.ts'
import { isSameWork, makePlan, type PlanningFacts } from '../policy/planning/make-plan.ts'
import { habitOf } from '../policy/planning/output-length.ts'
import type { Platform } from './platform.ts'
import type { Policies } from './policies.ts'
import { chooseRelease, type ReleaseOf } from './rollout/pick-release.ts'

/**
 * What planning must know, gathered from the meters; and plans that are made again for a request that was admitted:
 * with its passages, one rung further down, or for another release.
 */

/** A model whose last pool was taken away: its plan is made, and refused for want of a replica. */
const NO_POOL_SPEED = makeConstantSpeed({ prefillUsPerToken: 40, tokenUs: 12_000 })

/** The same for every request of a platform. */
type CommonFacts = Omit<PlanningFacts, 'releaseOf'>

const planningFactsKnown = new WeakMap<Policies, CommonFacts>()

export function planningFacts(policies: Policies): CommonFacts {
  let facts = planningFactsKnown.get(policies)
  if (facts === undefined) {
    facts = makePlanningFacts(policies)
    planningFactsKnown.set(policies, facts)
  }
  return facts
}

function makePlanningFacts(policies: Policies): CommonFacts {
  return {
    model: (name) => policies.models.get(name),
    speedOf: (releaseId) => policies.poolsByRelease.get(releaseId)?.[0]?.speed ?? NO_POOL_SPEED,
    correctTokens: (model, tokens) => policies.ratios.get(model)?.correct(tokens) ?? tokens,
    predictOutput: (request, capTokens) => policies.outputs.predict(habitOf(request), capTokens),
    cachedTokensOf: (releaseId, request) => cachedTokens(policies, releaseId, request),
    outputWeight: policies.outputWeight,
  }
}

/**
 * What the likeliest owner of this prompt's beginning holds of it already. Counted only while there is a choice: in a full
 * pool the next free place decides, and a plan that counts on a prefix held elsewhere overfills the replica that it gets.
 */
function cachedTokens(policies: Policies, releaseId: string, request: Request): number {
  if (request.prefixHashes.length === 0) return 0
  const hasChoice = policies.poolsByRelease
    .get(releaseId)
    ?.some(({ pool }) => (policies.dispatcher.poolFacts(pool.id)?.openReplicaCount ?? 0) > 1)
  if (hasChoice !== true) return 0
  const { prefixHashes, arrivedAt } = request
  return policies.placer.cachedTokens(arrivedAt, { prefixHashes, estimate: smallest(request) })
}

/** Whether a replica is idle is asked before a plan is made: its prompt is the least that it will need. */
export function smallest(request: Request): Estimate {
  const promptTokens = promptTokensOf(request)
  return { promptTokens, cachedTokens: 0, outputTokens: 1, outputTokensHigh: 1, cost: promptTokens, engineUs: 0 }
}

/** The same request one rung further down, for the same model: what a second try asks of another replica. */
export function lighterPlan(platform: Platform, request: Request, plan: Plan): Plan | undefined {
  const { policies } = platform
  const isFallbackUsed = plan.model !== request.model
  for (const rung of policies.rungs.slice(plan.rung.depth + 1)) {
    const planned = makePlan(request, { ...rung, isFallbackUsed }, factsFor(policies, request, plan), plan.passages)
    if (planned.kind !== 'planned' || planned.plan.model !== plan.model) return undefined
    // A rung that takes nothing from this request (there were no passages to trim) is no lighter.
    if (!isSameWork(planned.plan, plan)) return planned.plan
  }
  return undefined
}

/** The same plan for another release of the same model; undefined where that one cannot run it. */
export function planForRelease(platform: Platform, request: Request, plan: Plan, releaseId: string): Plan | undefined {
  const planned = planWith(platform, request, { ...plan, releaseId }, plan.passages)
  return planned.releaseId === releaseId ? planned : undefined
}

/** A plan that is made again keeps its release, whatever the split says by now. */
function factsFor(policies: Policies, request: Request, plan: Plan): PlanningFacts {
  const kept = policies.releases.get(plan.releaseId)
  const releaseOf: ReleaseOf = (model) =>
    model === plan.model ? kept : chooseRelease(policies, request, model)?.release
  return { ...planningFacts(policies), releaseOf }
}

/** The same plan with the passages that were found, and what they really cost. */
export function planWith(
  platform: Platform,
  request: Request,
  plan: Plan,
  passages: readonly Passage[] | undefined,
): Plan {
  const { policies } = platform
  const rung = policies.rungs[plan.rung.depth]
  assert(rung !== undefined, 'a plan was made on a rung')
  const isFallbackUsed = plan.model !== request.model
  const planned = makePlan(request, { ...rung, isFallbackUsed }, factsFor(policies, request, plan), passages)
  return planned.kind === 'planned' ? planned.plan : plan
}
