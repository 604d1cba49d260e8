import { spendKeyOf } from '../domain/spend-key.ts'
import type { Problem } from './explain.ts'
import type { Settings, TenantConfig } from './schema.ts'
import { toSpendLimit } from './to-spend-limit.ts'

/** Budgets that are good by themselves and wrong where they stand. */
export function checkBudgets({ orgs, tenants, models }: Settings): Problem[] {
  const names = new Set(models.map(({ name }) => name))
  const check = (allowance: TenantConfig['allowance'], path: readonly (string | number)[], isKey = false): Problem[] =>
    (allowance.budgets ?? []).flatMap((budget, i, all) => {
      const at = [...path, 'allowance', 'budgets', i]
      const problems: Problem[] = []
      const say = (text: string, ...where: string[]): void => void problems.push({ path: [...at, ...where], text })
      if (budget.usd === undefined && budget.tokens === undefined) say('has no amount. Set usd, tokens or both')
      if (budget.period !== undefined && budget.hours !== undefined) say('has a period and hours. Keep one of them')
      if (budget.model !== undefined && budget.perUser) say('is for one model and per user. Make two budgets of it')
      if (isKey && (budget.model !== undefined || budget.perUser))
        say('is for a model or per user, which keys do not have. Give it to the tenant')
      if (budget.model !== undefined && !names.has(budget.model))
        say(`is "${budget.model}", but there is no such model`, 'model')
      const key = spendKeyOf(toSpendLimit(budget))
      if (all.slice(0, i).some((other) => spendKeyOf(toSpendLimit(other)) === key))
        say('is for the same as one before it. Make one of them')
      return problems
    })
  return [
    ...orgs.flatMap(({ allowance }, i) => check(allowance, ['orgs', i])),
    ...tenants.flatMap(({ allowance, keys }, i) => [
      ...check(allowance, ['tenants', i]),
      ...keys.flatMap((key, j) => check(key.allowance, ['tenants', i, 'keys', j], true)),
    ]),
  ]
}
