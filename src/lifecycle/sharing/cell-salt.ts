import type { CancelTimer, Clock } from '../../base/clock.ts'
import { withinTime } from '../../base/within-time.ts'
import type { Sharing } from '../sharing-ports.ts'

/**
 * With which secret does this gateway name the beginnings of prompts? Gateways that share a fleet need the same one, or they
 * could not tell each other about prompts (`policy/sharing/prefix-news.ts`). Each offers its own random one to the lease
 * store, and all use the first that was offered. No client knows it, so none can guess what others sent or choose prompts
 * whose names meet (law L13).
 *
 * Without an answer in time a gateway begins with its own: it finds fewer of its prompts in caches, and nothing else. It goes on
 * offering, every OFFER_US: it takes over the store's as soon as it hears of it, and a store that was emptied has it again.
 */
const OFFER_US = 5_000_000
const START_US = 1_000_000

export class CellSalt {
  readonly #clock: Clock
  readonly #sharing: Pick<Sharing, 'salt'>
  #text: string
  #cancelTimer: CancelTimer | undefined
  #isStopped = false

  constructor(clock: Clock, sharing: Pick<Sharing, 'salt'>, own: string) {
    this.#clock = clock
    this.#sharing = sharing
    this.#text = own
  }

  get text(): string {
    return this.#text
  }

  /** Resolves when the store has answered, or after a second. */
  async start(): Promise<void> {
    await withinTime(this.#clock, this.#clock.now() + START_US, this.#offer())
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer?.()
  }

  async #offer(): Promise<void> {
    const heard = await this.#sharing.salt(this.#text)
    if (this.#isStopped) return
    if (heard !== undefined) this.#text = heard
    this.#cancelTimer = this.#clock.at(this.#clock.now() + OFFER_US, () => void this.#offer())
  }
}
