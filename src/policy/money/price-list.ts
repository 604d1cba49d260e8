import type { Instant } from '../../base/clock.ts'
import type { ModelPrice } from '../../domain/ledger.ts'

/**
 * At what price is a request sold? Lists are dated and may be an org's own. Of the lists that are in force, an org's own
 * go before those for everybody, and of those the one that began last. A model that stands in no list costs nothing and
 * is counted all the same.
 *
 * A ticket takes its price when it arrives and keeps it: a list that begins while it runs changes nothing for it.
 *
 * Example: a list for everybody from 1 January, acme's own from 1 March. In February acme pays the first, in April its
 * own for the models that stand in it and the first for the others.
 */
export interface PriceListSpec {
  readonly version: string
  /** In force from this instant on. */
  readonly from: Instant
  /** Absent: for everybody. */
  readonly orgId?: string | undefined
  readonly prices: ReadonlyMap<string, Omit<ModelPrice, 'version'>>
}

export const FREE: ModelPrice = Object.freeze({
  version: '',
  inputNano: 0,
  cachedNano: 0,
  outputNano: 0,
  requestNano: 0,
})

interface DatedPrice {
  readonly from: Instant
  readonly price: ModelPrice
}

export class PriceList {
  /** By org and model, or by model alone; the newest first. */
  #dated = new Map<string, readonly DatedPrice[]>()

  constructor(lists: readonly PriceListSpec[] = []) {
    this.replace(lists)
  }

  /** Takes over other lists; tickets that have their price keep it. */
  replace(lists: readonly PriceListSpec[]): void {
    const dated = new Map<string, DatedPrice[]>()
    for (const { version, from, orgId, prices } of lists) {
      for (const [model, price] of prices) {
        const name = nameOf(orgId, model)
        const entry = { from, price: { version, ...price } }
        dated.set(name, [...(dated.get(name) ?? []), entry])
      }
    }
    for (const entries of dated.values()) entries.sort((a, b) => b.from - a.from)
    this.#dated = dated
  }

  of(now: Instant, orgId: string, model: string): ModelPrice {
    if (this.#dated.size === 0) return FREE
    return this.#inForce(now, nameOf(orgId, model)) ?? this.#inForce(now, nameOf(undefined, model)) ?? FREE
  }

  #inForce(now: Instant, name: string): ModelPrice | undefined {
    const dated = this.#dated.get(name)
    if (dated === undefined) return undefined
    for (const { from, price } of dated) if (from <= now) return price
    return undefined
  }
}

/** No id of an org has a space. */
const nameOf = (orgId: string | undefined, model: string): string => `${orgId ?? ''} ${model}`
