import type { Instant } from '../../base/clock.ts'
import type { SecondClosed } from '../../domain/cost-entry.ts'
import { spentUs } from '../../domain/engine-time.ts'
import type { Entry } from '../../domain/entry.ts'

/**
 * What the engines of a run cost, and whom: sums of the closed seconds and of the tickets' final costs. US dollars.
 * Empty where no replica has a price.
 */
export interface CostStatement {
  readonly billUsd: number
  /** Replica-seconds that were closed: each with lines that add up to its bill (L15). */
  readonly closedSeconds: number
  readonly idleUsd: number
  readonly wasteUsd: number
  readonly platformUsd: number
  readonly crashedUsd: number
  readonly lateUsd: number
  readonly tenants: Readonly<Record<string, TenantCost>>
}

export interface TenantCost {
  /** For its tickets, and for its part of the idle time. */
  readonly usedUsd: number
  readonly idleUsd: number
  /** Share of what all tenants used. */
  readonly share: number
  /** Of its tickets, what the platform bears: failed attempts, prompts read again. */
  readonly wasteUsd: number
  /** What its tickets would have cost alone less what they cost; what its cached prompts would have cost. */
  readonly batchSavedUsd: number
  readonly prefixSavedUsd: number
  /** Seconds of engine time. */
  readonly prefillS: number
  readonly decodeS: number
  /** Blocks of 16 tokens in KV memory × seconds. */
  readonly kvBlockSeconds: number
}

type Sums = { -readonly [Part in keyof TenantCost]: number }

const NANO = 1e9
const BLOCK_TOKENS = 16

export class CostTally {
  readonly #fromAt: Instant
  readonly #tenants = new Map<string, Sums>()
  readonly #lines = { billUsd: 0, idleUsd: 0, wasteUsd: 0, platformUsd: 0, crashedUsd: 0, lateUsd: 0 }
  #closedSeconds = 0

  /** Seconds that begin earlier, and tickets that end earlier, are not counted. */
  constructor(fromAt: Instant) {
    this.#fromAt = fromAt
  }

  take(entry: Entry): void {
    if (entry.kind === 'second-closed' && entry.fromAt >= this.#fromAt) this.#second(entry)
    if (entry.kind !== 'cost-closed' || entry.at < this.#fromAt) return
    const sums = this.#sumsOf(entry.tenantId)
    const { time } = entry
    sums.wasteUsd += entry.wasteNano / NANO
    sums.batchSavedUsd += entry.batchSavedNano / NANO
    sums.prefixSavedUsd += entry.prefixSavedNano / NANO
    sums.prefillS += (spentUs(time) - time.decodeUs) / 1e6
    sums.decodeS += time.decodeUs / 1e6
    sums.kvBlockSeconds += time.kvTokenUs / BLOCK_TOKENS / 1e6
  }

  view(): CostStatement {
    const used = [...this.#tenants.values()].reduce((sum, { usedUsd }) => sum + usedUsd, 0)
    const tenants = [...this.#tenants].map(([id, sums]): [string, TenantCost] => [
      id,
      { ...sums, share: used > 0 ? sums.usedUsd / used : 0 },
    ])
    return { ...this.#lines, closedSeconds: this.#closedSeconds, tenants: Object.fromEntries(tenants) }
  }

  #second({ billNano, lines, tenants }: SecondClosed): void {
    this.#closedSeconds++
    this.#lines.billUsd += billNano / NANO
    this.#lines.idleUsd += lines.idleNano / NANO
    this.#lines.wasteUsd += lines.wasteNano / NANO
    this.#lines.platformUsd += lines.platformNano / NANO
    this.#lines.crashedUsd += lines.crashedNano / NANO
    this.#lines.lateUsd += lines.lateNano / NANO
    for (const { tenantId, usedNano, idleNano } of tenants) {
      const sums = this.#sumsOf(tenantId)
      sums.usedUsd += usedNano / NANO
      sums.idleUsd += idleNano / NANO
    }
  }

  #sumsOf(tenantId: string): Sums {
    let sums = this.#tenants.get(tenantId)
    if (sums === undefined) {
      sums = { ...NO_SUMS }
      this.#tenants.set(tenantId, sums)
    }
    return sums
  }
}

const NO_SUMS: Sums = {
  usedUsd: 0,
  idleUsd: 0,
  share: 0,
  wasteUsd: 0,
  batchSavedUsd: 0,
  prefixSavedUsd: 0,
  prefillS: 0,
  decodeS: 0,
  kvBlockSeconds: 0,
}
