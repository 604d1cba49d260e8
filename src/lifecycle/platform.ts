import { Bag } from '../base/bag.ts'
import type { Pool } from '../domain/fleet.ts'
import { promptTokensOf, type Request } from '../domain/request.ts'
import type { RateLimitView } from '../policy/budgets/budgets.ts'
import type { HealthChange } from '../policy/routing/health.ts'
import { type ChangeReason, type FleetAnswer, type FleetChange, FleetChanges } from './fleet/change-fleet.ts'
import { noticeLoss } from './fleet/lost-pool.ts'
import { learnFirstToken } from './learning/learn-first-token.ts'
import { type Policies, scopesOf } from './policies.ts'
import type { World } from './ports.ts'
import { Errands } from './rollout/errands.ts'
import type { Ticket } from './ticket.ts'
import type { Turnstile } from './turnstile.ts'

/**
 * Everything that serving a request needs, in one place: the world, the policies' machines, and the tickets that are
 * alive. `assembly/assemble.ts` makes one from a configuration, live or simulated.
 */
export interface PlatformOptions {
  readonly world: World
  readonly turnstile: Turnstile
  readonly policies: Policies
  /** How long any ticket may wait for a turn. */
  readonly queueUsMax: number
  /** How long a ticket may wait for its passages. */
  readonly retrievalUsMax: number
}

export class Platform {
  readonly world: World
  readonly turnstile: Turnstile
  readonly policies: Policies
  readonly queueUsMax: number
  readonly retrievalUsMax: number
  /** What the platform asks of itself. */
  readonly errands = new Errands()
  readonly #live = new Bag<Ticket>()
  readonly #fleetChanges: FleetChanges
  #isSteppingDown = false
  #isDraining = false
  #whenIdle: (() => void) | undefined

  constructor(options: PlatformOptions) {
    this.world = options.world
    this.turnstile = options.turnstile
    this.queueUsMax = options.queueUsMax
    this.retrievalUsMax = options.retrievalUsMax
    this.policies = options.policies
    this.#fleetChanges = new FleetChanges({
      ...options,
      applyHealth: (changes) => this.applyHealth(changes),
      isNamed: (poolId) => this.#isNamed(poolId),
    })
  }

  /** As they are now; never to be kept. */
  get pools(): readonly Pool[] {
    return this.policies.fleet.pools()
  }

  get fleetChanges(): FleetChanges {
    return this.#fleetChanges
  }

  /** Something comes, goes or is drained while everything runs. */
  changeFleet(change: FleetChange, reason: ChangeReason, isFounding = false): FleetAnswer {
    return this.#fleetChanges.change(change, reason, isFounding)
  }

  get liveCount(): number {
    return this.#live.size
  }

  /** Going away soon: still serving, but no longer to be chosen. */
  get isSteppingDown(): boolean {
    return this.#isSteppingDown || this.#isDraining
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** A ticket comes to life: from here it must end in `settle`. */
  arrive(ticket: Ticket): void {
    const { request } = ticket
    this.#live.add(ticket)
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
      ...(request.origin !== undefined && { origin: request.origin }),
    })
  }

  /** Replicas whose health changed: the dispatcher uses them more, less or not at all. */
  applyHealth(changes: readonly HealthChange[]): void {
    for (const { replicaId, isReady, allowance, kind, because } of changes) {
      this.world.journal.record({
        kind: 'replica-health',
        at: this.world.clock.now(),
        replicaId,
        health: kind,
        because,
      })
      this.turnstile.replicaChanged(replicaId, { isReady, allowance })
      const poolId = this.policies.fleet.replica(replicaId)?.poolId
      if (poolId !== undefined) noticeLoss(this, poolId, this.#live)
    }
  }

  /** What the caller of this request has left, over every scope that it spends from. */
  rateLimits(request: Request): RateLimitView {
    return this.policies.budgets.view(this.world.clock.now(), scopesOf(request))
  }

  begun(ticket: Ticket): void {
    if (ticket.lease !== undefined) this.turnstile.begin(ticket, ticket.lease)
    learnFirstToken(this.policies.calibration, ticket)
  }

  /** It is longer than predicted: fairness charges as it comes. */
  grown(ticket: Ticket): void {
    if (ticket.lease !== undefined) this.turnstile.progress(ticket.lease, ticket.outputTokens)
  }

  /** Gives back whatever an unexpected error left in a ticket's hands. */
  release(ticket: Ticket): void {
    this.turnstile.release(ticket)
    if (ticket.lease !== undefined) {
      this.turnstile.giveBack(ticket.lease, { cost: 0, ending: 'lost', firstTokenUs: undefined })
      ticket.lease = undefined
    }
  }

  depart(ticket: Ticket): void {
    this.#live.remove(ticket)
    if (this.#fleetChanges.isAnythingLeaving) this.#fleetChanges.sweep()
    if (this.#isDraining && this.#live.size === 0) this.#whenIdle?.()
  }

  /** Whether anybody alive was sent to this pool. Asked only while a pool closes. */
  #isNamed(poolId: string): boolean {
    for (const ticket of this.#live) if (ticket.poolId === poolId) return true
    return false
  }

  /** Readiness says no from here on, so that balancers look elsewhere; everybody who comes is still served. */
  stepDown(): void {
    this.#isSteppingDown = true
  }

  /** Takes no more requests; resolves when the last live ticket has ended. */
  drain(): Promise<void> {
    this.#isDraining = true
    this.errands.callOff('shutting-down')
    if (this.#live.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#whenIdle = resolve
    })
  }

  /** Calls off every live ticket. */
  cancelAll(because: string): void {
    for (const ticket of this.#live) ticket.cancellation.cancel(because)
  }
}
