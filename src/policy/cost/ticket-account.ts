import type { Instant } from '../../base/clock.ts'
import type { CostClosed } from '../../domain/cost-entry.ts'
import type { EngineTime } from '../../domain/engine-time.ts'
import type { AttemptSecond } from './second-report.ts'

/** The sums of one ticket over the seconds that were closed, until it has ended and its last second is closed. */
export class TicketAccount {
  readonly tenantId: string
  readonly isErrand: boolean
  readonly #time: { -readonly [Part in keyof EngineTime]: number } = {
    prefillUs: 0,
    decodeUs: 0,
    againUs: 0,
    aloneUs: 0,
    prefixSavedUs: 0,
    kvTokenUs: 0,
  }
  /** Charged so far, by attempt: what is moved when an attempt turns out to have been for nothing. Retries are few. */
  readonly #attempts = new Map<number, number>()
  #costNano = 0
  #wasteNano = 0
  #aloneNano = 0
  #prefixNano = 0
  #isMeasured = true
  #isPriced = true

  constructor({ tenantId, isErrand }: Pick<AttemptSecond, 'tenantId' | 'isErrand'>) {
    this.tenantId = tenantId
    this.isErrand = isErrand
  }

  charge(row: AttemptSecond, money: { usedNano: number; againNano: number }, terms: ChargeTerms): void {
    const { time, attempt } = row
    const { scale, nanoPerUs, isMeasured } = terms
    for (const part of PARTS) this.#time[part] += scale * time[part]
    this.#attempts.set(attempt, (this.#attempts.get(attempt) ?? 0) + money.usedNano)
    this.#costNano += money.usedNano
    this.#wasteNano += money.againNano
    this.#aloneNano += scale * time.aloneUs * nanoPerUs
    this.#prefixNano += scale * time.prefixSavedUs * nanoPerUs
    this.#isMeasured &&= isMeasured
    this.#isPriced &&= nanoPerUs > 0
  }

  /** The attempt was for nothing: returns what the tenant had been charged with for it, and gets back. */
  waste(attempt: number): number {
    const nano = this.#attempts.get(attempt) ?? 0
    this.#attempts.delete(attempt)
    this.#costNano -= nano
    this.#wasteNano += nano
    return nano
  }

  close(at: Instant, ticketId: string): CostClosed {
    const paidNano = this.#costNano + this.#wasteNano
    return {
      kind: 'cost-closed',
      at,
      ticketId,
      tenantId: this.tenantId,
      isErrand: this.isErrand,
      costNano: this.#costNano,
      wasteNano: this.#wasteNano,
      batchSavedNano: Math.max(0, Math.round(this.#aloneNano) - paidNano),
      prefixSavedNano: Math.round(this.#prefixNano),
      time: { ...this.#time },
      isMeasured: this.#isMeasured,
      isPriced: this.#isPriced,
    }
  }
}

export interface ChargeTerms {
  /** From reported to billed engine time. */
  readonly scale: number
  readonly nanoPerUs: number
  readonly isMeasured: boolean
}

const PARTS = ['prefillUs', 'decodeUs', 'againUs', 'aloneUs', 'prefixSavedUs', 'kvTokenUs'] as const
