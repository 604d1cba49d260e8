import type { Request } from '../domain/request.ts'
import { type SharePath, sharePathOf } from '../domain/share-path.ts'
import type { Allowance, Key, Tenant } from '../domain/tenant.ts'
import type { Scope } from '../policy/budgets/scope-budget.ts'

/**
 * Where does a request's key stand in the tree of shares, and whose budgets does it spend from? Asked several times for
 * every request, and the same until the configuration changes: then tenants and keys are new objects.
 *
 * Bound: one entry for each key object that is still referenced by the directory or by a live request; the entry goes
 * with the key.
 */
export interface Standing {
  readonly share: SharePath
  readonly scopes: readonly Scope[]
}

/** An org's administrator makes as many tenants as it likes: what bounds the org is spent by all of them together. */
const orgScope = (id: string, allowance: Allowance): Scope => ({ id, noun: 'org', allowance })

export class Standings {
  readonly #known = new WeakMap<Key, Standing & { readonly tenant: Tenant }>()

  of({ tenant, key }: Pick<Request, 'tenant' | 'key'>): Standing {
    const known = this.#known.get(key)
    if (known?.tenant === tenant) return known
    const standing: Standing & { readonly tenant: Tenant } = {
      tenant,
      share: sharePathOf(tenant, key),
      scopes: [
        ...(tenant.orgAllowance === undefined ? [] : [orgScope(tenant.orgId, tenant.orgAllowance)]),
        { id: tenant.id, noun: 'tenant', allowance: tenant.allowance, isStrict: tenant.isStrict ?? false },
        { id: `${tenant.id}/${key.id}`, noun: 'key', allowance: key.allowance },
      ],
    }
    this.#known.set(key, standing)
    return standing
  }
}
