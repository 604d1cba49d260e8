import { NO_USAGE, type Usage } from '../../domain/delta.ts'
import type { Settled } from '../../domain/entry.ts'
import { BUDGET_EMPTY } from '../../domain/outcome.ts'
import type { Plan } from '../../domain/plan.ts'
import { isFedByClient, isGenerative, promptTokensOf } from '../../domain/request.ts'
import type { Measured } from '../../policy/dispatch/offer.ts'
import { weightedTokens } from '../../policy/planning/cost.ts'
import { habitOf } from '../../policy/planning/output-length.ts'
import { passageTokens } from '../../policy/planning/passage-room.ts'
import { readTokensOf } from '../../policy/planning/read-tokens.ts'
import { keepAnswer } from '../answers/keep-answer.ts'
import { noteAttainment } from '../autoscale/note-attainment.ts'
import type { Platform } from '../platform.ts'
import type { Ending } from '../ports.ts'
import { type AttemptSeen, judgeAttempt } from '../rollout/judge-attempt.ts'
import { settledSpend } from '../spending.ts'
import { type Admitted, type Attempt, isCalledOffByPlatform, type Ticket } from '../ticket.ts'

/**
 * What did it cost, and what does that teach? Every meter hears of an ending here and nowhere else: budgets are trued
 * up, predictions are held against what happened. An error in learning never changes how a ticket ends: the error is
 * counted in the journal, and the story goes on.
 */

/**
 * What an attempt turned out to be, for the dispatcher's true-up; notes on the attempt what it used.
 *
 * Who pays? The tenant, for an answer and for an attempt that its client or its own deadline called off: from the first
 * token on for the prompt and the output, before it for what the engine can have read. The platform, for an attempt
 * that was lost or refused or that the platform called off: the tenant's charge is given back, and the journal has it.
 */
export function measure(platform: Platform, attempt: Attempt, ending: Ending): Measured {
  const { ticket } = attempt
  const used = usedBy(platform, attempt, ending)
  const cost = ending.kind === 'refused' ? 0 : weightedTokens(used, platform.policies.outputWeight)
  const isPaid = !attempt.isCalledOff && isPaidByTenant(ticket, ending)
  attempt.used = used
  attempt.isPaid = isPaid
  attempt.unpaidCost = isPaid ? 0 : cost
  const firstTokenUs = firstTokenUsOf(attempt)
  const pace = { meanTokenUs: meanTokenUsOf(ticket), tokenCount: ticket.gapCount }
  return { cost: isPaid ? cost : 0, ending: ending.kind, firstTokenUs, outputTokens: used.outputTokens, ...pace }
}

/** A client that has gone pays, whatever became of its replica meanwhile. */
function isPaidByTenant({ cancellation }: Ticket, ending: Ending): boolean {
  if (ending.kind === 'finished') return true
  const { because } = cancellation
  return because === undefined ? ending.kind === 'cancelled' : !isCalledOffByPlatform(because)
}

function usedBy({ policies, world }: Platform, attempt: Attempt, ending: Ending): Usage {
  const { plan, lease, ticket, grantedAt, readAt } = attempt
  if (ending.kind === 'finished' && ending.usage !== undefined) return ending.usage
  if (ending.kind === 'refused') return NO_USAGE
  const { promptTokens, cachedTokens } = plan.estimate
  const { outputTokens, firstTokenAt, request } = ticket
  // From its turn on a transit owes its price: nobody knows how much of it an engine has done.
  if (request.kind === 'transit') return { promptTokens, cachedTokens: 0, outputTokens: 0 }
  if (ending.kind === 'finished' || (readAt ?? firstTokenAt) !== undefined)
    return { promptTokens, cachedTokens, outputTokens }
  const pool = policies.poolsById.get(lease.replica.poolId)
  // A pool that was removed meanwhile has no known speed.
  if (pool === undefined) return NO_USAGE
  const { alone, steps } = pool.engineOf(lease.replica)
  const speed = steps === undefined ? pool.speed : alone
  const readTokens = readTokensOf(speed, plan.estimate, world.clock.now() - grantedAt)
  return { promptTokens: readTokens, cachedTokens: 0, outputTokens }
}

/** From the grant to the first token; undefined when none came, or when the engine waited for its client meanwhile. */
function firstTokenUsOf({ ticket, grantedAt, readAt }: Attempt): number | undefined {
  const firstAt = readAt ?? ticket.firstTokenAt
  return firstAt === undefined || isFedByClient(ticket.request) ? undefined : firstAt - grantedAt
}

/** Mean time between the tokens of one choice; undefined when all came at once. */
function meanTokenUsOf({ firstTokenAt, lastTokenAt, gapCount }: Ticket): number | undefined {
  if (firstTokenAt === undefined || lastTokenAt === undefined || gapCount <= 0) return undefined
  return lastTokenAt > firstTokenAt ? (lastTokenAt - firstTokenAt) / gapCount : undefined
}

/** An attempt is over: how fast was the engine, and how good is the release? */
export function learnFromAttempt(platform: Platform, attempt: Attempt, seen: Omit<AttemptSeen, 'meanTokenUs'>): void {
  const { ticket } = attempt
  guarded(platform, ticket, () => learnSpeed(platform, attempt, seen.ending))
  guarded(platform, ticket, () => judgeAttempt(platform, attempt, { ...seen, meanTokenUs: meanTokenUsOf(ticket) }))
}

function guarded(platform: Platform, ticket: Ticket, learn: () => void): void {
  try {
    learn()
  } catch (error) {
    const { clock, journal } = platform.world
    journal.record({ kind: 'fault-seen', at: clock.now(), where: 'learn', because: String(error), ticketId: ticket.id })
  }
}

function learnSpeed(platform: Platform, attempt: Attempt, ending: Ending): void {
  tellReplica(platform, attempt, ending)
  const { ticket, plan, lease } = attempt
  const pool = platform.policies.poolsById.get(lease.replica.poolId)
  const firstTokenUs = firstTokenUsOf(attempt)
  if (pool === undefined || firstTokenUs === undefined) return
  const now = platform.world.clock.now()
  const usage = ending.kind === 'finished' ? ending.usage : undefined
  const promptTokens = usage?.promptTokens ?? plan.estimate.promptTokens
  const cachedTokens = usage?.cachedTokens ?? 0
  // Another region's times include its own queue.
  if (pool.outlook === undefined && attempt.isTelling) {
    pool.speed.observePrefill(now, {
      uncachedTokens: promptTokens - cachedTokens,
      cachedTokens,
      tookUs: firstTokenUs,
      expectedUs: attempt.firstTokenExpectedUs,
    })
  }
  const gapUs = meanTokenUsOf(ticket)
  if (gapUs === undefined) return
  const outputPerChoice = Math.round(ticket.outputTokens / ticket.request.choiceCount)
  pool.speed.observeTokens(now, { contextTokens: promptTokens + Math.round(outputPerChoice / 2), gapUs })
}

/** Routing learns how slow the replica is, and whether it fails; faults of the request or its client do not count. */
function tellReplica(platform: Platform, attempt: Attempt, ending: Ending): void {
  const { placer, health, poolsById, rollouts } = platform.policies
  const { ticket, lease, grantedAt } = attempt
  const { orgId } = ticket.request.tenant
  const replicaId = lease.replica.id
  const now = platform.world.clock.now()
  const isFailed = ending.kind === 'lost' || (ending.kind === 'refused' && ending.refusal.blame !== 'request')
  placer.observe(now, { ticketId: ticket.id, replicaId, firstTokenUs: firstTokenUsOf(attempt), isFailed })
  const retryAfterUs = ending.kind === 'refused' ? ending.refusal.retryAfterUs : undefined
  if (isFailed) poolsById.get(lease.replica.poolId)?.outlook?.of(replicaId).failed(now, retryAfterUs)
  const saysNothing = ending.kind === 'cancelled' || (ending.kind === 'refused' && !isFailed)
  if (saysNothing) return
  const isLost = ending.kind === 'lost'
  // Nothing listens there: that is known now, and not with the next probe.
  if (isLost && ending.isUnreachable === true) platform.applyHealth(health.report(now, replicaId, false))
  // A canary's failures are evidence for the judge of its rollout: taken away as the only replica, it would gather none.
  const isJudged = rollouts.get(lease.replica.model)?.judged === lease.replica.releaseId
  platform.applyHealth(health.observe(now, replicaId, { grantedAt, isFailed, isLost: isLost && !isJudged, orgId }))
  if (isLost && !isJudged) platform.liveness.prove(lease.replica)
}

/** A ticket is over: its budgets are trued up, and its length and its prompt's size are remembered. */
export function learnFromTicket(platform: Platform, ticket: Ticket, settled: Settled): void {
  const { admitted } = ticket
  guarded(platform, ticket, () => trueUp(platform, ticket, settled))
  guarded(platform, ticket, () => noteAttainment(platform, ticket, settled))
  if (admitted === undefined) return
  guarded(platform, ticket, () => calibrate(platform, admitted, settled))
  guarded(platform, ticket, () => learnLengths(platform, admitted, settled))
  guarded(platform, ticket, () => keepAnswer(platform, admitted, settled))
}

/** Tokens of a ticket that failed are the platform's, as in `measure`; the request itself counts. */
function trueUp({ policies }: Platform, ticket: Ticket, { usage, outcome, at: now }: Settled): void {
  // An answer from the cache is a request that was served, though nothing ran.
  const reservation = ticket.cached?.reservation ?? ticket.admitted?.reservation ?? ticket.counted
  if (reservation === undefined) return
  const isServed = ticket.attempts > 0 || ticket.cached !== undefined
  // A blocked request counts, without tokens.
  if (!isServed && outcome !== 'blocked') policies.budgets.refund(now, reservation)
  else {
    const tokens = outcome === 'failed' ? 0 : usage.promptTokens + usage.outputTokens
    policies.budgets.settle(now, reservation, tokens, settledSpend(ticket, outcome, usage))
  }
}

function learnLengths({ policies }: Platform, { plan, ticket }: Admitted, settled: Settled): void {
  const { request } = ticket
  const { usage, at: now } = settled
  if (ticket.firstTokenAt === undefined) return
  const tokens = Math.round(usage.outputTokens / request.choiceCount)
  if (usage.outputTokens > 0) {
    policies.outputs.observe(habitOf(request), {
      tokens,
      isCut: isCut(settled, tokens, plan.sentTokensMax, request.outputTokensMax),
    })
  }
  const hasCounts = usage.outputTokens > 0 || !isGenerative(request.kind)
  // Prompts that were counted say nothing about estimates.
  if (settled.outcome === 'completed' && hasCounts && request.isEstimated === true) {
    const isWhole = plan.keptSegments.length === request.segments.length
    const ownTokens = isWhole ? promptTokensOf(request) : keptTokens(plan) + (request.fixedTokens ?? 0)
    const estimatedTokens = ownTokens + passageTokens(undefined, plan.passages)
    const reported = { tenantId: request.tenant.id, estimatedTokens, reportedTokens: usage.promptTokens }
    policies.ratios.get(plan.model)?.observe(now, reported)
  }
}

/**
 * What was predicted at admission against what came. Tickets that were cancelled or failed teach nothing here, nor do
 * transits, whose times nobody predicts.
 */
function calibrate(platform: Platform, admitted: Admitted, settled: Settled): void {
  const { calibration, lengths } = platform.policies
  const { predicted, patience, plan, poolId, ticket } = admitted
  const { request, firstTokenAt } = ticket
  if (predicted === undefined || request.kind === 'transit') return
  const { promptTokens } = plan.estimate
  lengths.count('admitted', promptTokens)
  const isShed = settled.outcome === 'expired' || settled.outcome === 'evicted'
  if (settled.outcome !== 'completed' && !isShed) return
  const actual = {
    ttftUs: firstTokenAt === undefined ? Number.POSITIVE_INFINITY : firstTokenAt - admitted.at,
    finishUs: isShed ? Number.POSITIVE_INFINITY : settled.at - admitted.at,
  }
  if (actual.ttftUs > patience.ttftUs || actual.finishUs > patience.finishUs) lengths.count('late', promptTokens)
  calibration.ended(settled.at, { poolId, sloName: request.slo.name, promptTokens, predicted, patience, actual })
}

/** Whether the answer would have gone on: it did not complete, or a cap of ours, not the client's own, ended it. */
function isCut(settled: Settled, tokens: number, sentMax: number | undefined, askedMax: number | undefined): boolean {
  if (settled.outcome !== 'completed' || settled.because === BUDGET_EMPTY) return true
  return sentMax !== undefined && tokens >= sentMax && sentMax < (askedMax ?? Number.POSITIVE_INFINITY)
}

function keptTokens(plan: Plan): number {
  let tokens = 0
  for (const segment of plan.segments) tokens += segment.tokens
  return tokens
}

/**
 * The usage when the engine reports none: the prompt as estimated, or what can have been read of it where no token
 * came, and the tokens that went to the client.
 */
export function usageSeen(ticket: Ticket, unreportedTokens = 0): Usage {
  const { request, firstTokenAt, attempt } = ticket
  const outputTokens = ticket.outputTokens + unreportedTokens
  const readTokens = firstTokenAt === undefined && outputTokens === 0 ? attempt?.used?.promptTokens : undefined
  const promptTokens = readTokens ?? promptTokensOf(request)
  return { promptTokens, cachedTokens: 0, outputTokens }
}
