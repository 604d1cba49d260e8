import { type Clock, type Instant, secondsToUs } from '../../base/clock.ts'
import { CELL_DUTIES, type Fence } from '../../domain/leader.ts'
import type { Leadership } from '../../lifecycle/ports.ts'
import { MemorySecondStore } from '../../store/memory-second-store.ts'

/**
 * Who leads simulated gateways, and what they tell each other of replicas' seconds. The first that asks leads for as long
 * as it lives; when it is lost nobody does until its term is over, and then the first that asks.
 */
const TERM_US = secondsToUs(5)

export class SimulatedLeads {
  readonly seconds: MemorySecondStore
  readonly #clock: Clock
  #leader: { readonly id: string; readonly isFit: () => boolean } | undefined
  #fence = 0
  #freeAt: Instant | undefined

  constructor(clock: Clock) {
    this.#clock = clock
    this.seconds = new MemorySecondStore(
      ({ holder, number }) => holder === this.#leader?.id && number === this.#fence && this.#leader.isFit(),
    )
  }

  of(id: string, isFit: () => boolean): Leadership {
    return {
      role: () => {
        if (!isFit()) return { kind: 'nobody', because: 'the gateway is gone' }
        this.#follow(id, isFit)
        const leader = this.#leader
        if (leader === undefined) return { kind: 'nobody', because: 'the leader is gone' }
        const fence: Fence = { name: CELL_DUTIES, holder: id, number: this.#fence }
        return leader.id === id ? { kind: 'leads', fence } : { kind: 'follows', holder: leader.id }
      },
    }
  }

  #follow(id: string, isFit: () => boolean): void {
    const now = this.#clock.now()
    if (this.#leader?.isFit() === false) {
      this.#leader = undefined
      this.#freeAt = now + TERM_US
    }
    if (this.#leader !== undefined || (this.#freeAt !== undefined && now < this.#freeAt)) return
    this.#leader = { id, isFit }
    this.#fence++
  }
}
