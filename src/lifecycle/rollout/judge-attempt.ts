import type { Plan } from '../../domain/plan.ts'
import { weightedTokens } from '../../policy/planning/cost.ts'
import type { AttemptFact } from '../../policy/rollout/judge.ts'
import type { Platform } from '../platform.ts'
import type { Ending } from '../ports.ts'
import type { Attempt } from '../ticket.ts'
import { recordRolloutChange } from './change-rollout.ts'

/**
 * What does this attempt say about its release? Told to the rollout of its model, attempt by attempt, so that a second
 * try elsewhere hides nothing.
 *
 * Times are told as measured ÷ expected, where *expected* is what an engine as busy as this one was should take: the
 * two releases never carry the same load, and a full engine is no slower release. For engines whose steps are known the
 * step-time model says it; for others the stable release's learned speed does, and attempts are compared only with
 * attempts under about as many sequences.
 */
export interface Expected {
  readonly ttftUs: number
  readonly tokenUs: number
  /** Log2 of the sequences beside it, where the expectation does not know what they cost; else 0. */
  readonly loadClass: number
}

/** Asked at the attempt's grant and again at its end; undefined where no release is on trial. */
export function expect({ policies }: Platform, { ticket, plan, lease }: Attempt): Expected | undefined {
  const { replica } = lease
  const rollout = policies.rollouts.get(replica.model)
  const load = policies.dispatcher.loadOf(replica.id)
  const pool = policies.poolsById.get(replica.poolId)
  if (rollout?.judged === undefined || ticket.request.errand !== undefined) return undefined
  if (load === undefined || pool === undefined) return undefined
  const { promptTokens, cachedTokens } = plan.estimate
  const { steps, alone } = pool.engineOf(replica)
  if (steps !== undefined) {
    const { sequences, contextTokens, prefillMilliPerToken, prefillTokens } = load
    const tokenUs = steps.meanTokenUs(sequences, contextTokens, prefillMilliPerToken / 1_000)
    return {
      ttftUs: alone.prefillUs(Math.max(1, prefillTokens), cachedTokens) + tokenUs,
      tokenUs,
      loadClass: 0,
    }
  }
  const reference = policies.poolsByRelease.get(rollout.stable)?.[0]?.speed ?? pool.speed
  return {
    ttftUs: reference.prefillUs(Math.max(1, promptTokens - cachedTokens), cachedTokens),
    tokenUs: reference.tokenUs(promptTokens),
    loadClass: 32 - Math.clz32(load.sequences),
  }
}

export interface AttemptSeen {
  readonly ending: Ending
  readonly atGrant: Expected | undefined
  readonly atEnd: Expected | undefined
  /** Mean time between the tokens of one choice. */
  readonly meanTokenUs: number | undefined
}

export function judgeAttempt(platform: Platform, attempt: Attempt, seen: AttemptSeen): void {
  const { ticket } = attempt
  const { replica } = attempt.lease
  const rollout = platform.policies.rollouts.get(replica.model)
  if (rollout?.judged === undefined || ticket.request.errand !== undefined) return
  // A cancelled attempt says nothing about the release.
  if (seen.ending.kind === 'cancelled' || ticket.cancellation.isCancelled) return
  const fact = factOf(platform, attempt, seen)
  const change = rollout.observe(platform.world.clock.now(), replica.releaseId, fact)
  if (change !== undefined) recordRolloutChange(platform, change)
}

function factOf(platform: Platform, attempt: Attempt, seen: AttemptSeen): AttemptFact {
  const { ending, atGrant, atEnd } = seen
  const { ticket, plan, grantedAt } = attempt
  const { request, firstTokenAt } = ticket
  const isBlamed = ending.kind === 'refused' && ending.refusal.blame === 'request'
  const isFailed = ending.kind === 'lost' || (ending.kind === 'refused' && !isBlamed)
  // A whole answer in one piece does not say when its first token came.
  const tellsFirst = request.isStreamed || ticket.gaps !== undefined
  const ttftUs = tellsFirst && firstTokenAt !== undefined ? firstTokenAt - grantedAt : undefined
  const tokenUs = atGrant === undefined || atEnd === undefined ? undefined : (atGrant.tokenUs + atEnd.tokenUs) / 2
  return {
    tenantId: request.tenant.id,
    promptTokens: plan.estimate.promptTokens,
    loadClass: atGrant?.loadClass ?? 0,
    isFailed,
    isRefused: isBlamed || ticket.isRefusedByModel,
    ttftRatio: isFailed ? undefined : ratio(ttftUs, atGrant?.ttftUs),
    interTokenRatio: isFailed ? undefined : ratio(seen.meanTokenUs, tokenUs),
    costRatio: costRatio(platform, plan, ending),
  }
}

/** Measured ÷ predicted cost, cached tokens counted like others: the caches of a new release are still empty. */
function costRatio({ policies }: Platform, plan: Plan, ending: Ending): number | undefined {
  if (ending.kind !== 'finished' || ending.usage === undefined) return undefined
  const cost = (work: { promptTokens: number; outputTokens: number }): number =>
    weightedTokens({ ...work, cachedTokens: 0 }, policies.outputWeight)
  return cost(ending.usage) / cost(plan.estimate)
}

const ratio = (measured: number | undefined, expected: number | undefined): number | undefined =>
  measured === undefined || expected === undefined || expected <= 0 ? undefined : measured / expected
