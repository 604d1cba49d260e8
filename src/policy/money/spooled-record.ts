import type { ModelPrice, Payer, TicketCost } from '../../domain/ledger.ts'
import type { Outcome } from '../../domain/outcome.ts'

/**
 * How do the books' lines lie in the spool? As JSON with its fields in a fixed order, so that the same record has the
 * same bytes. Records of other kinds lie between them (the audit's); they are no business of the ledger.
 */
export type SpooledRecord = StartedRecord | OpenedRecord | SettledRecord | CostedRecord

/** A process began to write here: whatever was open before is lost. */
export interface StartedRecord {
  readonly kind: 'started'
  readonly atMs: number
}

export interface OpenedRecord extends Payer {
  readonly kind: 'opened'
  readonly atMs: number
  readonly ticketId: string
  readonly model: string
  readonly releaseId: string
  readonly inputTokens: number
  readonly price: ModelPrice
  readonly paysCrashes: boolean
}

export interface SettledRecord extends Payer {
  readonly kind: 'settled'
  readonly atMs: number
  readonly ticketId: string
  readonly model: string
  readonly releaseId: string
  readonly outcome: Outcome
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  readonly priceNano: number
  readonly priceVersion: string
  readonly isCostOpen: boolean
}

export interface CostedRecord extends TicketCost {
  readonly kind: 'costed'
  readonly ticketId: string
}

export function writeRecord(record: SpooledRecord): string {
  return JSON.stringify({ v: 1, ...record })
}

const KINDS: ReadonlySet<string> = new Set<SpooledRecord['kind']>(['started', 'opened', 'settled', 'costed'])

/** The record; undefined when the text is none of the ledger's. */
export function readRecord(text: string): SpooledRecord | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || !('kind' in value)) return undefined
  return KINDS.has(String(value.kind)) ? (value as SpooledRecord) : undefined
}
