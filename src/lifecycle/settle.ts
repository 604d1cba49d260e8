import { assert, unreachable } from '../base/assert.ts'
import { NO_USAGE, type Usage } from '../domain/delta.ts'
import type { Settled } from '../domain/entry.ts'
import { BUDGET_EMPTY, CONTENT_FILTER, type Outcome, type Refusal } from '../domain/outcome.ts'
import { FULL_RUNG } from '../domain/plan.ts'
import { isGenerative } from '../domain/request.ts'
import type { ScreenFinding } from '../domain/screening.ts'
import { servedCost } from '../policy/planning/cost.ts'
import { comeBackAfterUs } from './admit.ts'
import { auditSettled, UNAUDITED, unauditedRefusal } from './audit-request.ts'
import { closeBooks } from './keep-books.ts'
import { learnFromTicket, usageSeen } from './learning/learn.ts'
import type { Platform } from './platform.ts'
import type { Ending } from './ports.ts'
import { isPromiseKept } from './promise-kept.ts'
import type { Relay } from './relay.ts'
import { blockRefusal } from './screening/screen-request.ts'
import { toldUsage } from './spending.ts'
import { type Admitted, isCalledOffByPlatform, type Ticket } from './ticket.ts'
import type { Turn } from './turnstile.ts'

/**
 * The one place where a ticket ends: its budget is trued up, its outcome is told to the client and written to the
 * journal, once (law L1). Everything that the ticket held has gone back by the time `settle` returns.
 */
/** Microseconds: a few questions to the engine from now (`fleet/liveness.ts`). */
const STALLED_RETRY_US = 5_000_000

export interface Ended {
  readonly outcome: Outcome
  readonly because: string
  /** What the client is told; undefined for a client that got its answer or has gone. */
  readonly refusal: Refusal | undefined
  readonly usage: Usage
}

export function settle(platform: Platform, ticket: Ticket, relay: Relay, ended: Ended): Settled {
  assert(ticket.phase !== 'settled', 'a ticket ends once')
  assert(ticket.attempt?.isOver !== false, 'a ticket that ends holds no lease')
  ticket.phase = 'settled'
  const settled = entryOf(platform, ticket, ended)
  learnFromTicket(platform, ticket, settled)
  platform.costs.settled(ticket)
  platform.depart(ticket)
  const screened = relay.screened(settled.at)
  if (screened !== undefined) platform.world.journal.record(screened)
  platform.world.journal.record(settled)
  closeBooks(platform, ticket, settled)
  auditSettled(platform, ticket, settled, relay.findings)
  if (ended.outcome === 'completed' || isToldInAnswer(ticket)) relay.finish(toldUsage(ticket, ended))
  else if (ended.refusal !== undefined) relay.fail(ended.refusal)
  relay.over()
  platform.world.audit?.forget(ticket.id)
  return settled
}

export function rejected(refusal: Refusal): Ended {
  return { outcome: 'rejected', because: refusal.because, refusal, usage: NO_USAGE }
}

/** A screen does not let the request through. `usage`: the prompt that was read meanwhile, where judging overlaps it. */
function blocked(ticket: Ticket, usage: Usage): Ended {
  const refusal = blockRefusal(ticket)
  return { outcome: 'blocked', because: refusal.because, refusal, usage }
}

/** Blocked before admission: the request counts against its budgets, where they have room for one, without tokens. */
export function blockedUnread({ policies, world }: Platform, ticket: Ticket): Ended {
  const now = world.clock.now()
  const { budgets, standings } = policies
  const scopes = standings.scopesOf(ticket.request)
  if (budgets.refusalFor(now, scopes, 0) === undefined) ticket.counted = budgets.reserve(now, scopes, 0)
  return blocked(ticket, NO_USAGE)
}

export function notGranted(platform: Platform, admitted: Admitted, turn: Exclude<Turn, { kind: 'granted' }>): Ended {
  const { because } = turn
  switch (turn.kind) {
    case 'expired':
    case 'evicted': {
      const code = turn.kind === 'expired' ? 'waited-too-long' : 'evicted'
      const refusal: Refusal = { code, because, blame: 'platform', retryAfterUs: comeBackAfterUs(platform, admitted) }
      return { outcome: turn.kind, because, refusal, usage: NO_USAGE }
    }
    case 'cancelled':
      return calledOff(admitted.ticket, turn.because, NO_USAGE)
    default:
      return unreachable(turn)
  }
}

/**
 * The last attempt's ending becomes the ticket's: there is no further try. A client that has gone is told nothing, and
 * a replica that failed after the client had gone does not make the ticket a failed one.
 */
export function endedBy(ticket: Ticket, ending: Ending): Ended {
  const seen = usageSoFar(ticket, ending.kind === 'cancelled' ? ending.unreportedTokens : 0)
  if (ticket.blockedBy !== undefined)
    return blockedAnswer(ticket.blockedBy, ending.kind === 'finished' ? (ending.usage ?? seen) : seen)
  const { because: calledOffBecause } = ticket.cancellation
  if (calledOffBecause === CONTENT_FILTER) return blocked(ticket, seen)
  const isUnaudited = calledOffBecause === UNAUDITED
  if (calledOffBecause !== undefined && (isUnaudited || ending.kind !== 'finished'))
    return calledOff(ticket, calledOffBecause, seen)
  switch (ending.kind) {
    case 'finished':
      return { outcome: 'completed', because: 'finished', refusal: undefined, usage: ending.usage ?? seen }
    case 'cancelled':
      return ticket.attempt?.isCalledOff === true ? withoutPlace(seen) : calledOff(ticket, 'cancelled', seen)
    case 'refused':
      return { outcome: 'failed', because: ending.refusal.because, refusal: ending.refusal, usage: NO_USAGE }
    case 'lost': {
      if (ending.isStalled === true) return gaveUp(ending.because, seen)
      const because = `The answer broke off: ${ending.because}.`
      const refusal: Refusal = { code: 'replica-lost', because, blame: 'platform', retryAfterUs: 1_000_000 }
      return { outcome: 'failed', because, refusal, usage: seen }
    }
    default:
      return unreachable(ending)
  }
}

/** The engine is there and makes no progress: it is known to be of no use, so its clients are told to come back. */
function gaveUp(reason: string, usage: Usage): Ended {
  const because = `The answer broke off: ${reason}.`
  const refusal: Refusal = { code: 'engine-stalled', because, blame: 'platform', retryAfterUs: STALLED_RETRY_US }
  return { outcome: 'failed', because, refusal, usage }
}

/** An offline ticket gave way to an online one, and its pool is no longer there for it: its client may come back. */
function withoutPlace(usage: Usage): Ended {
  const because = 'The request gave way to an online one, and found no place to wait for its next turn.'
  const refusal: Refusal = { code: 'replica-lost', because, blame: 'platform', retryAfterUs: 1_000_000 }
  return { outcome: 'failed', because, refusal, usage }
}

/** A screen ended the answer, which its tenant pays as far as the engine made it. */
export function blockedAnswer({ screen, category }: ScreenFinding, usage: Usage): Ended {
  const because = `The answer was blocked by ${screen}: ${category}.`
  const detail = { screen, category }
  const refusal: Refusal = { code: 'content-filter', because, blame: 'request', retryAfterUs: undefined, detail }
  return { outcome: 'blocked', because, refusal, usage }
}

/**
 * An answer that its screen ended is whole to its client: its finish reason says why it ends. One that has no place for a
 * finish reason (tensors, an answer that passes through) is refused instead.
 */
const isToldInAnswer = ({ blockedBy, request }: Ticket): boolean =>
  blockedBy !== undefined && isGenerative(request.kind)

/** An unexpected error fails the ticket and is counted in the journal; the process goes on. */
export function failed(platform: Platform, ticket: Ticket, error: unknown): Ended {
  const because = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  platform.release(ticket)
  platform.world.journal.record({
    kind: 'fault-seen',
    at: platform.world.clock.now(),
    where: 'serve-request',
    because,
    ticketId: ticket.id,
  })
  const refusal: Refusal = {
    code: 'internal-error',
    because: 'Something broke while answering.',
    blame: 'platform',
    retryAfterUs: 1_000_000,
  }
  return { outcome: 'failed', because: 'internal error', refusal, usage: usageSoFar(ticket) }
}

function calledOff(ticket: Ticket, because: string, usage: Usage): Ended {
  if (because === CONTENT_FILTER) return blocked(ticket, usage)
  if (because === 'deadline-passed') return cutOff(usage)
  if (because === BUDGET_EMPTY) return { outcome: 'completed', because, refusal: undefined, usage }
  if (because === UNAUDITED) return { outcome: 'failed', because, refusal: unauditedRefusal(), usage }
  if (!isCalledOffByPlatform(because)) return { outcome: 'cancelled', because, refusal: undefined, usage }
  const refusal: Refusal = {
    code: 'shutting-down',
    because: 'The server is shutting down.',
    blame: 'platform',
    retryAfterUs: 1_000_000,
  }
  return { outcome: 'failed', because, refusal, usage }
}

/** The answer was admitted to be in time and was not: the client is told, and calibration counts it as late. */
function cutOff(usage: Usage): Ended {
  const because = 'The answer was still running at its deadline.'
  const refusal: Refusal = { code: 'deadline-passed', because, blame: 'platform', retryAfterUs: undefined }
  return { outcome: 'expired', because, refusal, usage }
}

function usageSoFar(ticket: Ticket, unreportedTokens = 0): Usage {
  return ticket.attempts === 0 ? NO_USAGE : usageSeen(ticket, unreportedTokens)
}

/** The refusal without the engine's own words: those go to the client only. */
function journalled(refusal: Refusal | undefined): Refusal | undefined {
  if (refusal?.told === undefined && refusal?.kept === undefined) return refusal
  const { told: _told, kept: _kept, ...rest } = refusal
  return rest
}

/** The usage in numbers. The engine's own words for it are a part of the answer, and go to the client only. */
function countedOnly(usage: Usage): Usage {
  if (usage.told === undefined) return usage
  const { promptTokens, cachedTokens, outputTokens } = usage
  return { promptTokens, cachedTokens, outputTokens }
}

function entryOf(platform: Platform, ticket: Ticket, ended: Ended): Settled {
  const { request, admitted, attempt } = ticket
  const now = platform.world.clock.now()
  return {
    kind: 'settled',
    at: now,
    ticketId: ticket.id,
    tenantId: request.tenant.id,
    keyId: request.key.id,
    model: request.model,
    servedModel: admitted?.plan.model ?? request.model,
    releaseId: admitted?.plan.releaseId ?? ticket.release?.release.id,
    poolId: admitted?.poolId,
    replicaId: attempt?.lease.replica.id,
    band: request.band,
    bid: request.bid,
    rung: admitted?.plan.rung.name ?? FULL_RUNG.name,
    outcome: ended.outcome,
    because: ended.because,
    refusal: journalled(ended.refusal),
    usage: countedOnly(ended.usage),
    cost: costOf(platform, ticket, ended),
    attempts: ticket.attempts,
    arrivedAt: request.arrivedAt,
    admittedAt: admitted?.at,
    grantedAt: attempt?.grantedAt,
    firstTokenAt: ticket.firstTokenAt,
    lastTokenAt: ticket.lastTokenAt,
    deadlineAt: request.deadlineAt,
    gaps: ticket.gaps,
    isKept: isPromiseKept(ticket, ended.outcome, now),
    ...(ticket.counted !== undefined && { isCounted: true }),
    ...kvBytesOf(platform, ticket, ended),
  }
}

/** Keys and values of prompt and answer, whole: where a prefix is shared with others, each is told the whole. */
function kvBytesOf({ policies }: Platform, ticket: Ticket, { usage }: Ended): Pick<Settled, 'kvBytes'> {
  const tokens = usage.promptTokens + usage.outputTokens
  if (ticket.attempts === 0 || tokens === 0 || ticket.admitted === undefined) return {}
  const bytesPerToken = policies.poolsById.get(ticket.admitted.poolId)?.kvBytesPerToken
  return bytesPerToken === undefined ? {} : { kvBytes: tokens * bytesPerToken }
}

/** An answer that was known already has a usage, but cost no engine anything. */
function costOf({ policies }: Platform, ticket: Ticket, { usage }: Ended): number {
  return ticket.attempts === 0 ? 0 : servedCost(usage, policies.outputWeight)
}
