import type { Usage } from '../domain/delta.ts'
import type { Settled } from '../domain/entry.ts'
import type { Lease } from '../domain/fleet.ts'
import { promptTokensOf } from '../domain/request.ts'
import type { Measured } from '../policy/dispatch/offer.ts'
import { weightedTokens } from '../policy/planning/cost.ts'
import { habitOf } from '../policy/planning/output-length.ts'
import { passageTokens } from '../policy/planning/passage-room.ts'
import type { Platform } from './platform.ts'
import type { Ending } from './ports.ts'
import type { Ticket } from './ticket.ts'

/**
 * What did it cost, and what does that teach? Every meter hears of an ending here and nowhere else: budgets are trued
 * up, predictions are held against what happened.
 */

/** What an attempt turned out to be, for the dispatcher's true-up. */
export function measure(platform: Platform, ticket: Ticket, ending: Ending): Measured {
  const { grantedAt, firstTokenAt, plan } = ticket
  const firstTokenUs = firstTokenAt === undefined || grantedAt === undefined ? undefined : firstTokenAt - grantedAt
  // An attempt that served nobody is not charged; one that broke off is charged for what it did.
  const hasServed = ending.kind === 'finished' || firstTokenAt !== undefined
  const usage = ending.kind === 'finished' ? ending.usage : undefined
  const work = usage ?? {
    promptTokens: plan?.estimate.promptTokens ?? 0,
    cachedTokens: 0,
    outputTokens: ticket.outputTokens,
  }
  const cost = hasServed ? weightedTokens(work, platform.policies.outputWeight) : 0
  return { cost, ending: ending.kind, firstTokenUs }
}

/** An attempt is over: how fast was the engine, and how fast does its pool drain? */
export function learnFromAttempt(platform: Platform, ticket: Ticket, lease: Lease, ending: Ending): void {
  const pool = platform.policies.poolsById.get(lease.replica.poolId)
  const { plan, grantedAt, firstTokenAt, lastTokenAt } = ticket
  if (pool === undefined || plan === undefined || grantedAt === undefined) return
  const replicaCount = platform.policies.dispatcher.poolFacts(lease.replica.poolId)?.readyReplicaCount ?? 0
  const now = platform.world.clock.now()
  if (ending.kind === 'finished') pool.wait.completed(now, { cost: plan.estimate.cost, replicaCount })
  if (firstTokenAt === undefined) return
  const usage = ending.kind === 'finished' ? ending.usage : undefined
  const promptTokens = usage?.promptTokens ?? plan.estimate.promptTokens
  const cachedTokens = usage?.cachedTokens ?? 0
  // A whole answer in one piece says nothing about when its first token came.
  if (ticket.request.isStreamed || ticket.gaps !== undefined) {
    pool.speed.observePrefill({
      uncachedTokens: promptTokens - cachedTokens,
      cachedTokens,
      tookUs: firstTokenAt - grantedAt,
    })
  }
  const tokensPerChoice = ticket.outputTokens / ticket.request.choiceCount
  if (lastTokenAt !== undefined && tokensPerChoice > 1 && lastTokenAt > firstTokenAt) {
    const gapUs = (lastTokenAt - firstTokenAt) / (tokensPerChoice - 1)
    pool.speed.observeTokens({ contextTokens: promptTokens + Math.round(tokensPerChoice / 2), gapUs })
  }
}

/** A ticket is over: its budgets are trued up, and its length and its prompt's size are remembered. */
export function learnFromTicket(platform: Platform, ticket: Ticket, settled: Settled): void {
  const { policies } = platform
  const { reservation, request, plan } = ticket
  const { usage, at: now } = settled
  if (reservation !== undefined) {
    ticket.reservation = undefined
    if (ticket.attempts === 0) policies.budgets.refund(now, reservation)
    else policies.budgets.settle(now, reservation, usage.promptTokens + usage.outputTokens)
  }
  calibrate(platform, ticket, settled)
  if (plan === undefined || ticket.firstTokenAt === undefined || usage.outputTokens === 0) return
  const tokens = Math.round(usage.outputTokens / request.choiceCount)
  policies.outputs.observe(habitOf(request), {
    tokens,
    isCut: isCut(settled, tokens, plan.outputTokensMax, request.outputTokensMax),
  })
  if (settled.outcome === 'completed') {
    const ownTokens =
      plan.keptSegments.length === request.segments.length ? promptTokensOf(request) : keptTokens(ticket)
    const estimatedTokens = ownTokens + passageTokens(undefined, plan.passages)
    policies.ratios.get(plan.model)?.observe(now, { estimatedTokens, reportedTokens: usage.promptTokens })
  }
}

/** What was predicted at admission against what came. Whoever left or was failed by us says nothing about it. */
function calibrate(platform: Platform, ticket: Ticket, settled: Settled): void {
  const { calibration, lengths } = platform.policies
  const { predicted, patience, plan, poolId, admittedAt, firstTokenAt, request } = ticket
  if (predicted === undefined || patience === undefined || plan === undefined) return
  if (poolId === undefined || admittedAt === undefined) return
  const { promptTokens } = plan.estimate
  lengths.count('admitted', promptTokens)
  const isShed = settled.outcome === 'expired' || settled.outcome === 'evicted'
  if (settled.outcome !== 'completed' && !isShed) return
  const actual = {
    ttftUs: firstTokenAt === undefined ? Number.POSITIVE_INFINITY : firstTokenAt - admittedAt,
    finishUs: isShed ? Number.POSITIVE_INFINITY : settled.at - admittedAt,
  }
  if (actual.ttftUs > patience.ttftUs || actual.finishUs > patience.finishUs) lengths.count('late', promptTokens)
  calibration.observe(settled.at, { poolId, sloName: request.slo.name, promptTokens, predicted, patience, actual })
}

/** It would have gone on: it did not complete, or a cap of ours, not the client's own, ended it. */
function isCut(settled: Settled, tokens: number, plannedMax: number, askedMax: number | undefined): boolean {
  if (settled.outcome !== 'completed') return true
  return tokens >= plannedMax && plannedMax < (askedMax ?? Number.POSITIVE_INFINITY)
}

function keptTokens(ticket: Ticket): number {
  let tokens = 0
  for (const segment of ticket.plan?.segments ?? []) tokens += segment.tokens
  return tokens
}

/** When the engine did not tell: the prompt as we estimated it, and the tokens that went through our hands. */
export function usageSeen(ticket: Ticket, unreportedTokens = 0): Usage {
  const outputTokens = ticket.outputTokens + unreportedTokens
  return { promptTokens: promptTokensOf(ticket.request), cachedTokens: 0, outputTokens }
}
