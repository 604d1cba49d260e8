/**
 * What a region says of one of its models to the gateways of other regions: how soon would a request begin there? It tells
 * of its own replicas only, never of what it could send on itself.
 */
export interface Outlook {
  readonly readyReplicaCount: number
  /** Until a newcomer's turn. */
  readonly waitUs: number
  /** To read one token of a prompt that nobody has read before. */
  readonly prefillUsPerToken: number
  /** Cost that its replicas work off in a microsecond; 0 when it has none. */
  readonly drainPerUs: number
  /** It refuses offline work of everybody. */
  readonly isShedding: boolean
}
