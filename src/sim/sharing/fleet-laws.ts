import type { Instant } from '../../base/clock.ts'
import type { Entry } from '../../domain/entry.ts'
import type { RateLimit, Tenant } from '../../domain/tenant.ts'

/**
 * The laws of several gateways over one fleet (docs/architecture/laws.md), checked as the journals of all of them are
 * written, and the figures behind them:
 *
 *   L2  leases of all gateways at a replica ≤ its limit, in sequences; in KV tokens too, but for a gateway's only turn
 *       there, which may be larger than the gateway's part
 *   L4  admitted(w) ≤ R·w + B + (k/N + c)·R·ttl + j·S + u, for every tenant's budgets and every window w
 *
 * The largest admitted(w) − R·w over all windows is a bucket that only fills, and leaks at the budget's rate; a refund
 * empties it. It knows neither slices nor the store.
 */
export interface FleetLawOptions {
  readonly sequencesMaxOf: (replicaId: string) => number
  readonly kvTokensMaxOf: (replicaId: string) => number
  /** Over all gateways: KV tokens of the turns that run there; and turns of the gateway that was granted the last one. */
  readonly kvTokensAt: (replicaId: string) => number
  readonly heldBy: (gateway: string, replicaId: string) => number
  readonly tenants: Iterable<Tenant>
  /** (k/N + c)·ttl in seconds, and j·S as a share of the burst: what faults may add. */
  readonly awayS: number
  readonly joinedRatio: number
  /** False where another way than leases is tried: figures are kept, and no law is broken. */
  readonly isChecked: boolean
}

export interface BudgetFigures {
  /** Most admitted in any window beyond rate · window and burst; the law's bound for it. */
  readonly over: number
  readonly bound: number
  /** Admitted ÷ rate · time. */
  readonly usedRatio: number
}

class Budget {
  readonly #limit: RateLimit
  #level = 0
  #at: Instant = 0
  #fromAt: Instant | undefined
  #admitted = 0
  #largest = 0
  excess = 0

  constructor(limit: RateLimit) {
    this.#limit = limit
  }

  spend(at: Instant, amount: number): void {
    const perUs = this.#limit.perMinute / 60_000_000
    this.#level = Math.max(0, Math.max(0, this.#level - (at - this.#at) * perUs) + amount)
    this.#at = at
    this.#fromAt ??= at
    this.#admitted += amount
    this.#largest = Math.max(this.#largest, amount)
    this.excess = Math.max(this.excess, this.#level)
  }

  boundOf({ awayS, joinedRatio }: Pick<FleetLawOptions, 'awayS' | 'joinedRatio'>): number {
    const { perMinute, burst } = this.#limit
    return burst + (awayS * perMinute) / 60 + joinedRatio * burst + this.#largest
  }

  figures(endAt: Instant, terms: Pick<FleetLawOptions, 'awayS' | 'joinedRatio'>): BudgetFigures {
    const { perMinute, burst } = this.#limit
    const minutes = Math.max(1, endAt - (this.#fromAt ?? endAt)) / 60_000_000
    return {
      over: Math.round(this.excess - burst),
      bound: Math.round(this.boundOf(terms) - burst),
      usedRatio: this.#admitted / Math.max(1, perMinute * minutes),
    }
  }
}

interface TenantBudgets {
  readonly tokens: Budget | undefined
  readonly requests: Budget | undefined
}

export class FleetLaws {
  readonly #options: FleetLawOptions
  readonly #held = new Map<string, number>()
  readonly #budgets = new Map<string, TenantBudgets>()
  readonly #reserved = new Map<string, number>()
  /** Most in flight ÷ limit, over all replicas. */
  inFlightOfLimit = 0
  kvOfLimit = 0
  readonly broken: Array<{ readonly law: 'L2' | 'L4'; readonly ticketId: string; readonly what: string }> = []

  constructor(options: FleetLawOptions) {
    this.#options = options
    for (const { id, allowance } of options.tenants) {
      const tokens = allowance.tokens && new Budget(allowance.tokens)
      const requests = allowance.requests && new Budget(allowance.requests)
      if (tokens !== undefined || requests !== undefined) this.#budgets.set(id, { tokens, requests })
    }
  }

  take(entry: Entry, gateway: string): void {
    if (entry.kind === 'granted') this.#grant(entry.ticketId, entry.replicaId, gateway)
    else if (entry.kind === 'attempt-ended') this.#move(entry.replicaId, -1)
    else if (entry.kind === 'admitted') this.#admit(entry)
    else if (entry.kind === 'settled') this.#settle(entry)
  }

  budgets(endAt: Instant): Record<string, BudgetFigures> {
    const figures: Record<string, BudgetFigures> = {}
    for (const [tenantId, { tokens, requests }] of this.#budgets) {
      if (tokens !== undefined) figures[`${tenantId} tokens`] = tokens.figures(endAt, this.#options)
      if (requests !== undefined) figures[`${tenantId} requests`] = requests.figures(endAt, this.#options)
    }
    return figures
  }

  #move(replicaId: string, by: number): number {
    const count = (this.#held.get(replicaId) ?? 0) + by
    this.#held.set(replicaId, count)
    return count
  }

  #grant(ticketId: string, replicaId: string, gateway: string): void {
    const { sequencesMaxOf, kvTokensMaxOf, kvTokensAt, heldBy } = this.#options
    const count = this.#move(replicaId, 1)
    const max = sequencesMaxOf(replicaId)
    this.inFlightOfLimit = Math.max(this.inFlightOfLimit, count / max)
    if (count > max)
      this.#break('L2', ticketId, `${replicaId} has ${count} leases of all gateways, and room for ${max}`)
    const kvTokens = kvTokensAt(replicaId)
    const kvMax = kvTokensMaxOf(replicaId)
    this.kvOfLimit = Math.max(this.kvOfLimit, kvTokens / kvMax)
    if (kvTokens > kvMax && heldBy(gateway, replicaId) > 1)
      this.#break('L2', ticketId, `${replicaId} is to hold ${kvTokens} KV tokens of all gateways, and has ${kvMax}`)
  }

  #admit({ at, tenantId, ticketId, reservedTokens }: Extract<Entry, { kind: 'admitted' }>): void {
    const budgets = this.#budgets.get(tenantId)
    if (budgets === undefined || reservedTokens === undefined) return
    this.#reserved.set(ticketId, reservedTokens)
    this.#spend(budgets.tokens, at, reservedTokens, { tenantId, ticketId, noun: 'tokens' })
    this.#spend(budgets.requests, at, 1, { tenantId, ticketId, noun: 'requests' })
  }

  #spend(
    budget: Budget | undefined,
    at: Instant,
    amount: number,
    of: { tenantId: string; ticketId: string; noun: string },
  ): void {
    if (budget === undefined) return
    budget.spend(at, amount)
    const bound = budget.boundOf(this.#options)
    if (budget.excess <= bound) return
    const what = `${of.tenantId} was admitted ${Math.round(budget.excess)} ${of.noun} beyond its rate in one window`
    this.#break('L4', of.ticketId, `${what}, and the bound is ${Math.round(bound)}`)
  }

  #settle({ at, tenantId, ticketId, usage, outcome, attempts }: Extract<Entry, { kind: 'settled' }>): void {
    const reserved = this.#reserved.get(ticketId)
    const budgets = this.#budgets.get(tenantId)
    if (reserved === undefined || budgets === undefined) return
    this.#reserved.delete(ticketId)
    const used = outcome === 'failed' ? 0 : usage.promptTokens + usage.outputTokens
    // What was used beyond the reservation is the law's u.
    if (used < reserved) budgets.tokens?.spend(at, used - reserved)
    if (attempts === 0 && reserved > 0) budgets.requests?.spend(at, -1)
  }

  #break(law: 'L2' | 'L4', ticketId: string, what: string): void {
    if (this.#options.isChecked && this.broken.length < BROKEN_MAX) this.broken.push({ law, ticketId, what })
  }
}

/** More of one kind say nothing new. */
const BROKEN_MAX = 20
