import type { Key, Tenant } from '../domain/tenant.ts'
import type { Caller, KeyDirectory, Peer, PeerDirectory } from './authenticate.ts'

/**
 * The callers by key, with their terms. A reload replaces the whole directory at once: later requests get the new
 * terms, waiting tickets keep theirs.
 */
export class TenantDirectory implements KeyDirectory, PeerDirectory {
  #callers: ReadonlyMap<string, Caller> = new Map()
  #tenants: ReadonlyMap<string, Tenant> = new Map()

  #peers: ReadonlyMap<string, Peer> = new Map()
  /**
   * Callers of peers, made on first use. A caller must stay the same object, because its budgets are kept by object.
   */
  readonly #behalf = new Map<string, Caller>()

  constructor(
    tenants: readonly Tenant[],
    keys: ReadonlyArray<{ readonly key: Key; readonly hash: string }>,
    peers: ReadonlyArray<{ readonly region: string; readonly hash: string }> = [],
  ) {
    this.replace(tenants, keys, peers)
  }

  byHash(digest: string): Caller | undefined {
    return this.#callers.get(digest)
  }

  peerByHash(digest: string): Peer | undefined {
    return this.#peers.get(digest)
  }

  /**
   * The tenant on its own terms, with two exceptions. Its requests are never degraded here: the ladder belongs to the
   * client's own gateway, which tells the client. And they spend from no key's budget: their own gateway has counted
   * them.
   */
  onBehalf({ region }: Peer, tenantId: string): Caller | undefined {
    const name = `${region}/${tenantId}`
    const known = this.#behalf.get(name)
    if (known !== undefined) return known
    const tenant = this.#tenants.get(tenantId)
    if (tenant === undefined) return undefined
    const caller: Caller = {
      tenant: { ...tenant, contract: 'reject' },
      key: { id: `${tenantId}@${region}`, tenantId, weight: 1, allowance: {} },
    }
    this.#behalf.set(name, caller)
    return caller
  }

  get tenants(): ReadonlyMap<string, Tenant> {
    return this.#tenants
  }

  replace(
    tenants: readonly Tenant[],
    keys: ReadonlyArray<{ readonly key: Key; readonly hash: string }>,
    peers: ReadonlyArray<{ readonly region: string; readonly hash: string }>,
  ): void {
    const byId = new Map(tenants.map((tenant) => [tenant.id, tenant]))
    const callers = new Map<string, Caller>()
    for (const { key, hash } of keys) {
      const tenant = byId.get(key.tenantId)
      if (tenant !== undefined) callers.set(hash.replace(/^sha256:/, ''), { tenant, key })
    }
    this.#tenants = byId
    this.#peers = new Map(peers.map(({ region, hash }) => [hash.replace(/^sha256:/, ''), { region }]))
    this.#behalf.clear()
    this.#callers = callers
  }
}
