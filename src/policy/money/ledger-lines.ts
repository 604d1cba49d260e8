import type { Instant } from '../../base/clock.ts'
import { isLineTicket } from '../../domain/job.ts'
import { NO_COST, type Payer, type Settlement, type TicketCost } from '../../domain/ledger.ts'
import { priceOf } from './price-of.ts'
import type { OpenedRecord, SettledRecord, SpooledRecord } from './spooled-record.ts'

/**
 * Which records of a spool make which lines of the ledger? Records come in their order; a line comes out when its
 * ticket is through: settled, and its cost known.
 *
 *   opened ─▶ settled ─▶ costed ─▶ line
 *      └──────── started ────────▶ line `crashed`     the process that opened it is gone
 *
 * The same records give the same lines, however often they are read: after a crash the reader begins behind its last
 * acknowledged record, and lines that were written before are written again, which the ledger does not count. A record
 * may be acknowledged when no ticket before it is still open: `acknowledgeable` says up to where.
 *
 * A cost that does not come (the second's owner was lost with its accounts) is not waited for longer than
 * `costPatienceUs`: the line is written without it, and the bill has it as `late` or `crashed`. Then a cost that comes
 * after all is dropped, because a line is written once.
 */
export const LEDGER_LINES_DEFAULTS = {
  costPatienceUs: 60_000_000,
  /** Tickets that may be open in one process; beyond, the oldest is closed as crashed. */
  openMax: 262_144,
} as const

interface OpenTicket {
  readonly seq: number
  readonly opened: OpenedRecord | undefined
  settled: SettledRecord | undefined
  /** When its patience began, for those that wait for their cost. */
  since: Instant
}

export class LedgerLines {
  /** In the order of their first records: the first is the oldest. */
  readonly #open = new Map<string, OpenTicket>()
  #lastSeq = 0

  /** Takes the next record, and gives the lines that it completes. */
  take(now: Instant, seq: number, record: SpooledRecord): readonly Settlement[] {
    this.#lastSeq = seq
    switch (record.kind) {
      case 'started':
        return this.#closeAll(record.atMs)
      case 'opened': {
        this.#open.set(record.ticketId, { seq, opened: record, settled: undefined, since: now })
        return this.#open.size > LEDGER_LINES_DEFAULTS.openMax ? this.#closeOldest(record.atMs) : []
      }
      case 'settled': {
        const { ticketId } = record
        if (!record.isCostOpen) {
          this.#open.delete(ticketId)
          return [lineOf(record, NO_COST)]
        }
        const open = this.#open.get(ticketId)
        if (open === undefined) this.#open.set(ticketId, { seq, opened: undefined, settled: record, since: now })
        else {
          open.settled = record
          open.since = now
        }
        return []
      }
      case 'costed': {
        const open = this.#open.get(record.ticketId)
        if (open?.settled === undefined) return []
        this.#open.delete(record.ticketId)
        return [lineOf(open.settled, record)]
      }
    }
  }

  /** The record is none of the ledger's. */
  skip(seq: number): void {
    this.#lastSeq = seq
  }

  /** The lines whose cost has not come in time. */
  overdue(now: Instant): readonly Settlement[] {
    const lines: Settlement[] = []
    for (const [ticketId, { settled, since }] of this.#open) {
      if (settled === undefined || now - since < LEDGER_LINES_DEFAULTS.costPatienceUs) continue
      this.#open.delete(ticketId)
      lines.push(lineOf(settled, NO_COST))
    }
    return lines
  }

  /** Records up to this one concern no open ticket. */
  get acknowledgeable(): number {
    for (const { seq } of this.#open.values()) return seq - 1
    return this.#lastSeq
  }

  get openCount(): number {
    return this.#open.size
  }

  #closeAll(atMs: number): Settlement[] {
    const lines = [...this.#open.values()].flatMap((open) => closed(open, atMs))
    this.#open.clear()
    return lines
  }

  #closeOldest(atMs: number): Settlement[] {
    for (const [ticketId, open] of this.#open) {
      this.#open.delete(ticketId)
      return closed(open, atMs)
    }
    return []
  }
}

/** An ended ticket keeps its ending; one that was still running is closed as crashed. */
function closed({ opened, settled }: OpenTicket, atMs: number): Settlement[] {
  if (settled !== undefined) return [lineOf(settled, NO_COST)]
  if (opened === undefined) return []
  const { model, releaseId, inputTokens, price } = opened
  // A lost line of a job runs again under its id, and is charged then: what was lost is a line of its own, at no price.
  const isLost = isLineTicket(opened.ticketId)
  const ticketId = isLost ? `${opened.ticketId}~${opened.atMs}` : opened.ticketId
  const paysCrashes = opened.paysCrashes && !isLost
  const usage = { promptTokens: inputTokens, cachedTokens: 0, outputTokens: 0 }
  return [
    {
      ...payerOf(opened),
      ...NO_COST,
      ticketId,
      atMs,
      model,
      releaseId,
      outcome: 'crashed',
      inputTokens,
      cachedTokens: 0,
      outputTokens: 0,
      priceNano: paysCrashes ? priceOf(price, usage) : 0,
      priceVersion: price.version,
    },
  ]
}

function lineOf(settled: SettledRecord, cost: TicketCost): Settlement {
  const { ticketId, atMs, model, releaseId, outcome, inputTokens, cachedTokens, outputTokens, priceNano } = settled
  const { costNano, prefillUs, decodeUs, kvBlockMs, batchingSavedNano, cacheSavedNano } = cost
  return {
    ...payerOf(settled),
    ticketId,
    atMs,
    model,
    releaseId,
    outcome,
    inputTokens,
    cachedTokens,
    outputTokens,
    priceNano,
    priceVersion: settled.priceVersion,
    costNano,
    prefillUs,
    decodeUs,
    kvBlockMs,
    batchingSavedNano,
    cacheSavedNano,
  }
}

const payerOf = ({ orgId, tenantId, keyId, endUser }: Payer): Payer => ({ orgId, tenantId, keyId, endUser })
