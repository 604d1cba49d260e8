import type { Instant } from '../base/clock.ts'
import type { Entry } from '../domain/entry.ts'
import type { RateLimit, Tenant } from '../domain/tenant.ts'
import type { RateLimitView } from '../policy/budgets/budgets.ts'

/**
 * Law L4 in simulations: are a tenant's buckets where its tickets left them?
 *
 * A second account, kept from the journal alone: each admission takes what the entry says was reserved, each ending
 * gives back what was not used, time refills. At every window the account is held against what the platform's budgets
 * say is left. A refund that is forgotten, a reservation that leaks and a charge that is made twice all show as a
 * difference that grows; a difference of a token is rounding.
 *
 * What the law does not see: budgets of keys, quotas of calendar periods, and runs with several gateways, each of which
 * has budgets of its own.
 *
 * Example: 600 tokens a minute, burst 1,000. Admitted with 300 reserved: 700 left. Settled a second later with 100 used:
 * 700 + 10 + 200 = 910.
 */
interface Account {
  readonly limit: RateLimit
  left: number
  at: Instant
}

interface Accounts {
  readonly tokens: Account | undefined
  readonly requests: Account | undefined
}

const US_PER_MINUTE = 60_000_000

/** Tokens of difference that rounding may leave. */
const DIFFERENCE_MAX = 1

export class BudgetLaw {
  readonly #byTenant = new Map<string, Accounts>()
  /** Tokens held for each live ticket that holds any. */
  readonly #held = new Map<string, number>()

  constructor(tenants: Iterable<Tenant>, now: Instant) {
    for (const { id, allowance } of tenants) {
      const account = (limit: RateLimit | undefined): Account | undefined =>
        limit && { limit, left: limit.burst, at: now }
      const accounts = { tokens: account(allowance.tokens), requests: account(allowance.requests) }
      if (accounts.tokens !== undefined || accounts.requests !== undefined) this.#byTenant.set(id, accounts)
    }
  }

  take(entry: Entry): void {
    if (this.#byTenant.size === 0) return
    if (entry.kind === 'admitted') this.#hold(entry.at, entry.tenantId, entry.ticketId, entry.reservedTokens)
    else if (entry.kind === 'answer-looked-up' && entry.outcome === 'hit')
      this.#hold(entry.at, entry.tenantId, entry.ticketId, 0)
    else if (entry.kind === 'settled') this.#settle(entry)
  }

  /** Every tenant whose buckets are not where its tickets left them. */
  differences(now: Instant, viewOf: (tenantId: string) => RateLimitView): string[] {
    const found: string[] = []
    for (const [tenantId, accounts] of this.#byTenant) {
      const view = viewOf(tenantId)
      for (const noun of ['tokens', 'requests'] as const) {
        const account = accounts[noun]
        const remaining = view[noun]?.remaining
        if (account === undefined || remaining === undefined) continue
        const left = Math.max(0, leftAt(account, now))
        if (Math.abs(left - remaining) > DIFFERENCE_MAX)
          found.push(`${tenantId} has ${remaining} ${noun} left, and its tickets leave ${Math.round(left)}`)
      }
    }
    return found
  }

  #hold(at: Instant, tenantId: string, ticketId: string, reservedTokens: number | undefined): void {
    const accounts = this.#byTenant.get(tenantId)
    if (accounts === undefined || reservedTokens === undefined) return
    this.#held.set(ticketId, reservedTokens)
    move(accounts.tokens, at, -reservedTokens)
    move(accounts.requests, at, -1)
  }

  #settle({ at, tenantId, ticketId, attempts, usage, outcome, isCounted }: Extract<Entry, { kind: 'settled' }>): void {
    const held = this.#held.get(ticketId)
    const accounts = this.#byTenant.get(tenantId)
    if (isCounted === true) move(accounts?.requests, at, -1)
    if (held === undefined || accounts === undefined) return
    this.#held.delete(ticketId)
    // The platform bears the tokens of a ticket that failed.
    const used = outcome === 'failed' ? 0 : usage.promptTokens + usage.outputTokens
    move(accounts.tokens, at, held - used)
    // A ticket that never ran gives its request back too. One that was answered from the cache holds no tokens.
    // One that a screen blocked keeps it.
    if (attempts === 0 && held > 0 && outcome !== 'blocked') move(accounts.requests, at, 1)
  }
}

function leftAt({ left, at, limit }: Account, now: Instant): number {
  return Math.min(limit.burst, left + ((now - at) * limit.perMinute) / US_PER_MINUTE)
}

/** Debt is bounded by one burst, as in the bucket. */
function move(account: Account | undefined, at: Instant, amount: number): void {
  if (account === undefined) return
  const { burst } = account.limit
  account.left = Math.max(-burst, Math.min(burst, leftAt(account, at) + amount))
  account.at = at
}
