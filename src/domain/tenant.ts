import type { StoringTerms } from './archive.ts'
import type { AuditTerms } from './audit-event.ts'
import type { ScreeningTerms } from './screening.ts'

/**
 * A tenant is a party isolated from others, with its promises; a key is a credential that names a tenant. Tenants
 * belong to an org, which is the top of the fairness tree: org → tenant → key.
 */

/** The tenant of the platform's own work: it has no key, and no configured tenant may have its name. */
export const PLATFORM_TENANT_ID = 'spillway'

/**
 * Priority class. Within one tenant's share `interactive` goes first; `offline` uses capacity that no other band wants.
 */
export type Band = 'interactive' | 'standard' | 'offline'

export const BANDS: readonly Band[] = ['interactive', 'standard', 'offline']

/**
 * The bounds of every weight, of orgs, tenants and keys. A share of weight w waits for cost / w after its turn: at a
 * thousandth, rounds still count exactly for longer than a process runs; a weight near 0 would wait for ever, and the
 * order of turns with it.
 */
export const WEIGHT_MIN = 0.001
export const WEIGHT_MAX = 1_000_000

/** The promise: time to the first token, time between tokens, time of the whole answer. */
export interface Slo {
  readonly name: string
  readonly ttftUs: number
  readonly interTokenUs: number
  readonly totalUs: number
  /** A running answer ends when its total time is over; otherwise it may be late. */
  readonly isCutOff?: boolean
}

/** A rate with a burst: what a token bucket needs to know. */
export interface RateLimit {
  readonly perMinute: number
  readonly burst: number
}

/** What one scope (an org, a tenant or a key) may use. An absent limit means unlimited. */
export interface Allowance {
  readonly requests?: RateLimit
  readonly tokens?: RateLimit
  readonly concurrencyMax?: number
  /** Budgets of money and tokens; all of them hold. */
  readonly budgets?: readonly SpendLimit[]
}

/** A span of time that a budget is for: a day or a month of the calendar (UTC), or the last hours. */
export type SpendPeriod = 'day' | 'month' | { readonly hours: number }

/** One budget: what may be spent in a period. At least one of the two maxima is there. */
export interface SpendLimit {
  readonly period: SpendPeriod
  /** Nano-dollars at list price. */
  readonly nanoMax?: number
  /** Prompt and output tokens. */
  readonly tokensMax?: number
  /** A hard one refuses what does not fit; a soft one only tells. */
  readonly isHard: boolean
  /** Shares of the budget at which the journal is told, ascending. */
  readonly marks: readonly number[]
  /** Only what this model uses, for each tenant by itself. */
  readonly model?: string
  /** For each end user of a tenant by itself. */
  readonly isPerUser?: boolean
}

/** Terms on which answers are stored and repeated for nearly the same question. */
export interface AnswerCacheTerms {
  /** Cosine of two questions, 0 … 1, from which on they count as the same. */
  readonly similarityMin: number
  /** Answers at a higher temperature are not stored: they are meant to differ. */
  readonly temperatureMax: number
  readonly ttlUs: number
  /** Share of the cached answers that are generated again, to measure how often the cached one is right. */
  readonly checkRatio: number
}

export interface Tenant {
  readonly id: string
  readonly orgId: string
  readonly weight: number
  /** Weight of the tenant's org among orgs; absent: the org weighs as much as its tenants that have something waiting. */
  readonly orgWeight?: number
  readonly slo: Slo
  readonly bands: readonly Band[]
  readonly allowance: Allowance
  /** What all tenants of the org may use together; absent: as much as each of them may. The same object for all. */
  readonly orgAllowance?: Allowance
  /** Bids are clamped to this. A bid orders the tenant's own lane and nothing else. */
  readonly bidMax: number
  /** `degrade`: quality is reduced before requests are refused. `reject`: requests are refused rather than degraded. */
  readonly contract: 'degrade' | 'reject'
  /** Longest wait of a ticket of this tenant for a turn. */
  readonly queueUsMax: number
  /** Who else may find this tenant's prompts in engines' prefix caches: its org, or all who share. Absent: nobody. */
  readonly prefixCache?: 'org' | 'shared'
  /** Absent: no answer of this tenant is repeated. */
  readonly answerCache?: AnswerCacheTerms
  /** Absent: no answer of this tenant is archived, whatever its clients ask for. */
  readonly storing?: StoringTerms
  /** Refused rather than served on limits that other gateways may have given away (`sharing.forgetMs`). */
  readonly isStrict?: boolean
  /** Absent: nothing of this tenant is screened. */
  readonly screening?: ScreeningTerms
  /** Answers tell what they are sold at. */
  readonly tellsPrice?: boolean
  /** What the audit does for it otherwise than for all. */
  readonly audit?: Partial<AuditTerms>
}

export interface Key {
  readonly id: string
  readonly tenantId: string
  readonly weight: number
  readonly allowance: Allowance
}
