import { assert } from '../../base/assert.ts'
import type { WeightChange } from '../../domain/share-path.ts'
import type { Debt, Fairness, FairnessName } from './fairness.ts'
import type { Lane } from './lane.ts'
import { MedianCost } from './median-cost.ts'
import { Share, type Siblings } from './share.ts'

/**
 * Which lane goes next, when orgs share a pool, tenants share their org's part and keys share their tenant's?
 *
 * Hierarchical fair sharing (Bennett and Zhang, 1996; here with any order of siblings at each level): the pick walks
 * down from the root, one sibling a level; a cost is charged on the way up, to the lane, its tenant and its org. So an
 * org's thousand tenants get one org's part, and a tenant's thousand keys one tenant's.
 *
 *     root ── org A (weight 1) ── tenant a1 ── interactive: [key 1 · key 2]      the band rule:
 *          │                  └── tenant a2   standard:    [key 1]              interactive before standard,
 *          └─ org B (weight 3) ── tenant b1 …                                   inside one tenant only
 *
 * A tenant's bands are served in order: as long as one of its interactive lanes can go, its standard lanes wait; the
 * other tenants do not notice. An org without a weight of its own weighs as much as its tenants that have something
 * to do, so that where nobody configures orgs, tenants share by their own weights.
 *
 * Deliberately not: nothing here knows of time, room or readiness; offline work has a tree of its own, asked only when
 * this one has nothing to place.
 *
 * Laws: L7 at every level, with the bound of the order of siblings; the bounds of the levels above add to a lane's.
 *
 * Worked example: A weighs 1, B 3, every turn costs 100. Of eight turns B gets six; of A's two, a1 and a2 get one each.
 */
export interface HierarchyParts {
  readonly name: FairnessName
  readonly isChargedAhead: boolean
  /** Whether the order depends on what stands first in each share, and is told when that changes (`rehead`). */
  readonly looksAtHeads?: boolean
  readonly makeSiblings: <S extends Share>(typical: MedianCost) => Siblings<S>
}

/** Bands that one tree orders: interactive and standard in the one, offline alone in the other. */
const BAND_COUNT = 3

class OrgShare extends Share {
  readonly tenants: Siblings<TenantShare>
  /** Its own weight, if one was given; otherwise it weighs what its active tenants weigh. */
  ownWeight: number | undefined
  activeWeight = 0
  tenantCount = 0

  constructor(id: string, weight: number, tenants: Siblings<TenantShare>) {
    super(id, weight)
    this.tenants = tenants
  }

  override headCost(): number {
    return this.tenants.first()?.headCost() ?? 0
  }
}

class TenantShare extends Share {
  org: OrgShare
  readonly bands: Array<Siblings<Lane> | undefined> = [undefined, undefined, undefined]
  readonly lanes: Lane[] = []
  activeCount = 0
  /** Of those, the ones that were passed over. */
  asideCount = 0

  constructor(id: string, weight: number, org: OrgShare) {
    super(id, weight)
    this.org = org
  }

  /** The lane whose turn it is among the tenant's own. */
  nextLane(): Lane | undefined {
    for (let band = 0; band < BAND_COUNT; band++) {
      const lane = this.bands[band]?.first()
      if (lane !== undefined) return lane
    }
    return undefined
  }

  override headCost(): number {
    return this.nextLane()?.headCost() ?? 0
  }
}

export class Hierarchy implements Fairness {
  readonly name: FairnessName
  readonly isChargedAhead: boolean
  readonly #looksAtHeads: boolean
  readonly #makeSiblings: HierarchyParts['makeSiblings']
  readonly #typical = new MedianCost()
  readonly #orgs = new Map<string, OrgShare>()
  readonly #tenants = new Map<string, TenantShare>()
  readonly #orgWeights = new Map<string, number>()
  readonly #root: Siblings<OrgShare>

  constructor(parts: HierarchyParts) {
    this.name = parts.name
    this.isChargedAhead = parts.isChargedAhead
    this.#looksAtHeads = parts.looksAtHeads ?? false
    this.#makeSiblings = parts.makeSiblings
    this.#root = parts.makeSiblings<OrgShare>(this.#typical)
  }

  attach(lane: Lane): void {
    let tenant = this.#tenants.get(lane.tenantId)
    if (tenant === undefined) {
      tenant = new TenantShare(lane.tenantId, lane.tenantWeight, this.#orgOf(lane.orgId))
      tenant.org.tenantCount++
      this.#tenants.set(lane.tenantId, tenant)
    }
    tenant.bands[lane.bandRank] ??= this.#makeSiblings<Lane>(this.#typical)
    tenant.lanes.push(lane)
    lane.parent = tenant
  }

  detach(lane: Lane): boolean {
    const tenant = tenantOf(lane)
    const keys = siblingsOf(lane)
    const org = tenant.org
    const isLastLane = tenant.lanes.length === 1
    const isLastTenant = isLastLane && org.tenantCount === 1
    if (keys.standingOf(lane) < 0) return false
    if (isLastLane && org.tenants.standingOf(tenant) < 0) return false
    if (isLastTenant && this.#root.standingOf(org) < 0) return false
    tenant.lanes.splice(tenant.lanes.indexOf(lane), 1)
    lane.parent = undefined
    if (isLastLane) this.#tenants.delete(tenant.id)
    if (isLastLane) org.tenantCount--
    if (isLastTenant) this.#orgs.delete(org.id)
    return true
  }

  enter(lane: Lane): void {
    if (!lane.isActive) {
      const tenant = tenantOf(lane)
      siblingsOf(lane).enter(lane)
      if (tenant.activeCount++ === 0) this.#enterTenant(tenant)
      else if (tenant.isAside) this.#recallTenant(tenant)
    }
    if (this.#looksAtHeads) this.#rehead(lane)
  }

  leave(lane: Lane): void {
    if (!lane.isActive) return
    const tenant = tenantOf(lane)
    if (lane.isAside) tenant.asideCount--
    siblingsOf(lane).leave(lane)
    if (--tenant.activeCount === 0) this.#leaveTenant(tenant)
    else if (!tenant.isAside && tenant.asideCount === tenant.activeCount) this.#passTenant(tenant)
    if (this.#looksAtHeads) this.#rehead(lane)
  }

  pass(lane: Lane): void {
    const tenant = tenantOf(lane)
    siblingsOf(lane).pass(lane)
    if (++tenant.asideCount === tenant.activeCount) this.#passTenant(tenant)
    if (this.#looksAtHeads) this.#rehead(lane)
  }

  recall(lane: Lane): void {
    const tenant = tenantOf(lane)
    siblingsOf(lane).recall(lane)
    tenant.asideCount--
    if (tenant.isAside) this.#recallTenant(tenant)
    if (this.#looksAtHeads) this.#rehead(lane)
  }

  /** What stands first in a lane may now be first in its tenant and its org, or no longer. */
  #rehead(lane: Lane): void {
    const tenant = tenantOf(lane)
    siblingsOf(lane).rehead?.(lane)
    tenant.org.tenants.rehead?.(tenant)
    this.#root.rehead?.(tenant.org)
  }

  next(): Lane | undefined {
    return this.#root.first()?.tenants.first()?.nextLane()
  }

  takeTurn(lane: Lane, cost: number): void {
    this.#typical.observe(cost)
    const tenant = tenantOf(lane)
    siblingsOf(lane).takeTurn(lane, cost)
    tenant.org.tenants.takeTurn(tenant, cost)
    this.#root.takeTurn(tenant.org, cost)
  }

  charge(lane: Lane, cost: number): void {
    const tenant = tenantOf(lane)
    siblingsOf(lane).charge(lane, cost)
    tenant.org.tenants.charge(tenant, cost)
    this.#root.charge(tenant.org, cost)
  }

  roundsOwedTo(lane: Lane): number {
    const tenant = tenantOf(lane)
    const { org } = tenant
    const ofLane = siblingsOf(lane).roundsOwedTo(lane)
    const ofTenant = org.tenants.roundsOwedTo(tenant)
    const ofOrg = this.#root.roundsOwedTo(org)
    return Math.min(ofLane, ofTenant, ofOrg) <= 0 ? 0 : Math.max(ofLane, ofTenant, ofOrg)
  }

  turnsOwedTo(lane: Lane, cost: number): number {
    const tenant = tenantOf(lane)
    const { org } = tenant
    const ofLane = siblingsOf(lane).turnsOwedTo(lane, cost)
    return Math.max(ofLane, org.tenants.turnsOwedTo(tenant, cost), this.#root.turnsOwedTo(org, cost))
  }

  debtOf(lane: Lane): Debt {
    const tenant = tenantOf(lane)
    const { org } = tenant
    return { key: siblingsOf(lane).debtOf(lane), tenant: org.tenants.debtOf(tenant), org: this.#root.debtOf(org) }
  }

  reweigh(change: WeightChange): void {
    if (change.kind === 'org') this.#reweighOrg(change.orgId, change.weight)
    else if (change.kind === 'tenant') this.#reweighTenant(change)
    else {
      for (const tenant of this.#tenants.values()) {
        for (const lane of tenant.lanes) {
          if (lane.keyId !== change.keyId) continue
          siblingsOf(lane).reweigh(lane, change.weight)
          if (this.#looksAtHeads) this.#rehead(lane)
        }
      }
    }
  }

  #reweighOrg(orgId: string, weight: number | undefined): void {
    if (weight === undefined) this.#orgWeights.delete(orgId)
    else this.#orgWeights.set(orgId, weight)
    const org = this.#orgs.get(orgId)
    if (org === undefined) return
    org.ownWeight = weight
    this.#weighOrg(org)
  }

  #reweighTenant(change: WeightChange & { readonly kind: 'tenant' }): void {
    const tenant = this.#tenants.get(change.tenantId)
    if (tenant === undefined) return
    for (const lane of tenant.lanes) {
      lane.tenantWeight = change.weight
      lane.orgId = change.orgId
    }
    const org = tenant.org
    if (tenant.activeCount > 0) org.activeWeight += change.weight - tenant.weight
    org.tenants.reweigh(tenant, change.weight)
    this.#weighOrg(org)
    if (this.#looksAtHeads) this.#root.rehead?.(org)
    if (org.id !== change.orgId) this.#moveTenant(tenant, this.#orgOf(change.orgId))
  }

  #moveTenant(tenant: TenantShare, to: OrgShare): void {
    const from = tenant.org
    if (tenant.activeCount > 0) this.#leaveTenant(tenant)
    // Rounds of different orgs do not compare: it starts level with its new siblings, less what it owed the old ones.
    const owed = Math.min(0, from.tenants.standingOf(tenant))
    from.tenants.disown?.(tenant)
    tenant.org = to
    to.tenantCount++
    to.tenants.adopt(tenant, owed)
    if (tenant.activeCount > 0) this.#enterTenant(tenant)
    if (tenant.activeCount > 0 && tenant.asideCount === tenant.activeCount) this.#passTenant(tenant)
    if (--from.tenantCount === 0) this.#orgs.delete(from.id)
    if (!this.#looksAtHeads) return
    this.#root.rehead?.(from)
    this.#root.rehead?.(to)
  }

  #orgOf(orgId: string): OrgShare {
    let org = this.#orgs.get(orgId)
    if (org === undefined) {
      org = new OrgShare(orgId, this.#orgWeights.get(orgId) ?? 1, this.#makeSiblings<TenantShare>(this.#typical))
      org.ownWeight = this.#orgWeights.get(orgId)
      this.#orgs.set(orgId, org)
    }
    return org
  }

  #enterTenant(tenant: TenantShare): void {
    const org = tenant.org
    org.tenants.enter(tenant)
    org.activeWeight += tenant.weight
    this.#weighOrg(org)
    if (org.tenants.size === 1) this.#root.enter(org)
    else if (org.isAside) this.#root.recall(org)
  }

  #leaveTenant(tenant: TenantShare): void {
    const org = tenant.org
    org.tenants.leave(tenant)
    if (org.tenants.size === 0) {
      org.activeWeight = 0
      this.#root.leave(org)
    } else {
      org.activeWeight -= tenant.weight
      this.#weighOrg(org)
      if (!org.isAside && org.tenants.askedCount === 0) this.#root.pass(org)
    }
  }

  #passTenant(tenant: TenantShare): void {
    const { org } = tenant
    org.tenants.pass(tenant)
    if (org.tenants.askedCount === 0) this.#root.pass(org)
  }

  #recallTenant(tenant: TenantShare): void {
    const { org } = tenant
    org.tenants.recall(tenant)
    if (org.isAside) this.#root.recall(org)
  }

  #weighOrg(org: OrgShare): void {
    const weight = org.ownWeight ?? org.activeWeight
    if (weight > 0 && weight !== org.weight) this.#root.reweigh(org, weight)
  }

  assertInvariants(): void {
    this.#root.assertInvariants()
    let activeOrgs = 0
    for (const org of this.#orgs.values()) {
      org.tenants.assertInvariants()
      assert(org.isActive === org.tenants.size > 0, 'an org is active exactly when one of its tenants is')
      assert(org.isAside === (org.isActive && org.tenants.askedCount === 0), 'an org is aside when all of it is')
      if (org.isActive) activeOrgs++
    }
    assert(activeOrgs === this.#root.size, 'the root holds the active orgs')
    for (const tenant of this.#tenants.values()) {
      assert(tenant.isActive === tenant.activeCount > 0, 'a tenant is active exactly when one of its lanes is')
      assert(this.#orgs.get(tenant.org.id) === tenant.org, 'a tenant hangs in a living org')
      let active = 0
      for (const siblings of tenant.bands) {
        siblings?.assertInvariants()
        active += siblings?.size ?? 0
      }
      assert(active === tenant.activeCount, 'a tenant counts its active lanes')
      const aside = tenant.lanes.reduce((count, lane) => count + Number(lane.isAside), 0)
      assert(aside === tenant.asideCount, 'a tenant counts its lanes that were passed over')
      assert(tenant.isAside === (active > 0 && aside === active), 'a tenant is aside exactly when all of it is')
    }
  }
}

/** A lane is attached before anything else is said about it, so its parent is a tenant of this tree. */
function tenantOf(lane: Lane): TenantShare {
  return lane.parent as TenantShare
}

function siblingsOf(lane: Lane): Siblings<Lane> {
  return tenantOf(lane).bands[lane.bandRank] as Siblings<Lane>
}
