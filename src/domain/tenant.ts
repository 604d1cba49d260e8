/**
 * Who is asking, and what were they promised? A tenant is the party we isolate from others; a key is a credential
 * that names one. Tenants belong to an org, which is the top of the fairness tree: org → tenant → key.
 */

/** Who the platform's own work is done for: it has no key, and no tenant of a configuration may have its name. */
export const PLATFORM_TENANT_ID = 'spillway'

/** Priority class. Within one tenant's share `interactive` goes first; `offline` takes what nobody else wants. */
export type Band = 'interactive' | 'standard' | 'offline'

export const BANDS: readonly Band[] = ['interactive', 'standard', 'offline']

/** The promise: how soon the first token, how soon each next one, how soon the whole answer. */
export interface Slo {
  readonly name: string
  readonly ttftUs: number
  readonly interTokenUs: number
  readonly totalUs: number
  /** A running answer ends when the time for the whole is over; else it may be late. */
  readonly isCutOff?: boolean
}

/** A rate with a burst: what a token bucket needs to know. */
export interface RateLimit {
  readonly perMinute: number
  readonly burst: number
}

/** What one scope (a tenant or a key) may use. An absent limit is no limit. */
export interface Allowance {
  readonly requests?: RateLimit
  readonly tokens?: RateLimit
  readonly concurrencyMax?: number
}

/** On which terms answers are kept and given again to whoever asks nearly the same. */
export interface AnswerCacheTerms {
  /** Cosine of two questions, 0 … 1: from here on they are the same. */
  readonly similarityMin: number
  /** Answers that are meant to differ each time are not kept. */
  readonly temperatureMax: number
  readonly ttlUs: number
  /** Share of the known answers that are made anew all the same, to see whether they were right. */
  readonly checkRatio: number
}

export interface Tenant {
  readonly id: string
  readonly orgId: string
  readonly weight: number
  /** Of its org, among orgs; absent for a tenant that is an org of its own. */
  readonly orgWeight?: number
  readonly slo: Slo
  readonly bands: readonly Band[]
  readonly allowance: Allowance
  /** A bid is clamped to this: money orders a tenant's own lane and nothing else. */
  readonly bidMax: number
  /** `degrade`: quality goes before answers do. `reject`: this tenant would rather be refused than be served less. */
  readonly contract: 'degrade' | 'reject'
  /** How long one of its tickets may wait for a turn. */
  readonly queueUsMax: number
  /** Absent: none of its answers is kept. */
  readonly answerCache?: AnswerCacheTerms
}

export interface Key {
  readonly id: string
  readonly tenantId: string
  readonly weight: number
  readonly allowance: Allowance
}
