import type { Outcome } from './outcome.ts'

/**
 * Money and the ledger. All money is whole nano-dollars: a token at a tenth of a dollar per million is 100 of them, and
 * nine million dollars still fit a number exactly. Sums over many lines are `bigint`.
 */
export const NANO_PER_USD = 1_000_000_000

/** What a model's tokens are sold at. Nano-dollars per million tokens, and per request. */
export interface ModelPrice {
  /** Name of the list that it stands in. */
  readonly version: string
  /** Prompt tokens that no cache had. */
  readonly inputNano: number
  readonly cachedNano: number
  readonly outputNano: number
  readonly requestNano: number
}

/** Whom a line of the ledger concerns. */
export interface Payer {
  readonly orgId: string
  readonly tenantId: string
  readonly keyId: string
  /** The end user whom the client named, as it named it; empty when it named none. */
  readonly endUser: string
}

/** What a ticket took of engines, final when the last of its seconds is closed. */
export interface TicketCost {
  readonly costNano: number
  readonly prefillUs: number
  readonly decodeUs: number
  /** Blocks of KV memory × milliseconds. */
  readonly kvBlockMs: number
  /** What it would have cost alone, above its cost: the saving by batching. */
  readonly batchingSavedNano: number
  /** What reading the cached part of its prompt would have cost. */
  readonly cacheSavedNano: number
}

export const NO_COST: TicketCost = Object.freeze({
  costNano: 0,
  prefillUs: 0,
  decodeUs: 0,
  kvBlockMs: 0,
  batchingSavedNano: 0,
  cacheSavedNano: 0,
})

/** One line of the ledger: what one ticket used, is priced at and cost. It is written once. */
export interface Settlement extends Payer, TicketCost {
  readonly ticketId: string
  /** When the ticket ended, in milliseconds since the epoch. */
  readonly atMs: number
  /** The model that was asked for, and the release that answered; empty when none did. */
  readonly model: string
  readonly releaseId: string
  readonly outcome: Outcome | 'crashed'
  /** The whole prompt; `cachedTokens` of it came from a cache. */
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  readonly priceNano: number
  readonly priceVersion: string
}
