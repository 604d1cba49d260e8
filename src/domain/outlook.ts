/**
 * An outlook is what a region reports about one of its models to the gateways of other regions: how soon would a
 * request begin there? It covers the region's own replicas only, not what the region could send on.
 */
export interface Outlook {
  readonly readyReplicaCount: number
  /** Predicted wait of a new request for its turn. */
  readonly waitUs: number
  /** Time to compute one prompt token that is not cached. */
  readonly prefillUsPerToken: number
  /** Cost that the region's replicas complete in a microsecond; 0 when it has none. */
  readonly drainPerUs: number
  /** The region refuses offline requests of all tenants. */
  readonly isShedding: boolean
}
