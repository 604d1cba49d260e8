import { assert } from '../../base/assert.ts'
import { TokenRatio, type TokenRatioOptions } from './token-ratio.ts'

/**
 * By how much is the token estimate off, for this tenant's prompts to one model?
 *
 * Each tenant has a ratio of its own, learned from its own prompts alone (law L13): whatever one tenant sends, it moves
 * no other tenant's estimates. A tenant that is new to the model starts at the prior, the median over the tenants that
 * are known well, with two more votes for 1. A median is the robust choice (Huber's breakdown point of one half): a
 * single tenant moves it at most to the next tenant's ratio, however far off its own ratio is. The prior is clamped
 * besides, because nobody has checked it for this tenant.
 *
 * Memory is bounded: beyond `tenantsMax` the tenant whose prompts were reported longest ago is forgotten, and starts at
 * the prior when it comes back.
 *
 * Simulations are exact, so their ratios stay at 1 and their requests are not corrected (`Request.isEstimated`).
 *
 * Example: five tenants at 1.2, 1.2, 1.3, 1.3 and a hostile one at 8 → votes 1, 1, 1.2, 1.2, 1.3, 1.3, 8: a new tenant
 * starts at 1.2. Without the hostile one it would start at 1.2 as well.
 */
export const TENANT_RATIOS_DEFAULTS = {
  /** Tenants kept for each model: a ratio is 0.3 kB, so 0.3 MB a model at most. */
  tenantsMax: 1_024,
  /** Votes for the ratio 1: it takes three tenants that agree to move the prior. */
  votesForOne: 2,
  /** The prior's bounds: tokenizers in use differ from the one of the fit by less than a factor of two. */
  priorMin: 0.5,
  priorMax: 2,
  /** Reports after which the prior is computed anew: sorting the votes of all tenants takes 0.1 ms at most. */
  priorEvery: 64,
}

export interface TenantRatiosOptions {
  readonly limits?: Partial<typeof TENANT_RATIOS_DEFAULTS>
  readonly ratio?: Partial<Omit<TokenRatioOptions, 'startRatio'>>
}

/** What an engine reported for one prompt; `estimatedTokens` is the raw estimate of exactly what was sent. */
export interface ReportedPrompt {
  readonly tenantId: string
  readonly estimatedTokens: number
  readonly reportedTokens: number
}

export class TenantRatios {
  readonly #limits: typeof TENANT_RATIOS_DEFAULTS
  readonly #ratioOptions: Partial<TokenRatioOptions>
  /** In the order of their last report: a Map keeps insertion order, so its first key is the oldest. */
  readonly #tenants = new Map<string, TokenRatio>()
  #prior = 1
  #reportsSincePrior = 0

  constructor({ limits = {}, ratio = {} }: TenantRatiosOptions = {}) {
    this.#limits = { ...TENANT_RATIOS_DEFAULTS, ...limits }
    this.#ratioOptions = ratio
    assert(this.#limits.tenantsMax >= 1, 'room for one tenant')
  }

  get tenantCount(): number {
    return this.#tenants.size
  }

  /** Where a tenant starts that is new to the model. */
  get prior(): number {
    return this.#prior
  }

  ratioOf(tenantId: string): number {
    return this.#tenants.get(tenantId)?.ratio ?? this.#prior
  }

  /** Whole tokens, rounded up: planning rather thinks too long than too short. */
  correct(tenantId: string, estimatedTokens: number): number {
    return Math.ceil(estimatedTokens * this.ratioOf(tenantId))
  }

  observe(now: number, { tenantId, ...seen }: ReportedPrompt): void {
    this.#tenantOf(tenantId).observe(now, seen)
    if (++this.#reportsSincePrior >= this.#limits.priorEvery) this.#renewPrior()
  }

  #tenantOf(tenantId: string): TokenRatio {
    let known = this.#tenants.get(tenantId)
    if (known === undefined) {
      known = new TokenRatio({ ...this.#ratioOptions, startRatio: this.#prior })
      if (this.#tenants.size >= this.#limits.tenantsMax) {
        const oldest = this.#tenants.keys().next().value
        if (oldest !== undefined) this.#tenants.delete(oldest)
      }
    } else {
      this.#tenants.delete(tenantId)
    }
    this.#tenants.set(tenantId, known)
    return known
  }

  #renewPrior(): void {
    this.#reportsSincePrior = 0
    const votes = Array<number>(this.#limits.votesForOne).fill(1)
    for (const known of this.#tenants.values()) if (known.isSettled) votes.push(known.ratio)
    const { priorMin, priorMax } = this.#limits
    this.#prior = Math.min(priorMax, Math.max(priorMin, medianOf(votes)))
  }
}

/** Of two in the middle the one nearer to 1: half of the tenants are no majority. */
function medianOf(votes: number[]): number {
  votes.sort((a, b) => a - b)
  const below = votes[(votes.length - 1) >> 1] as number
  const above = votes[votes.length >> 1] as number
  return Math.abs(Math.log(below)) <= Math.abs(Math.log(above)) ? below : above
}
