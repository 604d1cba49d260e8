import type { Band } from '../../domain/tenant.ts'
import { type Member, ShareLevel } from './share-level.ts'

/**
 * How much work goes before this ticket under weighted round robin?
 *
 * Not the own lane alone. While tenant i's backlog B_i and the newcomer's cost c are served, every other active tenant
 * j is served in proportion to its weight, until its own backlog is gone: Σ_j min(B_j, (w_j ÷ w_i)·(B_i + c)). With
 * 200 small tenants the own-lane rule lets 56 % of the admitted be late, this sum 5.6 % (DESIGN.md §4).
 *
 * Shares are a tree, org → tenant → key, and so is the sum. Among the keys of the tenant it gives the work that the
 * tenant must be served until the newcomer's turn; that number takes the place of B_i + c among the tenants of the
 * org, and what comes out of there among the orgs. Inside a tenant's share `interactive` goes first: a standard ticket
 * has all of its tenant's interactive backlog before it, an interactive one none of the standard.
 *
 * It knows no time (`predicted-wait.ts` divides by the drain rate) and does not guess who will arrive: tickets that
 * come later and go first are in the calibrated margin. `offline` has a backlog of its own.
 *
 * Example (one org, one key each): weights 1, backlogs A 100, B 500, C 2,000; a request of cost 300 from A: x = 400;
 * A's own 100 + min(500, 400) + min(2,000, 400) = 900 goes before it, not 100 and not 2,600.
 */
export interface ShareNode {
  readonly id: string
  readonly weight: number
}

/** Where a ticket stands in the tree. It keeps the share it joined with until it leaves, whatever is reconfigured. */
export interface Share {
  readonly org: ShareNode
  readonly tenant: ShareNode
  readonly key: ShareNode
}

interface TenantMember extends Member {
  readonly interactive: ShareLevel<Member>
  readonly others: ShareLevel<Member>
}

interface OrgMember extends Member {
  readonly tenants: ShareLevel<TenantMember>
}

const makeKey = (slot: number): Member => ({ slot, weight: 1, backlog: 0 })

const makeTenant = (slot: number): TenantMember => ({
  slot,
  weight: 1,
  backlog: 0,
  interactive: new ShareLevel(makeKey),
  others: new ShareLevel(makeKey),
})

const makeOrg = (slot: number): OrgMember => ({ slot, weight: 1, backlog: 0, tenants: new ShareLevel(makeTenant) })

export class Backlog {
  readonly #orgs = new ShareLevel(makeOrg)

  /** Weighted tokens that wait, over all. */
  get total(): number {
    return this.#orgs.backlog
  }

  get orgCount(): number {
    return this.#orgs.memberCount
  }

  /** What waits for this tenant, over its keys and bands. */
  ofTenant(share: Share): number {
    return this.#orgs.get(share.org.id)?.tenants.get(share.tenant.id)?.backlog ?? 0
  }

  /** A ticket joined its lane (cost above zero) or left it (exactly what joined, below zero). */
  change(share: Share, band: Band, cost: number): void {
    const tenants = this.#orgs.getOrMake(share.org.id).tenants
    const tenant = tenants.getOrMake(share.tenant.id)
    const keys = band === 'interactive' ? tenant.interactive : tenant.others
    keys.change(share.key.id, { cost, weight: share.key.weight })
    tenants.change(share.tenant.id, { cost, weight: share.tenant.weight })
    this.#orgs.change(share.org.id, { cost, weight: share.org.weight })
  }

  /** The work that goes before a newcomer of this cost, itself not counted. */
  aheadOf(share: Share, band: Band, cost: number): number {
    return this.#ahead(share, cost, this.#aheadInTenant(share, band, cost))
  }

  /** The same, had its tenant nothing waiting: tells whether a wait is the tenant's own doing. */
  aheadWithoutOwn(share: Share, cost: number): number {
    return this.#ahead(share, cost, cost)
  }

  #ahead(share: Share, cost: number, inTenant: number): number {
    const org = this.#orgs.get(share.org.id)
    const inOrg = inTenant + (org?.tenants.servedToOthers(share.tenant.id, inTenant / share.tenant.weight) ?? 0)
    return inOrg + this.#orgs.servedToOthers(share.org.id, inOrg / share.org.weight) - cost
  }

  #aheadInTenant(share: Share, band: Band, cost: number): number {
    const tenant = this.#orgs.get(share.org.id)?.tenants.get(share.tenant.id)
    if (tenant === undefined) return cost
    const keys = band === 'interactive' ? tenant.interactive : tenant.others
    const own = (keys.get(share.key.id)?.backlog ?? 0) + cost
    const inBand = own + keys.servedToOthers(share.key.id, own / share.key.weight)
    return band === 'interactive' ? inBand : inBand + tenant.interactive.backlog
  }
}
