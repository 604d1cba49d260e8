import type { Usage } from '../domain/delta.ts'
import type { ModelPrice, Payer, Settlement, TicketCost } from '../domain/ledger.ts'
import type { Outcome } from '../domain/outcome.ts'

/**
 * Who used what, and who pays? `Books` is what the story writes to; `LedgerStore` is the table behind it. Types only.
 *
 * The walk of a ticket through the books:
 *
 *   1. `opened` at its first turn: from here a crash is somebody's cost.
 *   2. `settled` at its end, with what was used and what that is sold at.
 *   3. `costed` when the last of its seconds is closed, at most a few seconds later. Its ledger line is written then.
 *
 * All three return at once and never throw. They are on the disk one group commit later, before anything else has them.
 */
export interface Books {
  /** Whether costs are made from engine time: then every ticket that ran is `costed`. */
  readonly isCosting: boolean
  opened(line: OpenedLine): void
  settled(line: SettledLine): void
  costed(ticketId: string, cost: TicketCost): void
}

export interface OpenedLine extends Payer {
  readonly ticketId: string
  readonly model: string
  readonly releaseId: string
  readonly inputTokens: number
  readonly price: ModelPrice
  /** The platform's own errands are sold to nobody. */
  readonly isSold: boolean
}

export interface SettledLine extends Payer {
  readonly ticketId: string
  readonly atMs: number
  readonly model: string
  readonly releaseId: string
  readonly outcome: Outcome
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  readonly price: ModelPrice
  /** What is sold of it: less than what was used where an answer was known already, or an attempt is nobody's fault. */
  readonly priced: Pick<Usage, 'promptTokens' | 'cachedTokens' | 'outputTokens'>
  /** A `costed` will follow. */
  readonly isCostOpen: boolean
}

/** Sums of a scope: what was sold. Tokens of answers that were lost are in no balance. */
export interface Balance {
  /** `org:NAME`, `tenant:NAME`, `key:NAME`, `model:TENANT/NAME`, `user:TENANT/NAME`. */
  readonly scope: string
  readonly requests: number
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  readonly priceNano: bigint
  readonly costNano: bigint
}

export interface HourBalance extends Balance {
  /** Hours since the epoch. */
  readonly hour: number
}

/** By what usage is grouped. */
export type UsageDimension = 'org' | 'tenant' | 'key' | 'model' | 'day' | 'hour'

export interface UsageAsk {
  /** Hours since the epoch: from the first, up to and without the last. */
  readonly fromHour: number
  readonly toHour: number
  readonly by: readonly UsageDimension[]
  readonly orgId?: string | undefined
  readonly tenantId?: string | undefined
  readonly keyId?: string | undefined
  readonly model?: string | undefined
  readonly rowsMax: number
  /** Groups that a page before this one had; none if absent. */
  readonly rowsSkip?: number | undefined
}

/** One group. A dimension that was not asked for is undefined. */
export interface UsageRow extends Omit<Balance, 'scope'> {
  readonly orgId: string | undefined
  readonly tenantId: string | undefined
  readonly keyId: string | undefined
  readonly model: string | undefined
  /** First hour of the group's day or hour, since the epoch. */
  readonly hour: number | undefined
  readonly prefillUs: bigint
  readonly decodeUs: bigint
  readonly kvBlockMs: bigint
  readonly batchingSavedNano: bigint
  readonly cacheSavedNano: bigint
}

export interface LedgerStore {
  /** Writes every line once, however often it is given; answers how many were new. */
  write(lines: readonly Settlement[]): Promise<number>
  /** What these scopes used from an hour on, up to and without another: scopes without any are left out. */
  balances(scopes: readonly string[], fromHour: number, toHour: number): Promise<readonly Balance[]>
  /** The same, each hour by itself. */
  hourlyBalances(scopes: readonly string[], fromHour: number, toHour: number): Promise<readonly HourBalance[]>
  /** Groups in the order of their dimensions. */
  usage(ask: UsageAsk): Promise<readonly UsageRow[]>
  find(ticketId: string): Promise<Settlement | undefined>
  /** Removes single lines that ended before; sums stay. Answers how many went. */
  prune(beforeMs: number, linesMax: number): Promise<number>
}
