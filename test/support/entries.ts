import type {
  AdmittedEntry,
  Arrived,
  AttemptEnded,
  Entry,
  FaultSeen,
  Granted,
  Settled,
} from '../../src/domain/entry.ts'
import { Gaps } from '../../src/domain/gaps.ts'

/** Journal entries for tests: an ordinary request's story, with whatever the test cares about put in its place. */

export function settled(overrides: Partial<Settled> = {}): Settled {
  const gaps = new Gaps()
  gaps.observe(25_000, 9)
  return {
    kind: 'settled',
    at: 2_000_000,
    ticketId: 'req_1',
    tenantId: 'acme',
    keyId: 'key_1',
    model: 'llama-8b',
    servedModel: 'llama-8b',
    releaseId: 'llama-8b@1',
    poolId: 'pool-1',
    replicaId: 'replica-1',
    band: 'interactive',
    bid: 0,
    rung: 'full',
    outcome: 'completed',
    because: 'finished',
    refusal: undefined,
    usage: { promptTokens: 100, cachedTokens: 40, outputTokens: 10 },
    cost: 100,
    attempts: 1,
    arrivedAt: 1_000_000,
    admittedAt: 1_000_000,
    grantedAt: 1_250_000,
    firstTokenAt: 1_500_000,
    lastTokenAt: 1_725_000,
    deadlineAt: 31_000_000,
    isKept: true,
    gaps,
    ...overrides,
  }
}

export function refused(overrides: Partial<Settled> = {}): Settled {
  return settled({
    servedModel: 'llama-8b',
    releaseId: undefined,
    poolId: undefined,
    replicaId: undefined,
    outcome: 'rejected',
    because: 'lane is full',
    refusal: { code: 'lane-full', because: 'lane is full', blame: 'tenant', retryAfterUs: 1_000_000 },
    usage: { promptTokens: 0, cachedTokens: 0, outputTokens: 0 },
    cost: 0,
    attempts: 0,
    admittedAt: undefined,
    grantedAt: undefined,
    firstTokenAt: undefined,
    lastTokenAt: undefined,
    gaps: undefined,
    ...overrides,
  })
}

export function arrived(overrides: Partial<Arrived> = {}): Arrived {
  return {
    kind: 'arrived',
    at: 1_000_000,
    ticketId: 'req_1',
    tenantId: 'acme',
    keyId: 'key_1',
    model: 'llama-8b',
    band: 'interactive',
    promptTokens: 100,
    isStreamed: true,
    ...overrides,
  }
}

export function fault(overrides: Partial<FaultSeen> = {}): FaultSeen {
  return { kind: 'fault-seen', at: 3_000_000, where: 'gateway', because: 'it broke', ticketId: undefined, ...overrides }
}

/** The five entries of a request that went well. */
export function story(last: Settled = settled()): Entry[] {
  const { ticketId, tenantId, keyId, model, band } = last
  const admitted: AdmittedEntry = {
    kind: 'admitted',
    at: last.arrivedAt,
    ticketId,
    tenantId,
    releaseId: 'llama-8b@1',
    poolId: 'pool-1',
    rung: last.rung,
    predictedWaitUs: 250_000,
    predictedTtftUs: 400_000,
    predictedFinishUs: 2_000_000,
    reservedTokens: 150,
    because: 'fits',
  }
  const granted: Granted = {
    kind: 'granted',
    at: last.grantedAt ?? last.at,
    ticketId,
    releaseId: 'llama-8b@1',
    replicaId: 'replica-1',
    attempt: 1,
    waitedUs: 250_000,
    because: 'least predicted load',
  }
  const ended: AttemptEnded = {
    kind: 'attempt-ended',
    at: last.at,
    ticketId,
    releaseId: 'llama-8b@1',
    replicaId: 'replica-1',
    attempt: 1,
    ending: 'finished',
    because: 'finished',
    unpaidCost: 0,
  }
  return [arrived({ at: last.arrivedAt, ticketId, tenantId, keyId, model, band }), admitted, granted, ended, last]
}
