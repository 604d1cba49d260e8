import type { OfferedFigures } from '../../domain/pool-share.ts'
import type { Band } from '../../domain/tenant.ts'

/**
 * How much work has been offered to this pool, at all gateways together?
 *
 * Totals since the process began, not rates: gateways tell each other totals (`sharing/room-report.ts`), so what is told
 * twice or late counts once. Each gateway's total is remembered as last heard; a lower one is a new process' and counts
 * from zero. Interactive and standard work is one total, offline work another: it makes replicas only where it is wanted
 * to (`spot`).
 *
 * Work that a budget refused is not offered to the pool: more replicas would not serve it.
 *
 * Bound: GATEWAYS_MAX gateways are remembered; of more, those that were heard first are forgotten.
 * Example: 900 here, and another gateway tells 400 and then 650: 1,550 in all.
 */
const GATEWAYS_MAX = 256

/** What waits at other gateways. */
export interface OthersWaiting {
  readonly cost: number
  readonly count: number
}

export class OfferedWork {
  #online = 0
  #offline = 0
  #othersOnline = 0
  #othersOffline = 0
  readonly #heard = new Map<string, OfferedFigures>()
  #othersWaiting: OthersWaiting = { cost: 0, count: 0 }
  /** Work for each microsecond of a full engine, of what was offered last; undefined where engine time is unknown. */
  #costPerShareUs: number | undefined

  /** `shareUs`: what it takes of a full engine's time, where that is known. */
  observe(band: Band, cost: number, work?: { readonly cost: number; readonly shareUs?: number | undefined }): void {
    if (band === 'offline') this.#offline += cost
    else this.#online += cost
    if (work?.shareUs === undefined || work.shareUs <= 0 || work.cost <= 0) return
    const ratio = work.cost / work.shareUs
    this.#costPerShareUs = (this.#costPerShareUs ?? ratio) * (1 - NEWS) + ratio * NEWS
  }

  /** What another gateway has been offered so far. */
  hear(gatewayId: string, told: OfferedFigures): void {
    const before = this.#heard.get(gatewayId)
    // What a gateway had been offered before we first heard of it is history.
    const { online, offline } = before ?? told
    this.#othersOnline += told.online >= online ? told.online - online : told.online
    this.#othersOffline += told.offline >= offline ? told.offline - offline : told.offline
    this.#heard.delete(gatewayId)
    this.#heard.set(gatewayId, told)
    if (this.#heard.size <= GATEWAYS_MAX) return
    for (const first of this.#heard.keys()) {
      this.#heard.delete(first)
      break
    }
  }

  /** What waits at all the others, as they last told. */
  hearWaiting(waiting: OthersWaiting): void {
    this.#othersWaiting = waiting
  }

  get othersWaiting(): OthersWaiting {
    return this.#othersWaiting
  }

  /** This gateway's own totals, for the others. */
  get own(): OfferedFigures {
    return { online: this.#online, offline: this.#offline }
  }

  get total(): OfferedFigures {
    return { online: this.#online + this.#othersOnline, offline: this.#offline + this.#othersOffline }
  }

  get costPerShareUs(): number | undefined {
    return this.#costPerShareUs
  }
}

/** Weight of one request in the mean: some hundred requests are remembered. */
const NEWS = 0.01
