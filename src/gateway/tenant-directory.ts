import type { Key, Tenant } from '../domain/tenant.ts'
import type { Caller, KeyDirectory } from './authenticate.ts'

/**
 * Who may call, and on which terms. The whole directory is replaced at once when the configuration is read again:
 * requests that come later find the new terms, tickets that wait keep the ones they came with.
 */
export class TenantDirectory implements KeyDirectory {
  #callers: ReadonlyMap<string, Caller> = new Map()
  #tenants: ReadonlyMap<string, Tenant> = new Map()

  constructor(tenants: readonly Tenant[], keys: ReadonlyArray<{ readonly key: Key; readonly hash: string }>) {
    this.replace(tenants, keys)
  }

  byHash(digest: string): Caller | undefined {
    return this.#callers.get(digest)
  }

  get tenants(): ReadonlyMap<string, Tenant> {
    return this.#tenants
  }

  replace(tenants: readonly Tenant[], keys: ReadonlyArray<{ readonly key: Key; readonly hash: string }>): void {
    const byId = new Map(tenants.map((tenant) => [tenant.id, tenant]))
    const callers = new Map<string, Caller>()
    for (const { key, hash } of keys) {
      const tenant = byId.get(key.tenantId)
      if (tenant !== undefined) callers.set(hash.replace(/^sha256:/, ''), { tenant, key })
    }
    this.#tenants = byId
    this.#callers = callers
  }
}
