import type { CancelTimer } from '../base/clock.ts'
import type { Replica } from '../domain/fleet.ts'
import type { Platform } from './platform.ts'
import type { ReplicaReport } from './ports.ts'

/**
 * The story of one tick: what do the replicas report, and what follows from it?
 *
 *   probe every replica ─▶ health ─▶ the dispatcher learns who may be used
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
    await this.tick()
    this.#again()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer?.()
  }

  async tick(): Promise<void> {
    const replicas = this.#platform.pools.flatMap((pool) => pool.replicas)
    await Promise.all(replicas.map((replica) => this.#look(replica)))
  }

  async #look(replica: Replica): Promise<void> {
    const { backends } = this.#platform.world
    let report: ReplicaReport
    try {
      report = await backends.of(replica).probe(replica)
    } catch (error) {
      report = { isReady: false, because: `the probe failed: ${String(error)}` }
    }
    if (!this.#isStopped) this.#judge(replica, report)
  }

  #judge(replica: Replica, report: ReplicaReport): void {
    if (this.#ready.get(replica.id) === report.isReady) return
    this.#ready.set(replica.id, report.isReady)
    const { clock, journal } = this.#platform.world
    journal.record({
      kind: 'replica-reported',
      at: clock.now(),
      replicaId: replica.id,
      isReady: report.isReady,
      because: report.because,
    })
    this.#platform.turnstile.replicaChanged(replica.id, { isReady: report.isReady })
  }

  #again(): void {
    if (this.#isStopped) return
    const { clock } = this.#platform.world
    this.#cancelTimer = clock.at(clock.now() + this.#intervalUs, () => {
      void this.tick().then(() => this.#again())
    })
  }
}
