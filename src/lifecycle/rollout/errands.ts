import { Cancellation } from '../../base/cancellation.ts'
import type { Settled } from '../../domain/entry.ts'
import type { Errand, Request } from '../../domain/request.ts'
import type { Key, Tenant } from '../../domain/tenant.ts'
import type { Policies } from '../policies.ts'

/**
 * What the platform asks of itself: copies of requests for a release that is tried, items of a holdout set, questions to
 * the guard model (`screening/ask-guard.ts`). Each is a ticket like any other, through the same `serveRequest`, of a
 * tenant of the platform's own. But for the guard's it comes only onto room that is left over, in band `offline`; and
 * when somebody has to wait at its release's pools it is called off at once, so that nobody waits for it. Bounded:
 * whoever starts one bounds how many.
 */
/** A request that names its errand. */
export type ErrandRequest = Request & { readonly errand: Errand }

const PLATFORM_ID = 'spillway'

export const PLATFORM_TENANT: Tenant = {
  id: PLATFORM_ID,
  orgId: PLATFORM_ID,
  weight: 1,
  slo: { name: 'errand', ttftUs: 60_000_000, interTokenUs: 10_000_000, totalUs: 120_000_000 },
  bands: ['offline'],
  allowance: {},
  bidMax: 0,
  contract: 'reject',
  queueUsMax: 1_000_000,
}

const PLATFORM_KEY: Key = { id: PLATFORM_ID, tenantId: PLATFORM_ID, weight: 1, allowance: {} }

/** Who asks, how urgently (not at all), and for which release. */
export function errandTerms(errand: Errand, now: number) {
  return {
    tenant: PLATFORM_TENANT,
    key: PLATFORM_KEY,
    band: 'offline',
    bid: 0,
    slo: PLATFORM_TENANT.slo,
    arrivedAt: now,
    deadlineAt: now + PLATFORM_TENANT.slo.totalUs,
    errand,
  } as const
}

/** Somebody could start at once there, and nobody waits. */
export function hasLeftoverRoom(policies: Policies, releaseId: string): boolean {
  const pools = policies.poolsByRelease.get(releaseId) ?? []
  return pools.some(({ pool }) => {
    const facts = policies.dispatcher.poolFacts(pool.id)
    return facts !== undefined && facts.queuedCount === 0 && facts.openReplicaCount > 0
  })
}

export class Errands {
  readonly #running = new Map<string, { readonly errand: Errand; readonly cancellation: Cancellation }>()

  get count(): number {
    return this.#running.size
  }

  countOf(kind: Errand['kind'], releaseId: string): number {
    let count = 0
    for (const { errand } of this.#running.values()) if (errand.kind === kind && errand.releaseId === releaseId) count++
    return count
  }

  async run(request: ErrandRequest, serve: (cancellation: Cancellation) => Promise<Settled>): Promise<Settled> {
    const cancellation = new Cancellation()
    this.#running.set(request.id, { errand: request.errand, cancellation })
    try {
      return await serve(cancellation)
    } finally {
      this.#running.delete(request.id)
    }
  }

  /** The guard's errands go on: tenants' tickets wait for their answers. */
  callOff(because: string): void {
    for (const { errand, cancellation } of this.#running.values())
      if (errand.kind !== 'guard') cancellation.cancel(because)
  }

  /** Somebody waits at this release's pools. */
  makeRoom(releaseId: string): void {
    for (const { errand, cancellation } of this.#running.values())
      if (errand.releaseId === releaseId && errand.kind !== 'guard') cancellation.cancel('room-wanted')
  }
}
