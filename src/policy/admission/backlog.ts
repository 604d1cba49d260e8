import { assert } from '../../base/assert.ts'
import type { Instant } from '../../base/clock.ts'
import type { ShareNode, SharePath, WeightChange } from '../../domain/share-path.ts'
import type { Band } from '../../domain/tenant.ts'
import { type Member, NO_OTHERS, type Others, ShareLevel } from './share-level.ts'

/**
 * How long until this ticket's turn, under weighted round robin?
 *
 * Not the own lane alone. While tenant i's backlog B_i and the newcomer's cost c are served, every other active tenant
 * j is served in proportion to its weight, until its own backlog is gone: Σ_j min(B_j, (w_j ÷ w_i)·(B_i + c)). With
 * 200 small tenants the own-lane rule lets 56 % of the admitted be late, this sum 5.6 % (ADR 0001).
 *
 * And not what waits now alone. Under a noisy neighbour the light tenants' lanes are empty at almost every instant,
 * and yet their new tickets go before the noisy one's long lane. A tenant with B_j ÷ w_j ≤ B_i ÷ w_i will have run out
 * before, so what it sends meanwhile goes first, until it too has had its share: with their flow Λ of late, their room
 * left C and the drain rate D, the wait T solves D·T = Σ + min(Λ·T, C), that is T = min(Σ ÷ (D − Λ), (Σ + C) ÷ D). A
 * ticket with nothing of its own tenant before it is overtaken by nobody (C = 0).
 *
 * Nor do backlogs say it all: who has just had a long turn owes it. Until the others have had as much per weight, they
 * go first although nothing of its own waits, so its debt counts like backlog in what they are served meanwhile, and is
 * no work itself. With 200 small tenants, whose lanes are mostly empty, debts are most of what makes one of them wait.
 *
 * Shares are a tree, org → tenant → key, and so is the sum: what comes out among the keys takes the place of B_i + c
 * among the tenants of the org, and that among the orgs. Inside a tenant's share `interactive` goes first: a standard
 * ticket has all of its tenant's interactive backlog before it, an interactive one none of the standard.
 *
 * Example (one org, one key each): weights 1, backlogs A 100, B 500, C 2,000; a request of cost 300 from A: x = 400;
 * A's own 100 + min(500, 400) + min(2,000, 400) = 900 goes before it, not 100 and not 2,600.
 */
export interface Newcomer {
  readonly share: SharePath
  readonly band: Band
  readonly cost: number
  /** What it has had beyond its share and must see others have first. */
  readonly debt?: ShareDebt
}

/** Weighted tokens that a key, its tenant and its org have been served ahead of those beside them. */
export interface ShareDebt {
  readonly key: number
  readonly tenant: number
  readonly org: number
}

const NO_DEBT: ShareDebt = { key: 0, tenant: 0, org: 0 }

interface TenantMember extends Member {
  /** Made when the tenant first uses the band: most use one. */
  interactive: ShareLevel<Member> | undefined
  others: ShareLevel<Member> | undefined
}

interface OrgMember extends Member {
  /** As the last ticket or the last change of settings said; undefined: it weighs what its active tenants weigh. */
  ownWeight: number | undefined
  readonly tenants: ShareLevel<TenantMember>
}

const makeKey = (slot: number): Member => ({ slot, weight: 1, backlog: 0, flow: 0, flowedAt: 0 })

const makeTenant = (slot: number): TenantMember => ({
  ...makeKey(slot),
  interactive: undefined,
  others: undefined,
})

const makeOrg = (slot: number): OrgMember => ({
  ...makeKey(slot),
  ownWeight: undefined,
  tenants: new ShareLevel(makeTenant),
})

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
  ofTenant(share: SharePath): number {
    return this.#orgs.get(share.org.id)?.tenants.get(share.tenant.id)?.backlog ?? 0
  }

  join(now: Instant, { share, band, cost }: Newcomer): void {
    const org = this.#orgs.getOrMake(now, share.org.id)
    const { tenants } = org
    org.ownWeight = share.org.weight
    const tenant = tenants.getOrMake(now, share.tenant.id)
    keysOf(tenant, band).join(now, share.key.id, { cost, weight: share.key.weight })
    tenants.join(now, share.tenant.id, { cost, weight: share.tenant.weight })
    this.#orgs.join(now, share.org.id, { cost, weight: share.org.weight ?? tenants.activeWeight })
  }

  /** With the share, band and cost that it joined with; `grantedAt` when it left because it got its turn. */
  leave({ share, band, cost }: Newcomer, grantedAt: Instant | undefined): void {
    const org = this.#orgs.get(share.org.id)
    const tenant = org?.tenants.get(share.tenant.id)
    assert(org !== undefined && tenant !== undefined, 'only who joined leaves')
    keysOf(tenant, band).leave(share.key.id, cost, grantedAt)
    org.tenants.leave(share.tenant.id, cost, grantedAt)
    this.#orgs.leave(share.org.id, cost, grantedAt)
    this.#weighOrg(share.org.id, org)
  }

  /**
   * A weight changed, for what waits too. A key's comes with its next ticket; so does the new org of a tenant that moves:
   * what waits is counted where it joined.
   */
  reweigh(change: WeightChange): void {
    if (change.kind === 'key') return
    const org = this.#orgs.get(change.orgId)
    if (org === undefined) return
    if (change.kind === 'org') org.ownWeight = change.weight
    else org.tenants.reweigh(change.tenantId, change.weight)
    this.#weighOrg(change.orgId, org)
  }

  /** By its own weight, whatever the ticket that left had joined with. */
  #weighOrg(orgId: string, { ownWeight, tenants }: OrgMember): void {
    const weight = ownWeight ?? tenants.activeWeight
    if (weight > 0) this.#orgs.reweigh(orgId, weight)
  }

  /** The work that waits now and goes before a newcomer, itself not counted. */
  aheadOf(now: Instant, newcomer: Newcomer): number {
    return this.#climb(now, newcomer, { isOwnCounted: true, waitUs: 0 }).work - newcomer.cost
  }

  /** Microseconds until its turn, at this drain rate. `isOwnCounted: false`: had its own tenant nothing waiting. */
  waitUs(
    now: Instant,
    newcomer: Newcomer,
    how: { readonly drainPerUs: number; readonly isOwnCounted: boolean },
  ): number {
    const { drainPerUs, isOwnCounted } = how
    const first = this.#climb(now, newcomer, { isOwnCounted, waitUs: 0 })
    const waitUs = solveWait(first.work - newcomer.cost, first.beside, drainPerUs)
    if (!first.hasInflowBelow) return waitUs
    // New work inside the own org and tenant lengthens the wait, and a longer wait brings more of it: one step suffices.
    const second = this.#climb(now, newcomer, { isOwnCounted, waitUs })
    return solveWait(second.work - newcomer.cost, second.beside, drainPerUs)
  }

  /** Up the tree: the work to be served until the newcomer is, and what the other orgs may still bring. */
  #climb(
    now: Instant,
    { share, band, cost, debt = NO_DEBT }: Newcomer,
    how: { readonly isOwnCounted: boolean; readonly waitUs: number },
  ): { work: number; beside: Others; hasInflowBelow: boolean } {
    const org = this.#orgs.get(share.org.id)
    const tenant = org?.tenants.get(share.tenant.id)
    let work = cost
    let hasInflowBelow = false
    const owed = how.isOwnCounted ? debt : NO_DEBT
    const pass = (level: ShareLevel<Member> | undefined, node: ShareNode, owedHere: number): void => {
      const others = othersAt(now, level, node, work + owedHere, cost)
      work += others.waiting + Math.min(others.inflowPerUs * how.waitUs, others.inflowMax)
      hasInflowBelow ||= others.inflowPerUs > 0 && others.inflowMax > 0
    }
    if (how.isOwnCounted && tenant !== undefined) {
      const keys = band === 'interactive' ? tenant.interactive : tenant.others
      work += keys?.get(share.key.id)?.backlog ?? 0
      pass(keys, share.key, owed.key)
      if (band !== 'interactive') work += tenant.interactive?.backlog ?? 0
    }
    pass(org?.tenants, share.tenant, owed.tenant)
    const orgNode = { id: share.org.id, weight: orgWeightOf(share, org) }
    const beside = othersAt(now, this.#orgs, orgNode, work + owed.org, cost)
    return { work: work + beside.waiting, beside, hasInflowBelow }
  }
}

function keysOf(tenant: TenantMember, band: Band): ShareLevel<Member> {
  if (band === 'interactive') {
    tenant.interactive ??= new ShareLevel(makeKey)
    return tenant.interactive
  }
  tenant.others ??= new ShareLevel(makeKey)
  return tenant.others
}

/** As it would be with the newcomer waiting. */
function orgWeightOf(share: SharePath, org: OrgMember | undefined): number {
  if (share.org.weight !== undefined) return share.org.weight
  const active = org?.tenants.activeWeight ?? 0
  const isActive = (org?.tenants.get(share.tenant.id)?.backlog ?? 0) > 0
  return isActive ? active : active + share.tenant.weight
}

function othersAt(
  now: Instant,
  level: ShareLevel<Member> | undefined,
  node: ShareNode,
  work: number,
  cost: number,
): Others {
  return (
    level?.servedToOthers(now, node.id, { x: work / node.weight, xBefore: (work - cost) / node.weight }) ?? NO_OTHERS
  )
}

/** T from D·T = Σ + min(Λ·T, C). */
function solveWait(ahead: number, beside: Others, drainPerUs: number): number {
  if (ahead <= 0) return 0
  const atMostUs = (ahead + beside.inflowMax) / drainPerUs
  const left = drainPerUs - beside.inflowPerUs
  return left <= 0 ? atMostUs : Math.min(ahead / left, atMostUs)
}
