import { Bag } from '../base/bag.ts'
import type { Instant } from '../base/clock.ts'
import type { Pool } from '../domain/fleet.ts'
import { promptTokensOf, type Request } from '../domain/request.ts'
import type { RequestShape } from '../domain/request-shape.ts'
import type { Screening } from '../domain/screening.ts'
import type { RateLimitView, ScopeStanding } from '../policy/budgets/budgets.ts'
import type { Spend } from '../policy/budgets/quota.ts'
import type { IdlePolicy, IdleSharer } from '../policy/cost/idle-sharing.ts'
import { OutputRing } from '../policy/rollout/output-ring.ts'
import type { HealthChange } from '../policy/routing/health.ts'
import { AdmissionMeters } from './admission-meters.ts'
import { Autoscaling } from './autoscale/autoscaling.ts'
import { OfflineRuns } from './call-off-offline.ts'
import { CostMeter } from './cost/cost-meter.ts'
import { callOffSpot } from './fleet/call-off-spot.ts'
import { type ChangeReason, type FleetAnswer, type FleetChange, FleetChanges } from './fleet/change-fleet.ts'
import { Liveness } from './fleet/liveness.ts'
import { noticeLoss } from './fleet/lost-pool.ts'
import { auditFirstToken } from './learning/audit-refusals.ts'
import { learnFirstToken, teachFirstToken } from './learning/learn-first-token.ts'
import type { Policies } from './policies.ts'
import type { World } from './ports.ts'
import { Errands } from './rollout/errands.ts'
import type { AnswerScreen } from './screening-ports.ts'
import type { Admitted, Attempt, Ticket } from './ticket.ts'
import type { Turnstile } from './turnstile.ts'

/**
 * Everything that serving a request needs, in one place: the world, the policies' machines, and the live tickets.
 * `assembly/assemble.ts` makes one platform from a configuration, live or simulated.
 */
export interface PlatformOptions {
  readonly world: World
  readonly turnstile: Turnstile
  readonly policies: Policies
  /** How long any ticket may wait for a turn. */
  readonly queueUsMax: number
  /** How long a ticket may wait for its passages. */
  readonly retrievalUsMax: number
  /** Who pays for idle replicas: the platform if absent. */
  readonly idle?: { readonly policy: IdlePolicy; readonly weights: readonly IdleSharer[] }
}

export class Platform {
  readonly world: World
  readonly turnstile: Turnstile
  readonly policies: Policies
  /** Admission's questions, answered by the policies. */
  readonly admission: AdmissionMeters
  readonly queueUsMax: number
  readonly retrievalUsMax: number
  /** The platform's own requests: shadow copies and holdout items. */
  readonly errands = new Errands()
  /** Answers of shadows beside those of clients, of tenants that allow it. */
  readonly outputs = new OutputRing()
  /** What engines do for whom, and what that costs. */
  readonly costs: CostMeter
  /** How many replicas each pool should have. */
  readonly autoscaling: Autoscaling
  /** Offline attempts that run, and give way to online tickets. */
  readonly offlineRuns: OfflineRuns
  /** Which replicas make no progress, and what becomes of their attempts. */
  readonly liveness: Liveness
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
    this.admission = new AdmissionMeters(options.policies)
    this.autoscaling = new Autoscaling(this)
    this.offlineRuns = new OfflineRuns(options.world.clock, options.policies, options.turnstile)
    this.liveness = new Liveness({ ...options, applyHealth: (changes) => this.applyHealth(changes) })
    this.turnstile.whenWaiting = (ticketId, promisedUs) => this.offlineRuns.giveWayTo(ticketId, promisedUs)
    const { policy = 'platform', weights = [] } = options.idle ?? {}
    const isAnythingLive = (): boolean => this.#live.size > 0
    this.costs = new CostMeter({ ...options.world, policies: options.policies, idle: policy, weights, isAnythingLive })
    this.#fleetChanges = new FleetChanges({
      ...options,
      applyHealth: (changes) => this.applyHealth(changes),
      forget: (replicaId) => this.liveness.removed(replicaId),
      isNamed: (poolId) => this.#isNamed(poolId),
    })
  }

  /** The pools as they are now; callers keep no copy. */
  get pools(): readonly Pool[] {
    return this.policies.fleet.pools()
  }

  get fleetChanges(): FleetChanges {
    return this.#fleetChanges
  }

  /** A model, pool or replica comes, goes or is drained while the platform runs. */
  changeFleet(change: FleetChange, reason: ChangeReason, isFounding = false): FleetAnswer {
    const answer = this.#fleetChanges.change(change, reason, isFounding)
    callOffSpot(this.policies, change, reason.by, [...this.#live])
    return answer
  }

  get liveCount(): number {
    return this.#live.size
  }

  /** The process will stop soon: it still serves, but load balancers should choose another. */
  get isSteppingDown(): boolean {
    return this.#isSteppingDown || this.#isDraining
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** A ticket begins: from here it must end in `settle`. */
  arrive(ticket: Ticket): void {
    const { request } = ticket
    this.#live.add(ticket)
    ticket.price = this.policies.prices.of(request.arrivedAt, request.tenant.orgId, request.model)
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
      ...(request.errand === undefined && { shape: shapeOf(request) }),
      ...(request.trace !== undefined && { trace: request.trace }),
    })
  }

  /** The health of replicas changed: the dispatcher uses these replicas more, less or not at all. */
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

  /** What this tenant and key have left of their rate limits; the tightest of each kind. */
  rateLimits(payer: Pick<Request, 'tenant' | 'key'>): RateLimitView {
    const { budgets, standings } = this.policies
    return budgets.view(this.world.clock.now(), standings.of(payer).scopes)
  }

  /** What this tenant, its org and this key have left of every bound, each by itself. */
  budgetsOf(payer: Pick<Request, 'tenant' | 'key'>): readonly ScopeStanding[] {
    const { budgets, standings } = this.policies
    const { scopes, models } = standings.of(payer)
    return budgets.scopeViews(this.world.clock.now(), [...scopes, ...models.values()])
  }

  /** The attempt's first token waits for the verdict: its engine has read the prompt, and has room for the next. */
  held(attempt: Attempt, at: Instant): void {
    if (attempt.readAt !== undefined) return
    attempt.readAt = at
    if (!attempt.isOver) this.turnstile.begin(attempt.lease)
  }

  /** The attempt's first token has come. */
  begun(attempt: Attempt, firstTokenAt: Instant): void {
    if (!attempt.isOver) this.turnstile.begin(attempt.lease)
    this.costs.begun(attempt, firstTokenAt)
    auditFirstToken(this, attempt, firstTokenAt)
    teachFirstToken(attempt, firstTokenAt)
    learnFirstToken(this.policies.calibration, attempt, firstTokenAt)
  }

  /** The attempt's answer is longer than predicted: fairness charges the further tokens as they come. */
  grown({ isOver, lease, ticket }: Attempt): void {
    if (!isOver) this.turnstile.progress(lease, ticket.outputTokens)
  }

  /** Observe-only mode counts, and ends no answer. */
  drawOn({ reservation }: Admitted, used: Spend): boolean {
    const { budgets, mode } = this.policies
    if (reservation === undefined || !reservation.isOpen) return true
    return budgets.drawOn(this.world.clock.now(), reservation, used) || mode === 'observe'
  }

  screenAnswer(screening: Screening): AnswerScreen | undefined {
    return this.world.screener?.screenAnswer(screening)
  }

  /** Gives back whatever an unexpected error left in a ticket's hands. */
  release(ticket: Ticket): void {
    this.turnstile.release(ticket)
    const { attempt } = ticket
    if (attempt === undefined || attempt.isOver) return
    attempt.isOver = true
    attempt.isPaid = false
    this.costs.over(attempt, { kind: 'lost', because: 'an unexpected error' })
    this.turnstile.giveBack(attempt.lease, { cost: 0, ending: 'lost', firstTokenUs: undefined })
  }

  depart(ticket: Ticket): void {
    this.#live.remove(ticket)
    if (this.#fleetChanges.isAnythingLeaving) this.#fleetChanges.sweep()
    if (this.#isDraining && this.#live.size === 0) this.#whenIdle?.()
  }

  /** Whether a live ticket was sent to this pool. Asked only while a pool closes. */
  #isNamed(poolId: string): boolean {
    for (const ticket of this.#live) if (ticket.admitted?.poolId === poolId) return true
    return false
  }

  /** The readiness probe says no from here on, so that balancers look elsewhere; requests that come are still served. */
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

  /** Cancels every live ticket. */
  cancelAll(because: string): void {
    for (const ticket of this.#live) ticket.cancellation.cancel(because)
  }
}

const shapeOf = (request: Request): RequestShape => ({
  kind: request.kind,
  bid: request.bid,
  outputTokensMax: request.outputTokensMax,
  choiceCount: request.choiceCount,
  prefixHashes: request.prefixHashes,
  sessionHash: request.sessionHash,
  passagesMax: request.retrieval?.passagesMax ?? 0,
})
