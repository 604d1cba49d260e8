import { hash } from 'node:crypto'
import { ChurningMap } from '../base/churning-map.ts'
import type { TokenIdentity } from '../domain/identity.ts'
import type { Key, Tenant } from '../domain/tenant.ts'
import type { Caller, CallerCall, CallerDenial, KeyDirectory, Peer, PeerDirectory } from './authenticate.ts'
import type { KeyCode, ToldRefusal } from './error-table.ts'

/** Subjects whose callers are kept, about 300 bytes each. */
export const SUBJECTS_MAX = 10_000

/** Tenants that peers act for whose callers are kept. */
export const BEHALF_MAX = 10_000

/** A subject may be a person's address: its hash tells callers apart in logs and metrics, and says no more. */
const subjectName = (issuerId: string, name: string): string =>
  `${issuerId}@${hash('sha256', name, 'hex').slice(0, 16)}`

/** Keys and tenants that were made at run time, beside those of the configuration file. */
export interface RunTimeKeys {
  callerOf(digest: string): Caller | undefined
  whyNot(digest: string): ToldRefusal<KeyCode> | undefined
  /** A key was used, of the file or made at run time. */
  noteUse(digest: string): void
  /** While its terms hold; the same object as long as nothing about it changes. */
  tenantOf(tenantId: string): RunTimeTenant | undefined
  whyNoTenant(): ToldRefusal<KeyCode> | undefined
}

/** A tenant that callers without a key of their own act for: subjects of tokens, and peers. */
export interface RunTimeTenant {
  readonly tenant: Tenant
  /** Models of a tenant that may not use all of them. */
  readonly models?: readonly string[]
  readonly denial: (call: CallerCall) => CallerDenial | undefined
  /** The address is the peer's, not the client's: ranges of addresses were held by the peer. */
  readonly peerDenial: (call: CallerCall) => CallerDenial | undefined
}

/** A caller, and the tenant that it was made for. A tenant that changes is another object. */
interface MadeCaller {
  readonly madeFor: Tenant | RunTimeTenant
  readonly caller: Caller
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
  #behalf = new ChurningMap<string, MadeCaller>()

  /** Callers of tokens, made on first use, for the same reason; the first one makes room. */
  #subjects = new ChurningMap<string, MadeCaller>()

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

  noteUse(digest: string): void {
    this.#runTime?.noteUse(digest)
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
    const { issuerId, subject, tenantId = '', allowance, orgIds } = identity
    const name = `${issuerId}\n${tenantId}\n${subject}`
    const madeFor = this.#tenants.get(tenantId) ?? this.#runTime?.tenantOf(tenantId)
    const tenant = madeFor === undefined ? undefined : plainTenant(madeFor)
    if (madeFor === undefined || tenant === undefined || orgIds?.includes(tenant.orgId) === false) {
      this.#subjects.delete(name)
      return undefined
    }
    return callerIn(this.#subjects, SUBJECTS_MAX, name, madeFor, () => ({
      tenant,
      key: { id: subjectName(issuerId, name), tenantId, weight: 1, allowance },
      ...('denial' in madeFor && madeFor.models !== undefined && { models: madeFor.models }),
      ...('denial' in madeFor && { denial: madeFor.denial }),
    }))
  }

  tenantById(tenantId: string): Tenant | undefined {
    const found = this.#tenants.get(tenantId) ?? this.#runTime?.tenantOf(tenantId)
    return found && plainTenant(found)
  }

  whyNoTenant(): ToldRefusal<KeyCode> | undefined {
    return this.#runTime?.whyNoTenant()
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
    const madeFor = this.#tenants.get(tenantId) ?? this.#runTime?.tenantOf(tenantId)
    if (madeFor === undefined) {
      this.#behalf.delete(name)
      return undefined
    }
    return callerIn(this.#behalf, BEHALF_MAX, name, madeFor, () => ({
      tenant: { ...plainTenant(madeFor), contract: 'reject' },
      key: { id: `${tenantId}@${region}`, tenantId, weight: 1, allowance: {} },
      ...('denial' in madeFor && { denial: madeFor.peerDenial }),
    }))
  }

  /** For tests: callers of peers that are kept. */
  get behalfCount(): number {
    return this.#behalf.size
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
    this.#behalf = new ChurningMap()
    this.#subjects = new ChurningMap()
    this.#callers = callers
  }
}

const plainTenant = (madeFor: Tenant | RunTimeTenant): Tenant => ('denial' in madeFor ? madeFor.tenant : madeFor)

/** The caller that was made for this very tenant, or a new one; the first one makes room. */
function callerIn(
  callers: ChurningMap<string, MadeCaller>,
  max: number,
  name: string,
  madeFor: Tenant | RunTimeTenant,
  make: () => Caller,
): Caller {
  const known = callers.get(name)
  if (known?.madeFor === madeFor) return known.caller
  if (known === undefined && callers.size >= max) {
    for (const first of callers.keys()) {
      callers.delete(first)
      break
    }
  }
  const caller = make()
  callers.set(name, { madeFor, caller })
  return caller
}
