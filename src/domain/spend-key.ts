import type { SpendLimit, SpendPeriod } from './tenant.ts'

/** Longest span of hours: a month of 31 days. */
export const SPEND_HOURS_MAX = 744

/** Largest budget: four million dollars in nano-dollars; sums beyond it are still exact. */
export const SPEND_MAX = 4_000_000_000_000_000

/** What a budget is for: of two with the same key one may take the other's place, and a child's bounds its parent's. */
export function spendKeyOf({ period, isHard, model = '', isPerUser = false }: SpendLimit): string {
  return `${spanName(period)}/${isHard ? 'hard' : 'soft'}/${isPerUser ? 'user' : ''}/${model}`
}

/** `day`, `month`, `24h`. */
export const spanName = (period: SpendPeriod): string => (typeof period === 'object' ? `${period.hours}h` : period)
