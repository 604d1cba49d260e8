import type { CancelTimer, Clock } from '../../base/clock.ts'
import { withinTime } from '../../base/within-time.ts'
import { RoomBook, type RoomCall, type RoomOptions } from '../../policy/sharing/room-book.ts'
import { SHARING_DEFAULTS } from '../../policy/sharing/slice-book.ts'
import type { Platform } from '../platform.ts'
import type { Capacity } from '../ports.ts'
import type { Sharing } from '../sharing-ports.ts'

/**
 * Who tells the other gateways what waits and runs here, and carries their news and the store's grants to the dispatcher?
 * One timer: every EXCHANGE_US, one call for each pool of engines. No request waits for it. Live and in simulations alike.
 *
 * Each pool has a `RoomBook` (`policy/sharing/room-book.ts`), which decides; this class only carries. Pools and replicas
 * may come and go between two exchanges: the figures of the moment are read each time. Pools of other regions' gateways
 * are not shared. Prompts that the placer gives to replicas are told, too, and what others told reaches its prefix index.
 *
 * Deliberately not: no second try. The next exchange asks again, with newer figures. Bounds: one call for each pool within
 * the book's `callUs`; a book for each pool.
 */
const EXCHANGE_US = 100_000

export class RoomExchange {
  readonly #clock: Clock
  readonly #sharing: Sharing
  readonly #gatewayId: string
  readonly #platform: Platform
  readonly #options: RoomOptions
  readonly #books = new Map<string, RoomBook>()
  #cancelTimer: CancelTimer | undefined
  #isStopped = false

  constructor(platform: Platform, sharing: Sharing, gatewayId: string, options: Partial<RoomOptions> = {}) {
    this.#clock = platform.world.clock
    this.#platform = platform
    this.#sharing = sharing
    this.#gatewayId = gatewayId
    this.#options = { ...ROOM_DEFAULTS, ...options }
    platform.policies.placer.tellPlaced(({ id, poolId }, blocks, hashes) =>
      this.#books.get(poolId)?.placed(id, blocks, hashes),
    )
  }

  /** Resolves when this gateway has its first room in every pool, or after `startUs`: then it begins alone. */
  async start(): Promise<void> {
    // The first call learns how many gateways there are; the second asks for what follows from that.
    const first = this.#exchangeAll().then(() => this.#exchangeAll())
    this.#schedule()
    await withinTime(this.#clock, this.#clock.now() + this.#options.startUs, first)
  }

  /** No more exchanges. Whoever stops a gateway also leaves the roster (`renewals.ts`). */
  stop(): void {
    this.#isStopped = true
    this.#cancelTimer?.()
  }

  #schedule(): void {
    if (this.#isStopped) return
    this.#cancelTimer = this.#clock.at(this.#clock.now() + EXCHANGE_US, () => {
      void this.#exchangeAll()
      this.#schedule()
    })
  }

  async #exchangeAll(): Promise<void> {
    const { policies } = this.#platform
    const present = [...policies.poolsById.values()].filter(({ pool }) => pool.isPeer !== true)
    for (const poolId of this.#books.keys()) if (!policies.poolsById.has(poolId)) this.#books.delete(poolId)
    await Promise.all(present.map(({ pool }) => this.#exchange(pool.id)))
  }

  async #exchange(poolId: string): Promise<void> {
    const { turnstile, policies } = this.#platform
    const now = this.#clock.now()
    const seen = policies.dispatcher.figuresOf(poolId)
    const offered = policies.poolsById.get(poolId)?.offered.own
    if (seen === undefined || offered === undefined || this.#isStopped) return
    const figures = { ...seen, offered }
    const book = this.#books.get(poolId) ?? new RoomBook(now, this.#gatewayId, poolId, this.#options)
    this.#books.set(poolId, book)
    const { share, call } = book.renew(now, figures)
    turnstile.poolShared(poolId, share)
    if (call !== undefined) await this.#carry(poolId, book, call)
  }

  async #carry(poolId: string, book: RoomBook, call: RoomCall): Promise<void> {
    const answer = await this.#sharing.room(call.member, call.told, call.asks)
    const { turnstile, policies } = this.#platform
    const figures = policies.dispatcher.figuresOf(poolId)
    if (figures === undefined || this.#isStopped) return
    const now = this.#clock.now()
    const share = book.answered(now, call, answer, figures)
    for (const heard of book.takePrefixes()) policies.placer.hearPlaced(now, heard)
    if (share !== undefined) turnstile.poolShared(poolId, share)
    this.#hearDemand(poolId, book)
  }

  /** What others are offered counts when replicas are, and may wake a pool that sleeps. */
  #hearDemand(poolId: string, book: RoomBook): void {
    const { policies, autoscaling } = this.#platform
    const offered = policies.poolsById.get(poolId)?.offered
    if (offered === undefined) return
    const before = offered.total.online
    const elsewhere = book.demandElsewhere()
    for (const [gatewayId, told] of elsewhere.offered) offered.hear(gatewayId, told)
    offered.hearWaiting(elsewhere.waiting)
    if (offered.total.online > before) autoscaling.asked(poolId)
  }
}

/** Room that is shared is nobody's before the first exchange. */
export const NO_ROOM_YET: Capacity = { allowance: () => ({ sequences: 0, kvTokens: 0 }) }

const ROOM_DEFAULTS: RoomOptions = {
  ttlMs: SHARING_DEFAULTS.ttlMs,
  forgetMs: SHARING_DEFAULTS.forgetMs,
  silentUs: SHARING_DEFAULTS.silentUs,
  gatewaysMax: SHARING_DEFAULTS.gatewaysMax,
  callUs: SHARING_DEFAULTS.callUs,
  startUs: 1_000_000,
}
