import type { TicketCost } from '../domain/ledger.ts'
import type { Books, OpenedLine, SettledLine } from '../lifecycle/ledger-ports.ts'
import { priceOf } from '../policy/money/price-of.ts'
import { type SpooledRecord, writeRecord } from '../policy/money/spooled-record.ts'

export interface SpoolBooksOptions {
  readonly append: (text: string) => number | undefined
  /** Milliseconds since the epoch. */
  readonly nowMs: () => number
  /** Tenants pay for the prompts of answers that a crash lost; else the platform does. */
  readonly doTenantsPayCrashes: boolean
  readonly isCosting: boolean
}

/** The books, written to a spool. Whatever the spool does not take is counted there, and changes no answer. */
export class SpoolBooks implements Books {
  readonly isCosting: boolean
  readonly #options: SpoolBooksOptions

  constructor(options: SpoolBooksOptions) {
    this.isCosting = options.isCosting
    this.#options = options
    this.#write({ kind: 'started', atMs: options.nowMs() })
  }

  opened(line: OpenedLine): void {
    const { ticketId, orgId, tenantId, keyId, endUser, model, releaseId, inputTokens, price, isSold } = line
    const paysCrashes = isSold && this.#options.doTenantsPayCrashes
    const payer = { orgId, tenantId, keyId, endUser }
    const atMs = this.#options.nowMs()
    this.#write({ kind: 'opened', atMs, ticketId, ...payer, model, releaseId, inputTokens, price, paysCrashes })
  }

  settled(line: SettledLine): void {
    const { atMs, ticketId, orgId, tenantId, keyId, endUser, model, releaseId, outcome } = line
    const { inputTokens, cachedTokens, outputTokens, priced, price, isCostOpen } = line
    this.#write({
      kind: 'settled',
      atMs,
      ticketId,
      orgId,
      tenantId,
      keyId,
      endUser,
      model,
      releaseId,
      outcome,
      inputTokens,
      cachedTokens,
      outputTokens,
      priceNano: priceOf(price, priced),
      priceVersion: price.version,
      isCostOpen,
    })
  }

  costed(ticketId: string, cost: TicketCost): void {
    this.#write({ kind: 'costed', ticketId, ...cost })
  }

  #write(record: SpooledRecord): void {
    this.#options.append(writeRecord(record))
  }
}
