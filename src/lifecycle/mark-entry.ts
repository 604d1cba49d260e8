import { type Instant, US_PER_MS } from '../base/clock.ts'
import type { BudgetMarked } from '../domain/platform-entry.ts'
import { spanName } from '../domain/spend-key.ts'
import type { PassedMark } from '../policy/budgets/scope-budget.ts'

/** What the journal says of a budget that has come to one of its marks. */
export function markEntry(now: Instant, { scope, mark, quota }: PassedMark): BudgetMarked {
  const { limit, used, startsAt, resetUs } = quota.view(now)
  const period = spanName(limit.period)
  return {
    kind: 'budget-marked',
    at: now,
    id: `${scope.noun}:${scope.id}/${period}/${limit.isHard ? 'hard' : 'soft'}/${Math.floor(startsAt / US_PER_MS)}/${mark}`,
    scope: scope.noun,
    scopeId: scope.id,
    period,
    isHard: limit.isHard,
    mark,
    usedNano: used.nano,
    nanoMax: limit.nanoMax,
    usedTokens: used.tokens,
    tokensMax: limit.tokensMax,
    resetsAt: now + resetUs,
  }
}
