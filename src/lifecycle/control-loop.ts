import type { CancelTimer, Instant } from '../base/clock.ts'
import type { PoolReported } from '../domain/entry.ts'
import type { Replica } from '../domain/fleet.ts'
import { pressureOf } from '../policy/ladder/pressure.ts'
import type { Gauges } from '../policy/limits/ledger.ts'
import type { Fleet } from './fleet/fleet.ts'
import type { PoolPolicies } from './fleet/pool-policies.ts'
import { Probes } from './fleet/probes.ts'
import { keepTwins } from './learning/keep-twins.ts'
import { journalRungChange } from './learning/observe-pressure.ts'
import { teachGauges } from './learning/teach-twin.ts'
import type { Platform } from './platform.ts'
import type { ReplicaReport } from './ports.ts'
import { beginRollouts, tickRollouts } from './rollout/change-rollout.ts'
import { runHoldouts } from './rollout/run-holdout.ts'
import { serveRequest } from './serve-request.ts'

/**
 * The story of one tick: what did the replicas report, and what follows from it?
 *
 *   as reports come   replica asked (`fleet/probes.ts`) ─▶ health, gauges, another region's outlook
 *   every interval    demand and pressure ─▶ ladder ─▶ offline shedding ─▶ rollouts, on what the last reports left
 *   every half minute what was learned of engines ─▶ kept for the next process, from when it is believed
 *
 * The tick waits for no replica: it runs in one instant, every interval, and reads what the last reports left in the
 * meters. The questions to the replicas begin just before the tick, at the same instant. A replica that answers within
 * the instant (every simulated one does) is heard by that tick; an answer that comes later is acted on when it comes.
 *
 * What the loop does not do: wait for a replica, except at the start, which must know which replicas are there. A silent
 * replica delays the start by at most PROBE_US_MAX.
 *
 * Laws: L9 (one order in virtual time, whatever the replicas do).
 * Example: at an interval of 1 s, with one silent replica among ten, ticks are at 1 s, 2 s, 3 s …; the silent
 * replica is away 5 s after it was asked, and the reports of the other nine are never older than a second.
 */
export class ControlLoop {
  readonly #platform: Platform
  readonly #intervalUs: number
  readonly #probes: Probes
  /** Whether each replica was ready in its last report. */
  readonly #ready = new WeakMap<Replica, boolean>()
  #isStopped = false
  #twinsKeptAt: Instant = Number.NEGATIVE_INFINITY
  #cancelTimers: readonly CancelTimer[] = []

  constructor(platform: Platform, intervalUs: number) {
    const { clock, backends } = platform.world
    this.#platform = platform
    this.#intervalUs = intervalUs
    this.#probes = new Probes({ clock, backends, onReport: (replica, report) => this.#judge(replica, report) })
  }

  /** Resolves after the first tick: the platform then knows which replicas are there. */
  async start(): Promise<void> {
    beginRollouts(this.#platform)
    this.#platform.costs.start()
    await this.lookAndTick()
    this.#scheduleAfter(this.#platform.world.clock.now())
  }

  /** `isAnythingLive`: whether a ticket may still come, also from elsewhere; absent: only those that are here. */
  stop(isAnythingLive?: () => boolean): void {
    this.#isStopped = true
    this.#platform.costs.stop(isAnythingLive)
    for (const cancel of this.#cancelTimers) cancel()
    this.#probes.stop()
    this.#platform.liveness.stop()
  }

  /** A round of questions, then a tick when every replica has reported or its time limit has passed. */
  async lookAndTick(): Promise<void> {
    await this.#look()
    if (!this.#isStopped) this.tick(this.#platform.world.clock.now())
  }

  tick(now: Instant): void {
    const { policies } = this.#platform
    for (const pool of policies.poolsById.values()) this.#weigh(now, pool)
    this.#platform.applyHealth(policies.health.onWakeup(now))
    this.#platform.fleetChanges.sweep()
    this.#platform.autoscaling.tick(now)
    for (const change of policies.ladder.tick(now)) journalRungChange(this.#platform, change)
    tickRollouts(this.#platform)
    this.#platform.outputs.expire(now)
    if (now - this.#twinsKeptAt >= KEEP_TWINS_US && keepTwins(this.#platform)) this.#twinsKeptAt = now
    runHoldouts(this.#platform, serveRequest)
  }

  #look(): Promise<void> {
    return this.#probes.ask(this.#platform.pools.flatMap(({ replicas }) => replicas))
  }

  #judge(replica: Replica, report: ReplicaReport): void {
    const { turnstile, policies, world } = this.#platform
    // The replica may have been removed while it was asked, and another one may have its name now.
    if (policies.fleet.replica(replica.id) !== replica) return
    const { outlook, roundTripUs } = report
    const now = world.clock.now()
    policies.poolsById.get(replica.poolId)?.outlook?.of(replica.id).report(now, outlook, roundTripUs)
    teachGauges(this.#platform, replica.id, report)
    policies.poolsById.get(replica.poolId)?.reports.report(replica, report)
    policies.poolsById.get(replica.poolId)?.work.report(now, replica, report.fullWorkUs)
    const gauges = gaugesOf(policies.poolsById.get(replica.poolId), replica, report)
    if (gauges !== undefined) turnstile.replicaReported(replica.id, gauges)
    const { isReady, because } = report
    const isNews = this.#ready.get(replica) !== isReady
    if (isNews) {
      this.#ready.set(replica, isReady)
      world.journal.record({ kind: 'replica-reported', at: now, replicaId: replica.id, isReady, because })
      if (!isReady) policies.placer.restarted(replica.id)
    }
    // Also what is no news: a refused connection may have taken the replica away since (`learning/learn.ts`).
    this.#platform.applyHealth(policies.health.report(now, replica.id, isReady))
    if (isNews || isReady) this.#platform.liveness.report(replica, report)
  }

  /** One pool: what is asked of it, how far behind it is, whether offline work must wait, and how we have judged. */
  #weigh(now: Instant, known: PoolPolicies): void {
    const { policies, world } = this.#platform
    const { pool, wait, demand, shedding, audit } = known
    const facts = policies.dispatcher.poolFacts(pool.id)
    const readyReplicaCount = facts?.readyReplicaCount ?? 0
    const drainPerUs = wait.drainPerUs(now, facts?.replicaParts ?? 0)
    demand.settleLevel(now, drainPerUs)
    const backlogUs = wait.backlogCost === 0 ? 0 : wait.backlogCost / drainPerUs
    const pressure = pressureOf({ predictedUs: backlogUs, affordableUs: policies.tightestPromise.ttftUs })
    const change = shedding.observe(now, pressure)
    if (change !== undefined) {
      const { isShed, because } = change
      world.journal.record({ kind: 'offline-shedding-changed', at: now, poolId: pool.id, isShed, pressure, because })
    }
    for (const { promptTokens } of audit.takeFalse(now)) policies.lengths.count('false-reject', promptTokens)
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
      ...known.work.view(),
      ...backloggedAt(this.#platform, pool.id),
      ...priceOf(known, policies.fleet),
    })
  }

  /**
   * Timers of one instant are called in the order in which they were set, so the round of questions begins before the
   * tick. A process that was held up continues from the instant at which it woke: missed ticks are not made up for.
   */
  #scheduleAfter(lastAt: Instant): void {
    if (this.#isStopped) return
    const { clock } = this.#platform.world
    const dueAt = lastAt + this.#intervalUs
    const at = dueAt > clock.now() ? dueAt : clock.now() + this.#intervalUs
    this.#cancelTimers = [
      clock.at(at, () => void this.#look()),
      clock.at(at, () => {
        this.tick(clock.now())
        this.#scheduleAfter(at)
      }),
    ]
  }
}

/** Replicas that are away cost as much as those that work; replicas without a price are not guessed at. */
function priceOf({ pool, usdPerHourOf }: PoolPolicies, fleet: Fleet): { readonly usdPerHour?: number } {
  let usdPerHour: number | undefined
  for (const replica of pool.replicas) {
    // An engine that several pools have is paid for once.
    if (replica.engineId !== undefined && fleet.standsFor(replica) !== replica) continue
    const usd = usdPerHourOf(replica)
    if (usd !== undefined) usdPerHour = (usdPerHour ?? 0) + usd
  }
  return usdPerHour === undefined ? {} : { usdPerHour }
}

/** Tenants told in one report: enough to judge fairness by, and a few kilobytes. */
const BACKLOGGED_MAX = 100

/** Keys told in one report: those that people look at. */
const WAITING_KEYS_MAX = 20

function backloggedAt({ policies }: Platform, poolId: string): Pick<PoolReported, 'backlogged' | 'waiting'> {
  const backlogged = policies.dispatcher.backlogged(poolId, BACKLOGGED_MAX)
  const waiting = policies.dispatcher.poolFacts(poolId)?.waitingKeys(WAITING_KEYS_MAX)
  return { ...(backlogged.length > 0 && { backlogged }), ...(waiting && { waiting }) }
}

/** Microseconds between two memories of what was learned: a restart loses no more than this. */
const KEEP_TWINS_US = 30_000_000

/**
 * What the engine tells of its load; undefined when it tells nothing. Where it tells how many run and not how many wait,
 * those that run are there at least.
 */
function gaugesOf(known: PoolPolicies | undefined, replica: Replica, report: ReplicaReport): Gauges | undefined {
  const { isReady, runningCount, waitingCount, kvUsageRatio } = report
  if (!isReady || known === undefined || (runningCount === undefined && kvUsageRatio === undefined)) return undefined
  const kvTokensMax = known.kvTokensMaxOf(replica)
  const isOfLoad = known.twins?.of(replica.id).kv.countsCache !== true
  const isKvKnown = kvUsageRatio !== undefined && Number.isFinite(kvTokensMax) && isOfLoad
  return {
    sequences: runningCount === undefined ? undefined : runningCount + (waitingCount ?? 0),
    kvTokens: isKvKnown ? Math.round(kvUsageRatio * kvTokensMax) : undefined,
  }
}
