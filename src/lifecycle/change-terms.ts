import { secondsToUs } from '../base/clock.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { WeightChange } from '../domain/share-path.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { ChangeReason } from './fleet/change-fleet.ts'
import type { Platform } from './platform.ts'

/**
 * How do tenants get new terms while requests run? `control` compares the settings and calls these functions, which tell
 * the policies:
 *
 *   weights: from the next turn on, also for requests that wait
 *   promises: the tightest one is another, so every limit may have more or less room, which is given at once
 *   mode, pauses: from the next verdict on
 *
 * All other terms of a tenant (bands, allowance, contract, patience) come with its requests: a ticket keeps the terms
 * that it arrived with.
 *
 * Laws: L2 (what is held stays held, though a tighter promise would not grant it now), L6 (room that a looser promise
 * makes is given at once).
 * Example: the tenant with 25 ms a token leaves, 40 ms is the tightest now: a replica that was full at 60 sequences
 * takes the next one that waits in the same instant.
 */
export function changeWeight({ policies }: Platform, change: WeightChange): void {
  policies.dispatcher.reweigh(change)
}

/** Replaces the tenants whose promises count. */
export function changePromise(platform: Platform, tenants: ReadonlyArray<Pick<Tenant, 'slo'>>): void {
  if (!platform.policies.tightestPromise.replace(tenants)) return
  for (const pool of platform.pools)
    for (const replica of pool.replicas) platform.turnstile.replicaChanged(replica.id, UNCHANGED)
}

/** A change of nothing, after which the dispatcher asks the replica's limit again. */
const UNCHANGED = {}

export function changeMode(
  { policies, world }: Platform,
  mode: Platform['policies']['mode'],
  { by, because }: ChangeReason,
): void {
  if (policies.mode === mode) return
  policies.mode = mode
  world.journal.record({ kind: 'mode-changed', at: world.clock.now(), mode, by, because })
}

/** Pauses a tenant, or lets it go on. What was admitted before runs to its end. */
export function changePause(
  { policies, world }: Platform,
  tenantId: string,
  isPaused: boolean,
  { by, because }: ChangeReason,
): void {
  const isNews = policies.paused.has(tenantId) !== isPaused
  if (isPaused) policies.paused.set(tenantId, because)
  else policies.paused.delete(tenantId)
  if (isNews) world.journal.record({ kind: 'tenant-paused', at: world.clock.now(), tenantId, isPaused, by, because })
}

/** The refusal of a tenant that is paused. */
export function refusePaused({ policies }: Platform, { id }: Pick<Tenant, 'id'>): Refusal | undefined {
  const why = policies.paused.get(id)
  if (why === undefined) return undefined
  const because = `The operator of this server has paused the tenant ${id}: ${why}`
  return { code: 'tenant-paused', because, blame: 'tenant', retryAfterUs: PAUSED_RETRY_US }
}

/** Nobody knows when a pause ends. Jobs look again after this; clients' libraries do not come back over 59 s. */
const PAUSED_RETRY_US = secondsToUs(60)
