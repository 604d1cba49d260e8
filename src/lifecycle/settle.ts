import { assert, unreachable } from '../base/assert.ts'
import { NO_USAGE, type Usage } from '../domain/delta.ts'
import type { Settled } from '../domain/entry.ts'
import { BUDGET_EMPTY, type Outcome, type Refusal } from '../domain/outcome.ts'
import { FULL_RUNG } from '../domain/plan.ts'
import { servedCost } from '../policy/planning/cost.ts'
import { comeBackAfterUs } from './admit.ts'
import { closeBooks } from './keep-books.ts'
import { learnFromTicket, usageSeen } from './learning/learn.ts'
import type { Platform } from './platform.ts'
import type { Ending } from './ports.ts'
import type { Relay } from './relay.ts'
import { toldUsage } from './spending.ts'
import { type Admitted, isCalledOffByPlatform, type Ticket } from './ticket.ts'
import type { Turn } from './turnstile.ts'

/**
 * The one place where a ticket ends: its budget is trued up, its outcome is told to the client and written to the
 * journal, once (law L1). Everything that the ticket held has gone back by the time `settle` returns.
 */
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
  platform.world.journal.record(settled)
  closeBooks(platform, ticket, settled)
  if (ended.outcome === 'completed') relay.finish(toldUsage(ticket, ended))
  else if (ended.refusal !== undefined) relay.fail(ended.refusal)
  relay.over()
  return settled
}

export function rejected(refusal: Refusal): Ended {
  return { outcome: 'rejected', because: refusal.because, refusal, usage: NO_USAGE }
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
      return calledOff(turn.because, NO_USAGE)
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
  const { because: calledOffBecause } = ticket.cancellation
  if (calledOffBecause !== undefined && ending.kind !== 'finished') return calledOff(calledOffBecause, seen)
  switch (ending.kind) {
    case 'finished':
      return { outcome: 'completed', because: 'finished', refusal: undefined, usage: ending.usage ?? seen }
    case 'cancelled':
      return calledOff('cancelled', seen)
    case 'refused':
      return { outcome: 'failed', because: ending.refusal.because, refusal: ending.refusal, usage: NO_USAGE }
    case 'lost': {
      const because = `The answer broke off: ${ending.because}.`
      const refusal: Refusal = { code: 'replica-lost', because, blame: 'platform', retryAfterUs: 1_000_000 }
      return { outcome: 'failed', because, refusal, usage: seen }
    }
    default:
      return unreachable(ending)
  }
}

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

function calledOff(because: string, usage: Usage): Ended {
  if (because === 'deadline-passed') return cutOff(usage)
  if (because === BUDGET_EMPTY) return { outcome: 'completed', because, refusal: undefined, usage }
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
  return {
    kind: 'settled',
    at: platform.world.clock.now(),
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
  }
}

/** An answer that was known already has a usage, but cost no engine anything. */
function costOf({ policies }: Platform, ticket: Ticket, { usage }: Ended): number {
  return ticket.attempts === 0 ? 0 : servedCost(usage, policies.outputWeight)
}
