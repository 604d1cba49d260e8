import type { Instant } from '../../base/clock.ts'
import type { WeightChange } from '../../domain/share-path.ts'
import type { PredictedWait } from '../../policy/admission/predicted-wait.ts'
import type { BacklogListener, QueuedPart } from '../../policy/dispatch/backlog-listener.ts'
import type { PoolPolicies } from '../fleet/pool-policies.ts'

/**
 * Which wait predictor hears of a change to the queue? The one of the pool in which it happened. The dispatcher's book
 * calls this listener, and nothing else feeds the predictors, so what admission predicts from is what is queued.
 *
 * A pool that the fleet does not know has no predictor, and changes there are not counted.
 */
export class WaitMeters implements BacklogListener {
  readonly #pools: { readonly poolsById: ReadonlyMap<string, Pick<PoolPolicies, 'wait'>> }

  constructor(pools: { readonly poolsById: ReadonlyMap<string, Pick<PoolPolicies, 'wait'>> }) {
    this.#pools = pools
  }

  joined(now: Instant, part: QueuedPart): void {
    this.#waitOf(part)?.join(now, part)
  }

  granted(now: Instant, part: QueuedPart): void {
    this.#waitOf(part)?.granted(now, part)
  }

  left(part: QueuedPart): void {
    this.#waitOf(part)?.withdrawn(part)
  }

  /**
   * Told with the first token and not with the last, because waiting tickets wait for turns: at the start of a burst no
   * answer ends for seconds, and yet turns are given.
   */
  begun(now: Instant, part: QueuedPart, turn: { readonly grantedAt: Instant; readonly replicaCount: number }): void {
    this.#waitOf(part)?.begun(now, { cost: part.cost, shareUs: part.shareUs, ...turn })
  }

  ended(now: Instant, part: QueuedPart): void {
    this.#waitOf(part)?.ended(now)
  }

  reweighed(poolId: string, change: WeightChange): void {
    this.#pools.poolsById.get(poolId)?.wait.reweigh(change)
  }

  #waitOf({ poolId }: QueuedPart): PredictedWait | undefined {
    return this.#pools.poolsById.get(poolId)?.wait
  }
}
