import { NANO_PER_USD } from '../domain/ledger.ts'
import type { SpendLimit } from '../domain/tenant.ts'
import type { TenantConfig } from './schema.ts'

type BudgetConfig = NonNullable<TenantConfig['allowance']['budgets']>[number]

/** A budget as the policies know it: dollars become whole nano-dollars, marks rise. */
export function toSpendLimit({
  period = 'month',
  hours,
  usd,
  tokens,
  kind,
  marks,
  model,
  perUser,
}: BudgetConfig): SpendLimit {
  return {
    period: hours === undefined ? period : { hours },
    ...(usd !== undefined && { nanoMax: Math.max(1, Math.round(usd * NANO_PER_USD)) }),
    ...(tokens !== undefined && { tokensMax: tokens }),
    isHard: kind === 'hard',
    marks: marks.toSorted((a, b) => a - b),
    ...(model !== undefined && { model }),
    ...(perUser && { isPerUser: true }),
  }
}
