import type { BudgetsReported } from '../domain/platform-entry.ts'
import { spanName } from '../domain/spend-key.ts'
import type { Platform } from './platform.ts'

/**
 * Which budgets are nearest to their end? For metrics, every few seconds. Of ten thousand scopes at most, fifty budgets;
 * those of end users are left out, because their names are not for metrics.
 */
const SCOPES_MAX = 10_000
const SHOWN_MAX = 50

export function reportBudgets({ policies, world }: Platform): void {
  const now = world.clock.now()
  const found: BudgetsReported['budgets'][number][] = []
  let scopeCount = 0
  let unknownCount = 0
  for (const [{ noun, id }, quotas] of policies.budgets.quotas()) {
    if (++scopeCount > SCOPES_MAX) break
    for (const quota of quotas) {
      const { limit, leftRatio, isKnown } = quota.view(now)
      if (!isKnown) unknownCount++
      else if (noun !== 'user')
        found.push({ scope: noun, scopeId: id, period: spanName(limit.period), isHard: limit.isHard, leftRatio })
    }
  }
  if (scopeCount === 0) return
  const budgets = found.sort((a, b) => a.leftRatio - b.leftRatio).slice(0, SHOWN_MAX)
  world.journal.record({ kind: 'budgets-reported', at: now, budgets, unknownCount })
}
