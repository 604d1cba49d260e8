import type { Usage } from '../domain/delta.ts'
import type { ModelPrice } from '../domain/ledger.ts'
import type { Outcome } from '../domain/outcome.ts'
import type { Plan } from '../domain/plan.ts'
import { usdText } from '../domain/usd-text.ts'
import type { Spend } from '../policy/budgets/quota.ts'
import { priceOf } from '../policy/money/price-of.ts'
import type { Ticket } from './ticket.ts'

/**
 * What a ticket asks of its budgets, in tokens and at list price: at admission what it uses at most in nine cases of ten,
 * at the end what was sold. The same function says to the ledger what was sold, so that both count the same.
 */

type Counts = Pick<Usage, 'promptTokens' | 'cachedTokens' | 'outputTokens'>

const NOTHING: Counts = Object.freeze({ promptTokens: 0, cachedTokens: 0, outputTokens: 0 })

/** Nobody knows what an engine's cache will have: the whole prompt is taken at its full price. */
export function plannedSpend(price: ModelPrice, { estimate }: Pick<Plan, 'estimate'>): Spend {
  return spendOf(price, estimate.promptTokens, estimate.outputTokensHigh)
}

/** Rounded up: a hold is rather too large. Exact up to 9 million dollars. */
export function spendOf(price: ModelPrice, promptTokens: number, outputTokens: number): Spend {
  const parts = promptTokens * price.inputNano + outputTokens * price.outputNano
  return { tokens: Math.ceil(promptTokens + outputTokens), nano: price.requestNano + Math.ceil(parts / 1_000_000) }
}

/** What is sold of what was used; see `keep-books.ts`. */
export function soldOf(ticket: Ticket, outcome: Outcome, usage: Usage): Counts {
  if (ticket.request.errand !== undefined) return NOTHING
  // An answer that was known already took no engine's time: the price of a request, and of no tokens.
  if (ticket.attempts === 0) return NOTHING
  return outcome === 'failed' ? NOTHING : usage
}

export function settledSpend(ticket: Ticket, outcome: Outcome, usage: Usage): Spend {
  const sold = soldOf(ticket, outcome, usage)
  const isBlockedUnread = outcome === 'blocked' && ticket.attempts === 0
  const isSold = ticket.request.errand === undefined && outcome !== 'failed' && !isBlockedUnread
  return {
    tokens: Math.round(sold.promptTokens) + Math.round(sold.outputTokens),
    nano: isSold ? priceOf(ticket.price, sold) : 0,
  }
}

/** The usage as the client is told it: with its price, where its tenant wants that. */
export function toldUsage(
  ticket: Ticket,
  { outcome, usage }: { readonly outcome: Outcome; readonly usage: Usage },
): Usage {
  if (ticket.request.tenant.tellsPrice !== true) return usage
  return { ...usage, priceUsd: usdText(BigInt(settledSpend(ticket, outcome, usage).nano)) }
}
