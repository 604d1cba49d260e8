import { assert } from '../base/assert.ts'
import type { Passage } from '../domain/corpus.ts'
import type { Plan, Trim } from '../domain/plan.ts'
import { promptTokensOf, type Request, tokensOfSegments } from '../domain/request.ts'
import { isSameWork, makePlan } from '../policy/planning/make-plan.ts'
import type { Platform } from './platform.ts'

/**
 * Plans that are made again for a request that was admitted: with the passages that were found, one rung further down, or
 * for another release. Apart from the last, a plan that is made again keeps its release, whatever the split says by now;
 * a release that has been removed meanwhile can no longer be planned for.
 */

/** The same request one rung further down, for the same model: what a second try asks of another replica. */
export function lighterPlan({ policies, admission }: Platform, request: Request, plan: Plan): Plan | undefined {
  const release = policies.releases.get(plan.releaseId)
  if (release === undefined) return undefined
  const isFallbackUsed = plan.model !== request.model
  for (const rung of policies.rungs.slice(plan.rung.depth + 1)) {
    const planned = makePlan(request, { ...rung, isFallbackUsed }, admission.planning, release, plan.passages)
    if (planned.kind !== 'planned' || planned.plan.model !== plan.model) return undefined
    // A rung that takes nothing from this request (there were no passages to trim) is no lighter.
    if (!isSameWork(planned.plan, plan)) return planned.plan
  }
  return undefined
}

/** The same plan for another release of the same model; undefined where that release cannot run it. */
export function planForRelease(platform: Platform, request: Request, plan: Plan, releaseId: string): Plan | undefined {
  const planned = planWith(platform, request, { ...plan, releaseId }, plan.passages)
  return planned.releaseId === releaseId ? planned : undefined
}

/** The same plan with the passages that were found, and what they really cost. */
export function planWith(
  { policies, admission }: Platform,
  request: Request,
  plan: Plan,
  passages: readonly Passage[] | undefined,
): Plan {
  const rung = policies.rungs[plan.rung.depth]
  assert(rung !== undefined, 'a plan was made on a rung')
  const release = policies.releases.get(plan.releaseId)
  if (release === undefined) return plan
  const isFallbackUsed = plan.model !== request.model
  const planned = makePlan(request, { ...rung, isFallbackUsed }, admission.planning, release, passages)
  return planned.kind === 'planned' ? planned.plan : plan
}

/** What the plan leaves out of the request: an empty object for most plans, which leave out nothing. */
export function trimOf({ policies }: Platform, request: Request, plan: Plan): { readonly trim?: Trim } {
  const cap = policies.rungs[plan.rung.depth]?.outputTokensMax
  const askedTokens = request.outputTokensMax
  const isCapped = askedTokens === undefined ? plan.outputTokensMax === cap : plan.outputTokensMax < askedTokens
  const isTrimmed = plan.keptSegments.length < request.segments.length
  const askedPassages = request.retrieval?.passagesMax ?? 0
  const keptPassages = plan.passageRoom?.passagesMax ?? 0
  if (!isCapped && !isTrimmed && keptPassages >= askedPassages) return NOTHING_TRIMMED
  return {
    trim: {
      ...(isTrimmed && {
        messages: { kept: plan.keptSegments.length, asked: request.segments.length },
        promptTokens: {
          kept: (request.fixedTokens ?? 0) + tokensOfSegments(plan.segments),
          asked: promptTokensOf(request),
        },
      }),
      ...(keptPassages < askedPassages && { passages: { kept: keptPassages, asked: askedPassages } }),
      ...(isCapped && { outputTokens: { kept: plan.outputTokensMax, asked: askedTokens } }),
    },
  }
}

const NOTHING_TRIMMED = Object.freeze({})
