import type { Entry, Settled } from '../domain/entry.ts'
import type { Subscriber } from './journal.ts'

/**
 * The last tickets that were not answered, so that `spillway refusals` can say who was turned away and why. Each tenant
 * has a list of its own: a tenant that is refused a thousand times a second hides nobody else's refusals.
 *
 * A ticket that its client called off was not refused. Requests that never became a ticket (a wrong key, a body that
 * cannot be read) are counted in metrics alone.
 *
 * Bounds: 20 refusals for each of 256 tenants, about 4 MB; of tenants, the one refused longest ago is forgotten first.
 */
export interface RecentRefusalsOptions {
  readonly perTenantMax?: number
  readonly tenantsMax?: number
}

export class RecentRefusals implements Subscriber {
  readonly name = 'recent-refusals'
  readonly kinds = new Set(['settled'] as const)
  readonly #perTenantMax: number
  readonly #tenantsMax: number
  /** By tenant, the one refused longest ago first; of each, the oldest refusal first. */
  readonly #byTenant = new Map<string, Settled[]>()

  constructor(options: RecentRefusalsOptions = {}) {
    this.#perTenantMax = Math.max(1, options.perTenantMax ?? 20)
    this.#tenantsMax = Math.max(1, options.tenantsMax ?? 256)
  }

  take(entry: Entry): void {
    if (entry.kind !== 'settled' || entry.refusal === undefined) return
    const { tenantId } = entry
    const known = this.#byTenant.get(tenantId) ?? []
    known.push(entry)
    if (known.length > this.#perTenantMax) known.shift()
    // Put in anew, so that the map's order is the order of the last refusals.
    this.#byTenant.delete(tenantId)
    this.#byTenant.set(tenantId, known)
    if (this.#byTenant.size > this.#tenantsMax) this.#byTenant.delete(this.#byTenant.keys().next().value as string)
  }

  /** The newest first; of one tenant where one is named. */
  list({ tenantId, limit }: RefusalsAsk): readonly Settled[] {
    const all = tenantId === undefined ? [...this.#byTenant.values()].flat() : (this.#byTenant.get(tenantId) ?? [])
    return all.toSorted((a, b) => b.at - a.at).slice(0, limit)
  }
}

export interface RefusalsAsk {
  readonly tenantId?: string | undefined
  readonly limit: number
}
