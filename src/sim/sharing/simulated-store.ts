import type { Clock, Instant } from '../../base/clock.ts'
import { Rng } from '../../base/rng.ts'
import type { VirtualClock } from '../../base/virtual-clock.ts'
import type { Sharing } from '../../lifecycle/sharing-ports.ts'
import { MemorySharing } from '../../sharing/memory-sharing.ts'

/**
 * The lease store of simulated gateways: the store in memory that runs live, behind a network with delay, loss and calls
 * that are carried out late, on a machine whose clock can be set. Faults are switched on and off by the scenario.
 *
 * A store that is stopped has the calls in its sockets and carries them out when it goes on. A gateway that is cut off
 * loses calls and answers; one that is deaf loses answers only. A paused gateway gets its answers when it goes on.
 */
export interface StoreNetwork {
  /** Longest way of a call or an answer, in microseconds. */
  readonly delayUsMax: number
  /** Share of the calls that are lost, and of those that are carried out up to LATE_US later. */
  readonly lossRatio: number
  readonly lateRatio: number
}

/** As seen from the store: the end of the line. */
export interface StoreClient {
  readonly name: string
  /** When the gateway goes on; undefined while it runs. */
  readonly pausedUntil: Instant | undefined
}

/** How long the port waits for an answer that does not come. */
const NO_ANSWER_US = 2_000_000
const LATE_US = 3_000_000

export class SimulatedStore {
  readonly #clock: VirtualClock
  readonly #network: StoreNetwork
  readonly #rng: Rng
  readonly #store: MemorySharing
  readonly #cut = new Set<string>()
  readonly #deaf = new Set<string>()
  #stoppedUntil: Instant | undefined
  #offsetUs = 0
  callCount = 0
  lostCount = 0

  constructor(clock: VirtualClock, seed: number, network: StoreNetwork) {
    this.#clock = clock
    this.#network = network
    this.#rng = Rng.stream(seed, 'lease store')
    const ownClock: Clock = {
      // A store's clock is far from zero, so that it can be set back.
      now: () => clock.now() + this.#offsetUs + BIRTH_US,
      at: (instant, fn) => clock.at(instant, fn),
      sleep: (us) => clock.sleep(us),
    }
    this.#store = new MemorySharing(ownClock)
  }

  portOf(client: StoreClient): Sharing {
    return {
      take: (shard, member, accounts) => this.#carry(client, () => this.#store.take(shard, member, accounts)),
      room: (member, told, asks) => this.#carry(client, () => this.#store.room(member, told, asks)),
      salt: (offered) => this.#carry(client, () => this.#store.salt(offered)),
      leave: (id) => this.#store.leave(id),
    }
  }

  /** Somebody else says that a gateway is gone: its supervisor. */
  leave(gatewayId: string): void {
    void this.#store.leave(gatewayId)
  }

  stopUntil(at: Instant): void {
    this.#stoppedUntil = at
  }

  wipe(): void {
    this.#store.wipe()
  }

  stepClock(us: number): void {
    this.#offsetUs += us
  }

  cut(gateway: string, isCut: boolean): void {
    if (isCut) this.#cut.add(gateway)
    else this.#cut.delete(gateway)
  }

  deafen(gateway: string, isDeaf: boolean): void {
    if (isDeaf) this.#deaf.add(gateway)
    else this.#deaf.delete(gateway)
  }

  async #carry<T>(client: StoreClient, call: () => Promise<T | undefined>): Promise<T | undefined> {
    this.callCount++
    if (this.#isLost(client.name)) return this.#noAnswer()
    await this.#clock.sleep(this.#delayUs())
    if (this.#rng.next() < this.#network.lateRatio) await this.#clock.sleep(this.#rng.below(LATE_US))
    const goesOnAt = this.#stoppedUntil
    if (goesOnAt !== undefined && goesOnAt > this.#clock.now())
      await this.#clock.sleep(goesOnAt - this.#clock.now() + this.#rng.below(2_000))
    const answer = await call()
    await this.#clock.sleep(this.#delayUs())
    if (this.#deaf.has(client.name) || this.#isLost(client.name)) return this.#noAnswer()
    const { pausedUntil } = client
    if (pausedUntil !== undefined) await this.#clock.sleep(pausedUntil - this.#clock.now())
    return answer
  }

  async #noAnswer(): Promise<undefined> {
    this.lostCount++
    await this.#clock.sleep(NO_ANSWER_US)
    return undefined
  }

  #isLost(gateway: string): boolean {
    return this.#rng.next() < this.#network.lossRatio || this.#cut.has(gateway)
  }

  #delayUs(): number {
    return 100 + this.#rng.below(Math.max(1, Math.round(this.#network.delayUsMax)))
  }
}

/** An instant of our days, in microseconds. */
const BIRTH_US = 1_700_000_000_000_000
