import type { Key, Tenant } from './tenant.ts'

/**
 * Where a ticket stands in the tree of shares: org → tenant → key, each with its weight. A ticket keeps the path that it
 * joined a queue with until it leaves that queue, whatever is reconfigured meanwhile.
 */
export interface SharePath {
  /** An org without a weight of its own weighs as much as its tenants that have something waiting. */
  readonly org: { readonly id: string; readonly weight: number | undefined }
  readonly tenant: ShareNode
  readonly key: ShareNode
}

export interface ShareNode {
  readonly id: string
  readonly weight: number
}

/** A tenant that waits at a pool, and its share of the pool among all that wait there: 0 … 1. */
export interface BackloggedTenant {
  readonly tenantId: string
  readonly share: number
}

/** A key with tickets that wait at a pool. */
export interface WaitingKey {
  readonly orgId: string
  readonly tenantId: string
  readonly keyId: string
  readonly count: number
}

/** The keys with most tickets waiting at a pool, and the others together. */
export interface WaitingKeys {
  readonly keys: readonly WaitingKey[]
  readonly otherKeyCount: number
  readonly otherCount: number
}

export function sharePathOf(tenant: Tenant, key: Key): SharePath {
  return {
    org: { id: tenant.orgId, weight: tenant.orgWeight },
    tenant: { id: tenant.id, weight: tenant.weight },
    key: { id: key.id, weight: key.weight },
  }
}

/** A new weight of a node of the tree; a tenant may have moved to another org. */
export type WeightChange =
  | { readonly kind: 'org'; readonly orgId: string; readonly weight: number | undefined }
  | { readonly kind: 'tenant'; readonly tenantId: string; readonly orgId: string; readonly weight: number }
  | { readonly kind: 'key'; readonly keyId: string; readonly weight: number }
