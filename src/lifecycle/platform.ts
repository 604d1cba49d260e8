import type { Settled } from '../domain/entry.ts'
import type { Model, Pool } from '../domain/fleet.ts'
import { promptTokensOf } from '../domain/request.ts'
import type { World } from './ports.ts'
import type { Ticket } from './ticket.ts'
import type { Turnstile } from './turnstile.ts'

/**
 * Everything that serving a request needs, in one place: the world, the policies' machines, and the tickets that are
 * alive. `main/assemble.ts` makes one from a configuration, live or simulated.
 */
export interface PlatformOptions {
  readonly world: World
  readonly turnstile: Turnstile
  readonly models: readonly Model[]
  readonly pools: readonly Pool[]
  readonly queueUsMax: number
}

export class Platform {
  readonly world: World
  readonly turnstile: Turnstile
  readonly pools: readonly Pool[]
  readonly queueUsMax: number
  readonly #models = new Map<string, Model>()
  readonly #poolsByModel = new Map<string, Pool>()
  readonly #live = new Map<string, Ticket>()
  #isDraining = false
  #whenIdle: (() => void) | undefined

  constructor(options: PlatformOptions) {
    this.world = options.world
    this.turnstile = options.turnstile
    this.pools = options.pools
    this.queueUsMax = options.queueUsMax
    for (const model of options.models) this.#models.set(model.name, model)
    for (const pool of options.pools) this.#poolsByModel.set(pool.model, pool)
  }

  get liveCount(): number {
    return this.#live.size
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  modelOf(name: string): Model | undefined {
    return this.#models.get(name)
  }

  poolOf(model: string): Pool | undefined {
    return this.#poolsByModel.get(model)
  }

  /** A ticket comes to life: from here it must end in `settle`. */
  arrive(ticket: Ticket): void {
    const { request } = ticket
    this.#live.set(ticket.id, ticket)
    this.world.journal.record({
      kind: 'arrived',
      at: request.arrivedAt,
      ticketId: ticket.id,
      tenantId: request.tenant.id,
      keyId: request.key.id,
      model: request.model,
      band: request.band,
      promptTokens: promptTokensOf(request),
      isStreamed: request.isStreamed,
    })
  }

  /** Gives back whatever an unexpected error left in a ticket's hands. */
  release(ticket: Ticket): void {
    this.turnstile.release(ticket)
    if (ticket.lease !== undefined) {
      this.turnstile.giveBack(ticket.lease)
      ticket.lease = undefined
    }
  }

  depart(ticket: Ticket, _settled: Settled): void {
    this.#live.delete(ticket.id)
    if (this.#isDraining && this.#live.size === 0) this.#whenIdle?.()
  }

  /** Takes no more requests; resolves when the last live ticket has ended. */
  drain(): Promise<void> {
    this.#isDraining = true
    if (this.#live.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#whenIdle = resolve
    })
  }

  /** Calls off every live ticket. */
  cancelAll(because: string): void {
    for (const ticket of this.#live.values()) ticket.cancellation.cancel(because)
  }
}
