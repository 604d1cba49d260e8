import { hash } from 'node:crypto'
import { ChurningMap } from '../base/churning-map.ts'
import type { TokenIdentity } from '../domain/identity.ts'
import type { Key, Tenant } from '../domain/tenant.ts'
import type { Caller, KeyDirectory, Peer, PeerDirectory } from './authenticate.ts'
import type { KeyCode, ToldRefusal } from './error-table.ts'

/** Subjects whose callers are kept, about 300 bytes each. */
export const SUBJECTS_MAX = 10_000

/** A subject may be a person's address: its hash tells callers apart in logs and metrics, and says no more. */
const subjectName = (issuerId: string, name: string): string =>
  `${issuerId}@${hash('sha256', name, 'hex').slice(0, 16)}`

/** Keys and tenants that were made at run time, beside those of the configuration file. */
export interface RunTimeKeys {
  callerOf(digest: string): Caller | undefined
  whyNot(digest: string): ToldRefusal<KeyCode> | undefined
}

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

  /** Callers of tokens, made on first use, for the same reason; the first one makes room. */
  #subjects = new ChurningMap<string, Caller>()

  #runTime: RunTimeKeys | undefined

  constructor(
    tenants: readonly Tenant[],
    keys: ReadonlyArray<{ readonly key: Key; readonly hash: string }>,
    peers: ReadonlyArray<{ readonly region: string; readonly hash: string }> = [],
  ) {
    this.replace(tenants, keys, peers)
  }

  byHash(digest: string): Caller | undefined {
    return this.#callers.get(digest) ?? this.#runTime?.callerOf(digest)
  }

  whyNot(digest: string): ToldRefusal<KeyCode> | undefined {
    return this.#runTime?.whyNot(digest)
  }

  /** Adds the keys that were made at run time; the file's are looked at first. */
  addRunTime(keys: RunTimeKeys): void {
    this.#runTime = keys
  }

  peerByHash(digest: string): Peer | undefined {
    return this.#peers.get(digest)
  }

  /**
   * The tenant on its own terms, with a key for this subject alone: it has its lane and its budget as any key has.
   * Budgets are kept by the key's id, so a caller that made room and comes back finds what it has spent.
   */
  byIdentity(identity: TokenIdentity): Caller | undefined {
    const { issuerId, subject, tenantId = '', allowance } = identity
    const tenant = this.#tenants.get(tenantId)
    if (tenant === undefined) return undefined
    const name = `${issuerId}\n${tenantId}\n${subject}`
    const known = this.#subjects.get(name)
    if (known !== undefined) return known
    const caller: Caller = { tenant, key: { id: subjectName(issuerId, name), tenantId, weight: 1, allowance } }
    if (this.#subjects.size >= SUBJECTS_MAX) {
      for (const first of this.#subjects.keys()) {
        this.#subjects.delete(first)
        break
      }
    }
    this.#subjects.set(name, caller)
    return caller
  }

  /** For tests: callers of tokens that are kept. */
  get subjectCount(): number {
    return this.#subjects.size
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
    this.#subjects = new ChurningMap()
    this.#callers = callers
  }
}
