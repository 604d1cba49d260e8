import type { CancelTimer, Instant } from '../base/clock.ts'
import type { Replica } from '../domain/fleet.ts'
import { pressureOf } from '../policy/ladder/pressure.ts'
import type { PoolPolicies } from './fleet/pool-policies.ts'
import { journalRungChange } from './learning/observe-pressure.ts'
import type { Platform } from './platform.ts'
import type { ReplicaReport } from './ports.ts'
import { beginRollouts, tickRollouts } from './rollout/change-rollout.ts'
import { runHoldouts } from './rollout/run-holdout.ts'
import { serveRequest } from './serve-request.ts'

/**
 * The story of one tick: what do the replicas report, and what follows from it?
 *
 *   probe every replica ─▶ health and gauges ─▶ demand and pressure ─▶ ladder ─▶ offline shedding ─▶ rollouts
 *
 * Probes run side by side and each is bounded by its backend; a tick starts when the one before it is over, so a
 * hanging replica delays the news about others by at most one probe's time limit, and never piles up.
 */
export class ControlLoop {
  readonly #platform: Platform
  readonly #intervalUs: number
  readonly #ready = new Map<string, boolean>()
  #isStopped = false
  #cancelTimer: CancelTimer | undefined

  constructor(platform: Platform, intervalUs: number) {
    this.#platform = platform
    this.#intervalUs = intervalUs
  }

  /** Resolves after the first tick: the platform then knows which replicas are there. */
  async start(): Promise<void> {
    beginRollouts(this.#platform)
    await this.tick()
    this.#again()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer?.()
  }

  async tick(): Promise<void> {
    const { pools, policies, world } = this.#platform
    await Promise.all(pools.flatMap((pool) => pool.replicas.map((replica) => this.#look(replica))))
    const now = world.clock.now()
    for (const pool of policies.poolsById.values()) this.#weigh(now, pool)
    this.#platform.applyHealth(policies.health.onWakeup(now))
    this.#platform.fleetChanges.sweep()
    this.#forgetGone()
    for (const change of policies.ladder.tick(now)) journalRungChange(this.#platform, change)
    tickRollouts(this.#platform)
    runHoldouts(this.#platform, serveRequest)
  }

  async #look(replica: Replica): Promise<void> {
    const { backends } = this.#platform.world
    let report: ReplicaReport
    try {
      report = await backends.of(replica).probe(replica)
    } catch (error) {
      report = { isReady: false, because: `the probe failed: ${String(error)}` }
    }
    // It may have been removed while it was asked.
    const isThere = this.#platform.policies.fleet.replica(replica.id) !== undefined
    if (!this.#isStopped && isThere) this.#judge(replica, report)
  }

  #forgetGone(): void {
    const { fleet } = this.#platform.policies
    for (const id of this.#ready.keys()) if (fleet.replica(id) === undefined) this.#ready.delete(id)
  }

  #judge(replica: Replica, report: ReplicaReport): void {
    const { turnstile, policies, world } = this.#platform
    const { runningCount, waitingCount, kvUsageRatio, outlook, roundTripUs } = report
    if (outlook !== undefined)
      policies.poolsById.get(replica.poolId)?.outlook?.report(world.clock.now(), outlook, roundTripUs)
    if (report.isReady && runningCount !== undefined) {
      const kvTokensMax = policies.poolsById.get(replica.poolId)?.kvTokensMax ?? 0
      const kvTokens = Number.isFinite(kvTokensMax) ? Math.round((kvUsageRatio ?? 0) * kvTokensMax) : 0
      turnstile.replicaReported(replica.id, { sequences: runningCount + (waitingCount ?? 0), kvTokens })
    }
    if (this.#ready.get(replica.id) === report.isReady) return
    this.#ready.set(replica.id, report.isReady)
    const { isReady, because } = report
    const now = world.clock.now()
    world.journal.record({ kind: 'replica-reported', at: now, replicaId: replica.id, isReady, because })
    if (!isReady) policies.placer.restarted(replica.id)
    this.#platform.applyHealth(policies.health.report(now, replica.id, isReady))
  }

  /** One pool: what is asked of it, how far behind it is, whether offline work must wait, and how we have judged. */
  #weigh(now: Instant, known: PoolPolicies): void {
    const { policies, world } = this.#platform
    const { pool, wait, demand, shedding, audit } = known
    const facts = policies.dispatcher.poolFacts(pool.id)
    const readyReplicaCount = facts?.readyReplicaCount ?? 0
    const drainPerUs = wait.drainPerUs(now, readyReplicaCount)
    demand.settleLevel(now, drainPerUs)
    const backlogUs = wait.backlogCost === 0 ? 0 : wait.backlogCost / drainPerUs
    const pressure = pressureOf({ predictedUs: backlogUs, affordableUs: policies.tightestPromise.ttftUs })
    const change = shedding.observe(now, pressure)
    if (change !== undefined) {
      const { isShed, because } = change
      world.journal.record({ kind: 'offline-shedding-changed', at: now, poolId: pool.id, isShed, pressure, because })
    }
    // Nobody waits although a replica is open: what a second of its work would cost is room that nobody wanted.
    if (facts !== undefined && facts.queuedCount === 0 && facts.openReplicaCount > 0) {
      const roomCost = (drainPerUs / Math.max(1, readyReplicaCount)) * facts.openReplicaCount * this.#intervalUs
      for (const wrong of audit.sawUnusedRoom(now, roomCost)) policies.lengths.count('false-reject', wrong.promptTokens)
    }
    const { falseRejects, rightRejects } = audit.view(now)
    const { observed, falseAdmits } = policies.calibration.view()
    world.journal.record({
      kind: 'pool-reported',
      at: now,
      poolId: pool.id,
      queuedCount: facts?.queuedCount ?? 0,
      queuedCost: facts?.queuedCost ?? 0,
      heldCount: facts?.heldCount ?? 0,
      readyReplicaCount,
      pressure,
      drainPerUs,
      falseRejects,
      rightRejects,
      observedCount: observed,
      falseAdmits,
    })
  }

  #again(): void {
    if (this.#isStopped) return
    const { clock } = this.#platform.world
    this.#cancelTimer = clock.at(clock.now() + this.#intervalUs, () => {
      void this.tick().then(() => this.#again())
    })
  }
}
