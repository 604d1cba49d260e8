import { keyScope, modelScope, orgScope, tenantScope, userScope } from '../domain/ledger-scope.ts'
import type { Request } from '../domain/request.ts'
import { type SharePath, sharePathOf } from '../domain/share-path.ts'
import type { Allowance, Key, SpendLimit, Tenant } from '../domain/tenant.ts'
import type { Scope } from '../policy/budgets/scope-budget.ts'

/**
 * Where does a request's key stand in the tree of shares, and whose budgets does it spend from? Asked several times for
 * every request, and the same until the configuration changes: then tenants and keys are new objects.
 *
 * A tenant's budgets for one model, and for each of its end users, are scopes of their own: `scopesOf` adds those that a
 * request has. An org's budgets for models and users hold for each of its tenants by itself.
 *
 * Bound: one entry for each key object that is still referenced by the directory or by a live request; the entry goes
 * with the key.
 */
export interface Standing {
  readonly share: SharePath
  readonly scopes: readonly Scope[]
  /** By model: the scope of the tenant's budgets for it. */
  readonly models: ReadonlyMap<string, Scope>
  /** Budgets that each end user of the tenant has. */
  readonly userBudgets: readonly SpendLimit[]
}

type Payer = Pick<Request, 'tenant' | 'key'>

const NO_ALLOWANCE: Allowance = Object.freeze({})

export class Standings {
  readonly #known = new WeakMap<Key, Standing & { readonly tenant: Tenant }>()

  of({ tenant, key }: Payer): Standing {
    const known = this.#known.get(key)
    if (known?.tenant === tenant) return known
    const { orgId, orgAllowance, allowance } = tenant
    const standing: Standing & { readonly tenant: Tenant } = {
      tenant,
      share: sharePathOf(tenant, key),
      scopes: [
        // An org's administrator makes as many tenants as it likes: what bounds the org is spent by all of them together.
        ...(orgAllowance === undefined ? [] : [scopeOf('org', orgId, orgScope(orgId), orgAllowance)]),
        {
          ...scopeOf('tenant', tenant.id, tenantScope(tenant.id), allowance, orgAllowance),
          isStrict: tenant.isStrict ?? false,
        },
        scopeOf('key', `${tenant.id}/${key.id}`, keyScope(key.id), key.allowance, allowance),
      ],
      models: modelScopesOf(tenant),
      userBudgets: budgetsOf(tenant).filter(({ isPerUser }) => isPerUser === true),
    }
    this.#known.set(key, standing)
    return standing
  }

  /** Every scope that a request spends from. */
  scopesOf(request: Payer & Pick<Request, 'model' | 'endUser'>): readonly Scope[] {
    const { scopes, models, userBudgets } = this.of(request)
    if (models.size === 0 && userBudgets.length === 0) return scopes
    const { model, endUser = '', tenant } = request
    const ofModel = models.get(model)
    const ofUser: Scope[] =
      userBudgets.length === 0 || endUser === ''
        ? []
        : [
            {
              id: `${tenant.id}/${endUser}`,
              noun: 'user',
              allowance: NO_ALLOWANCE,
              quotas: userBudgets,
              account: userScope(tenant.id, endUser),
            },
          ]
    return [...scopes, ...(ofModel === undefined ? [] : [ofModel]), ...ofUser]
  }
}

/** `above`: budgets that came down from there are counted there already. */
function scopeOf(noun: Scope['noun'], id: string, account: string, allowance: Allowance, above?: Allowance): Scope {
  const { budgets = [] } = allowance
  const own = budgets.filter(
    (budget) => budget.model === undefined && budget.isPerUser !== true && above?.budgets?.includes(budget) !== true,
  )
  return { id, noun, allowance, ...(own.length > 0 && { quotas: own, account }) }
}

const budgetsOf = ({ allowance, orgAllowance }: Tenant): readonly SpendLimit[] => [
  ...new Set([...(orgAllowance?.budgets ?? []), ...(allowance.budgets ?? [])]),
]

function modelScopesOf(tenant: Tenant): ReadonlyMap<string, Scope> {
  const byModel = Map.groupBy(
    budgetsOf(tenant).filter(({ model, isPerUser }) => model !== undefined && isPerUser !== true),
    ({ model = '' }) => model,
  )
  return new Map(
    Array.from(byModel, ([model, quotas]) => [
      model,
      {
        id: `${tenant.id}/${model}`,
        noun: 'model',
        allowance: NO_ALLOWANCE,
        quotas,
        account: modelScope(tenant.id, model),
      },
    ]),
  )
}
