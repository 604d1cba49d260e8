import { Cancellation } from '../../base/cancellation.ts'
import { type CancelTimer, type Clock, secondsToUs } from '../../base/clock.ts'
import type { Replica } from '../../domain/fleet.ts'
import { isGenerative } from '../../domain/request.ts'
import type { HealthChange } from '../../policy/routing/health.ts'
import { Progress, type WatchedWork } from '../../policy/routing/progress.ts'
import type { Policies } from '../policies.ts'
import type { Ending, QuestionKind, ReplicaReport, World } from '../ports.ts'
import type { Attempt, AttemptWatch } from '../ticket.ts'

/**
 * What becomes of a replica that has work and makes no progress? The policy (`policy/routing/progress.ts`) hears of every
 * attempt and of every report; here its suspicions become questions to the engine, and its verdicts the end of attempts.
 *
 *   suspected  ─▶ the engine is asked for one token, on a request of ours that no tenant pays
 *   stalled    ─▶ not ready; attempts there end as lost: another replica takes them, or their clients get the reason
 *              ─▶ asked again and again until it answers; then it is ready, with a slow start
 *
 * An engine that says that it sleeps is stalled at once. A question also decides whether the only replica of a pool, which
 * failed several times in a row, is ejected (`health.ts`).
 *
 * Engines without a question (tensors, other regions' gateways, hosted APIs that are not probed) are not watched, nor are
 * transits: how long they take is not known.
 *
 * Bounds: one question at a time for each replica, which its backend bounds; one timer for each replica with work.
 */

/** Between two questions to an engine that did not answer. With the backend's own limit it is back 2 s after it wakes. */
const ASK_AGAIN_US = secondsToUs(0.5)
/** Also what its clients get to read. */
const NO_PROGRESS = 'the engine makes no progress'
const ASLEEP = 'the engine sleeps'

export interface LivenessParts {
  readonly world: World
  readonly policies: Policies
  readonly applyHealth: (changes: readonly HealthChange[]) => void
}

interface Watched {
  readonly runs: Set<Run>
  timer: { readonly at: number; readonly cancel: CancelTimer } | undefined
  /** What to ask it: something of the kind that it is asked anyway. */
  question: QuestionKind
  isAsked: boolean
}

export class Liveness {
  readonly #parts: LivenessParts
  readonly #clock: Clock
  readonly #progress: Progress
  /** Bound: the replicas of the fleet. */
  readonly #watched = new Map<string, Watched>()
  #isStopped = false

  constructor(parts: LivenessParts) {
    this.#parts = parts
    this.#clock = parts.world.clock
    this.#progress = new Progress((replicaId) => this.#stepUs(replicaId))
  }

  /** Returns what ends the attempt: its own cancellation, or the one that also ends when the replica stalls. */
  begin(attempt: Attempt, cancellation: Cancellation): Cancellation {
    const { ticket, lease } = attempt
    const { kind } = ticket.request
    if (kind === 'transit' || kind === 'tensors' || !this.#canAsk(lease.replica)) return cancellation
    const watched = this.#of(lease.replica.id)
    watched.question = kind
    const run = new Run(
      this,
      this.#progress.begin(this.#clock.now(), lease.replica.id, this.#termsOf(attempt)),
      cancellation,
    )
    watched.runs.add(run)
    attempt.watch = run
    this.#arm(lease.replica.id, watched)
    return run.cancellation
  }

  over({ watch }: Attempt, ending: Ending): void {
    if (!(watch instanceof Run)) return
    watch.over()
    this.#progress.end(watch.work, ending.kind === 'finished')
    const watched = this.#watched.get(watch.work.replicaId)
    watched?.runs.delete(watch)
    this.#arm(watch.work.replicaId, watched)
  }

  /** What a replica said of itself. */
  report(replica: Replica, { isReady, isAsleep, workCount }: ReplicaReport): void {
    const now = this.#clock.now()
    const { id } = replica
    if (!isReady) this.#progress.restarted(now, id)
    else if (isAsleep === true && this.#canAsk(replica)) this.#stall(replica, ASLEEP)
    else if (workCount !== undefined && this.#progress.counted(now, id, workCount)) this.#resume(id)
  }

  /** The only replica of its pool failed several times in a row: does it answer us? */
  prove(replica: Replica): void {
    const { health } = this.#parts.policies
    const watched = this.#of(replica.id)
    if (watched.isAsked || !this.#canAsk(replica) || !health.isInDoubt(replica.id)) return
    void this.#ask(replica, watched).then((isAnswered) => {
      if (!isAnswered && this.#isThere(replica)) this.#parts.applyHealth(health.confirm(this.#clock.now(), replica.id))
    })
  }

  removed(replicaId: string): void {
    this.#watched.get(replicaId)?.timer?.cancel()
    this.#watched.delete(replicaId)
    this.#progress.remove(replicaId)
  }

  /** Nothing is watched any more: without reports nobody knows how far the engines are. */
  stop(): void {
    this.#isStopped = true
  }

  moved(work: WatchedWork, tokens: number): void {
    if (this.#progress.moved(this.#clock.now(), work, tokens)) this.#resume(work.replicaId)
  }

  blocked(work: WatchedWork, isBlocked: boolean): void {
    this.#progress.blocked(this.#clock.now(), work, isBlocked)
    this.#arm(work.replicaId, this.#watched.get(work.replicaId))
  }

  #look(replicaId: string): void {
    const watched = this.#watched.get(replicaId)
    if (watched === undefined || this.#isStopped) return
    watched.timer = undefined
    const said = this.#progress.look(this.#clock.now(), replicaId)
    this.#arm(replicaId, watched)
    const replica = this.#parts.policies.fleet.replica(replicaId)
    if (replica === undefined || said === undefined) return
    if (said === 'ask') void this.#askUntilAnswered(replica, watched)
    else this.#stall(replica, NO_PROGRESS)
  }

  /** First it gets no new work, then what it has moves. */
  #stall(replica: Replica, because: string): void {
    const watched = this.#of(replica.id)
    this.#progress.stall(replica.id)
    this.#parts.applyHealth(this.#parts.policies.health.stall(this.#clock.now(), replica.id, because))
    for (const run of watched.runs) run.stall(because)
    void this.#askUntilAnswered(replica, watched)
  }

  #resume(replicaId: string): void {
    this.#parts.applyHealth(this.#parts.policies.health.resume(this.#clock.now(), replicaId))
  }

  async #askUntilAnswered(replica: Replica, watched: Watched): Promise<void> {
    if (watched.isAsked || !this.#canAsk(replica)) return
    for (;;) {
      const isAnswered = await this.#ask(replica, watched)
      if (!this.#isThere(replica)) return
      if (isAnswered) {
        if (this.#progress.answered(this.#clock.now(), replica.id)) this.#resume(replica.id)
        return
      }
      if (!this.#progress.isStalled(replica.id)) return
      watched.isAsked = true
      await this.#clock.sleep(ASK_AGAIN_US)
      watched.isAsked = false
      if (!this.#isThere(replica) || !this.#progress.isStalled(replica.id)) return
    }
  }

  async #ask(replica: Replica, watched: Watched): Promise<boolean> {
    watched.isAsked = true
    try {
      return (await this.#parts.world.backends.of(replica).ask?.(replica, watched.question)) ?? false
    } catch {
      return false
    } finally {
      watched.isAsked = false
    }
  }

  #isThere(replica: Replica): boolean {
    return !this.#isStopped && this.#parts.policies.fleet.replica(replica.id) === replica
  }

  #canAsk(replica: Replica): boolean {
    return this.#parts.world.backends.of(replica).ask !== undefined
  }

  #arm(replicaId: string, watched: Watched | undefined): void {
    if (watched === undefined) return
    const at = this.#progress.lookAt(replicaId)
    // A look that comes too early only sets the next one.
    if (at !== undefined && watched.timer !== undefined && watched.timer.at <= at) return
    watched.timer?.cancel()
    watched.timer = at === undefined ? undefined : { at, cancel: this.#clock.at(at, () => this.#look(replicaId)) }
  }

  #of(replicaId: string): Watched {
    let watched = this.#watched.get(replicaId)
    if (watched === undefined) {
      watched = { runs: new Set(), timer: undefined, question: 'chat', isAsked: false }
      this.#watched.set(replicaId, watched)
    }
    return watched
  }

  #termsOf({ ticket, lease, plan, isBuffered }: Attempt) {
    const { request } = ticket
    const { promptTokens } = plan.estimate
    const alone = this.#parts.policies.poolsById.get(lease.replica.poolId)?.engineOf(lease.replica).alone
    const isPiece = isGenerative(request.kind) && (isBuffered || !request.isStreamed)
    const readUs = alone?.prefillUs(promptTokens, 0) ?? 0
    return { promptTokens, readUs, pieceTokens: isPiece ? plan.outputTokensMax : 0 }
  }

  #stepUs(replicaId: string): number {
    const { fleet, poolsById, dispatcher } = this.#parts.policies
    const replica = fleet.replica(replicaId)
    const pool = replica && poolsById.get(replica.poolId)
    const load = dispatcher.loadOf(replicaId)
    if (replica === undefined || pool === undefined || load === undefined) return 0
    const { alone, steps } = pool.engineOf(replica)
    const { sequences, contextTokens } = load
    return steps?.meanTokenUs(sequences, contextTokens, 0) ?? alone.tokenUs(contextTokens / Math.max(1, sequences))
  }
}

class Run implements AttemptWatch {
  readonly #liveness: Liveness
  readonly work: WatchedWork
  readonly cancellation = new Cancellation()
  readonly #forget: () => void
  stalledBecause: string | undefined
  #isOver = false

  constructor(liveness: Liveness, work: WatchedWork, outer: Cancellation) {
    this.#liveness = liveness
    this.work = work
    this.#forget = outer.onCancel((because) => this.cancellation.cancel(because))
  }

  moved(tokens: number): void {
    if (!this.#isOver) this.#liveness.moved(this.work, tokens)
  }

  held(until: Promise<void>): void {
    if (this.#isOver) return
    this.#liveness.blocked(this.work, true)
    const free = (): void => {
      if (!this.#isOver) this.#liveness.blocked(this.work, false)
    }
    until.then(free, free)
  }

  stall(because: string): void {
    if (this.cancellation.isCancelled) return
    this.stalledBecause = because
    this.cancellation.cancel('stalled')
  }

  over(): void {
    this.#isOver = true
    this.#forget()
  }
}
