import { NO_FACTORS, type WeightFactors } from '../../domain/pool-share.ts'
import type { SharePath, WeightChange } from '../../domain/share-path.ts'
import type { OrgWeights, TreePlace } from '../fairness/tree-share.ts'

/**
 * How much does a node of the fairness tree weigh at this gateway, in one pool?
 *
 * Several gateways share a pool by scaled weights (`policy/sharing/room-targets.ts`): a tenant that waits at four of them
 * weighs a quarter at each. The contract's weights stay where they are; orders of turns and predictions of waits get the
 * product. A lane that is made later asks here too, so it is born with the factor of its tenant and key.
 */
/** Weights of the contract. */
interface KnownWeights {
  readonly orgWeights: OrgWeights
  readonly backlogs: ReadonlyMap<string, TreePlace>
  readonly keyWeightOf: (keyId: string) => number | undefined
}

export class WeightScale {
  #factors: WeightFactors = NO_FACTORS

  get isOne(): boolean {
    return this.#factors === NO_FACTORS
  }

  tenant(id: string): number {
    return this.#factors.tenants.get(id) ?? 1
  }

  key(id: string): number {
    return this.#factors.keys.get(id) ?? 1
  }

  org(id: string): number {
    return this.#factors.orgs.get(id) ?? 1
  }

  /** Takes new factors. The weights that are others now, of nodes that are known here. */
  change(factors: WeightFactors, known: KnownWeights): WeightChange[] {
    const before = this.#factors
    this.#factors = factors
    const changes: WeightChange[] = []
    for (const orgId of changed(before.orgs, factors.orgs)) {
      const weight = known.orgWeights.get(orgId)
      if (weight !== undefined) changes.push({ kind: 'org', orgId, weight })
    }
    for (const tenantId of changed(before.tenants, factors.tenants)) {
      const backlog = known.backlogs.get(tenantId)
      if (backlog !== undefined)
        changes.push({ kind: 'tenant', tenantId, orgId: backlog.orgId, weight: backlog.weight })
    }
    for (const keyId of changed(before.keys, factors.keys)) {
      const weight = known.keyWeightOf(keyId)
      if (weight !== undefined) changes.push({ kind: 'key', keyId, weight })
    }
    return changes.map((change) => this.changeOf(change))
  }

  changeOf(change: WeightChange): WeightChange {
    if (this.isOne) return change
    if (change.kind === 'tenant') return { ...change, weight: change.weight * this.tenant(change.tenantId) }
    if (change.kind === 'key') return { ...change, weight: change.weight * this.key(change.keyId) }
    return change.weight === undefined ? change : { ...change, weight: change.weight * this.org(change.orgId) }
  }

  pathOf(share: SharePath): SharePath {
    if (this.isOne) return share
    const { org, tenant, key } = share
    return {
      org: org.weight === undefined ? org : { id: org.id, weight: org.weight * this.org(org.id) },
      tenant: { id: tenant.id, weight: tenant.weight * this.tenant(tenant.id) },
      key: { id: key.id, weight: key.weight * this.key(key.id) },
    }
  }
}

function changed(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): string[] {
  const ids: string[] = []
  for (const [id, factor] of after) if ((before.get(id) ?? 1) !== factor) ids.push(id)
  for (const [id, factor] of before) if (factor !== 1 && !after.has(id)) ids.push(id)
  return ids
}
