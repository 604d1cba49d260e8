import type { Instant } from '../../base/clock.ts'
import type { AutoscaleTerms, PoolSeen } from '../../domain/autoscale.ts'

/**
 * How many replicas should a pool have? One rule for each way of finding out; all are asked once a tick with what is seen,
 * and answer with a number that is then kept within the operator's bounds (`pool-scaler.ts`).
 */
export interface ScalingRule {
  /** Replicas that are wanted now: up at once, down as slowly as the rule does it. `current` counts those on their way. */
  wanted(now: Instant, seen: PoolSeen, current: number): number
  /** What is asked of the pool, in work a microsecond, where the rule knows. */
  readonly demandPerUs: number
}

export type RuleTerms = Pick<AutoscaleTerms, 'utilisationRatio' | 'drainTargetUs' | 'queueTarget' | 'minWarm' | 'max'>
