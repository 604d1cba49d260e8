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
  /** Charged so far for its last attempt, and for those before: what is moved when one was for nothing. Retries are few. */
  #attempt = 0
  #attemptNano = 0
  #earlier: Map<number, number> | undefined
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
    const sums = this.#time
    sums.prefillUs += scale * time.prefillUs
    sums.decodeUs += scale * time.decodeUs
    sums.againUs += scale * time.againUs
    sums.aloneUs += scale * time.aloneUs
    sums.prefixSavedUs += scale * time.prefixSavedUs
    sums.kvTokenUs += scale * time.kvTokenUs
    if (attempt !== this.#attempt) this.#turnTo(attempt)
    this.#attemptNano += money.usedNano
    this.#costNano += money.usedNano
    this.#wasteNano += money.againNano
    this.#aloneNano += scale * time.aloneUs * nanoPerUs
    this.#prefixNano += scale * time.prefixSavedUs * nanoPerUs
    this.#isMeasured &&= isMeasured
    this.#isPriced &&= nanoPerUs > 0
  }

  /** The attempt was for nothing: returns what the tenant had been charged with for it, and gets back. */
  waste(attempt: number): number {
    if (attempt !== this.#attempt) this.#turnTo(attempt)
    const nano = this.#attemptNano
    this.#attemptNano = 0
    this.#costNano -= nano
    this.#wasteNano += nano
    return nano
  }

  #turnTo(attempt: number): void {
    if (this.#attempt > 0) {
      this.#earlier ??= new Map()
      this.#earlier.set(this.#attempt, this.#attemptNano)
    }
    this.#attempt = attempt
    this.#attemptNano = this.#earlier?.get(attempt) ?? 0
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
