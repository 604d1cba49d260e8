import type { Plan } from '../../domain/plan.ts'
import { prefillTokensOf } from '../../policy/limits/ledger.ts'
import { weightedTokens } from '../../policy/planning/cost.ts'
import type { AttemptFact } from '../../policy/rollout/judge.ts'
import { timesUnderLoad } from '../../policy/twin/times-under-load.ts'
import type { Platform } from '../platform.ts'
import type { Ending } from '../ports.ts'
import type { Attempt, Ticket } from '../ticket.ts'
import { judgingOf, recordRolloutChange } from './change-rollout.ts'

/**
 * What does this attempt say about its release? Told to the rollout of its model, attempt by attempt, so that a second
 * try elsewhere hides nothing.
 *
 * Times are told as measured ÷ expected, where *expected* is what an engine as busy as this one was should take: the
 * two releases never carry the same load, and a full engine is no slower release. For engines whose steps are known the
 * step-time model says it (`times-under-load.ts`), for the load that *was* there and not for one that was predicted:
 * the mean of the turn's beginning and end, and the prompts that the replica really read meanwhile, shared among the
 * tokens.
 *
 * The prompts must be measured. Predicted as Σ prompt ÷ predicted answer over what is in flight they come out half as
 * many again, because a predicted length is nearer to the median than to the mean; the error grows with the load, and
 * at 24 sequences against 1 it made an equal release look 8 % slower.
 *
 * For other engines the stable release's learned speed is the expectation, which knows nothing of the load. The load
 * class goes along either way: the judge compares times within a class where that can be.
 *
 * Deliberately not: prompts that another gateway sent are not seen, so both releases look slower by them.
 * Example: 200 tokens at 10.4 ms beside 24 sequences whose steps take 8 ms; the replica read 54,000 tokens of prompts
 * meanwhile, at 9 µs each: 8 + 270 × 0.009 = 10.4 ms expected, a ratio of 1.
 */
export interface Expected {
  readonly ttftUs: number
  /** From one token to the next beside these sequences, while no prompt is read. */
  readonly tokenUs: number
  /** What each prompt token that is read beside it adds to a step; 0 where that is not known. */
  readonly promptTokenUs: number
  /** Prompt tokens that the replica had read by then, and those that it has before it, this attempt's own included. */
  readonly readTokens: number
  readonly unreadTokens: number
  /** Log2 of the sequences in flight, this one included. */
  readonly loadClass: number
  /** Whether the times above include what these sequences cost. */
  readonly isLoadPredicted: boolean
}

/**
 * Asked at the attempt's grant and again at its end; undefined where no release is on trial. What is cached is what this
 * replica is thought to hold (`placement`), and not the plan's guess, which is of the best holder: a new release holds
 * little, and is no slower for it.
 */
export function expect({ policies }: Platform, { ticket, plan, lease, placement }: Attempt): Expected | undefined {
  const { replica } = lease
  const rollout = policies.rollouts.get(replica.model)
  const load = policies.dispatcher.loadOf(replica.id)
  const pool = policies.poolsById.get(replica.poolId)
  if (rollout?.judged === undefined || ticket.request.errand !== undefined) return undefined
  if (load === undefined || pool === undefined) return undefined
  const { promptTokens } = plan.estimate
  const cachedTokens = Math.min(promptTokens, placement?.cachedTokens ?? plan.estimate.cachedTokens)
  const own = { promptTokens, cachedTokens, plannedTokens: prefillTokensOf(plan.estimate) }
  const { readTokens, prefillTokens: unreadTokens } = load
  const loadClass = 32 - Math.clz32(load.sequences)
  const { alone, steps } = pool.engineOf(replica)
  // What was learned of a slow release would expect it to be slow: both releases are held against the stable one then.
  if (steps !== undefined && pool.twins === undefined) {
    const times = timesUnderLoad(alone, steps, load, own)
    return { ...times, readTokens, unreadTokens, loadClass, isLoadPredicted: true }
  }
  const reference = policies.poolsByRelease.get(rollout.stable)?.[0]?.speed ?? pool.speed
  return {
    ttftUs: reference.prefillUs(Math.max(1, promptTokens - cachedTokens), cachedTokens),
    tokenUs: reference.tokenUs(promptTokens),
    promptTokenUs: 0,
    readTokens,
    unreadTokens,
    loadClass,
    isLoadPredicted: false,
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
  const change = rollout.observe(platform.world.clock.now(), replica.releaseId, fact, judgingOf(platform))
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
  return {
    tenantId: request.tenant.id,
    promptTokens: plan.estimate.promptTokens,
    // As it was before anything was seen of the attempt: a class that depends on the outcome could favour a release.
    loadClass: atGrant?.loadClass ?? 0,
    isLoadPredicted: atGrant?.isLoadPredicted ?? false,
    isFailed,
    isRefused: isBlamed || ticket.isRefusedByModel,
    ttftRatio: isFailed ? undefined : ratio(ttftUs, atGrant?.ttftUs),
    interTokenRatio: isFailed ? undefined : ratio(seen.meanTokenUs, expectedTokenUs(ticket, atGrant, atEnd)),
    costRatio: costRatio(platform, plan, ending),
  }
}

/** Mean time between its tokens, with the prompts that the replica read after this attempt's own. */
function expectedTokenUs(
  ticket: Ticket,
  atGrant: Expected | undefined,
  atEnd: Expected | undefined,
): number | undefined {
  if (atGrant === undefined || atEnd === undefined) return undefined
  const gapCount = Math.max(1, ticket.gapCount)
  // Prompts are read in the order in which they came: those before it are done when its first token comes.
  const besideTokens = Math.max(0, atEnd.readTokens - atGrant.readTokens - atGrant.unreadTokens)
  const promptTokenUs = (atGrant.promptTokenUs + atEnd.promptTokenUs) / 2
  return (atGrant.tokenUs + atEnd.tokenUs) / 2 + (besideTokens / gapCount) * promptTokenUs
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
