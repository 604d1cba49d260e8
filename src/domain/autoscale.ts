/**
 * The words of autoscaling: what a pool's operator wants, what is seen of the pool, and who may change the number of its
 * replicas. One writer, ever: nobody (`none`), something outside that reads our signals (`external`), or the gateway that
 * leads (`spillway`).
 */
export type AutoscaleWriter = 'none' | 'external' | 'spillway'

export const AUTOSCALE_WRITERS: readonly AutoscaleWriter[] = ['none', 'external', 'spillway']

/** How a number of replicas is found: by predicted demand, or, for comparison, as Kubernetes' autoscaler does. */
export type ScalingRuleName = 'predict' | 'hpa-queue' | 'hpa-util'

export interface AutoscaleTerms {
  readonly writer: AutoscaleWriter
  readonly rule: ScalingRuleName
  /** Replicas that are always there; 0 lets an idle pool go to zero. */
  readonly minWarm: number
  readonly max: number
  /** A pool that nobody asked anything of for so long goes to `minWarm`, if that is zero. */
  readonly idleToZeroUs: number
  /** Share of its replicas' work that is planned for; of `hpa-util`, the utilisation aimed at. */
  readonly utilisationRatio: number
  /** What waits should be worked off in this time, on top of what comes. */
  readonly drainTargetUs: number
  /** Of `hpa-queue`: requests that should wait or run for each replica. */
  readonly queueTarget: number
  /** Believed until cold starts were seen. */
  readonly coldStartUs: number
  /** Orders are journalled and not carried out. */
  readonly isDryRun: boolean
}

/** Of a pool whose operator says nothing: signals are made, and nobody writes. */
export const NO_AUTOSCALE: AutoscaleTerms = Object.freeze({
  writer: 'none',
  rule: 'predict',
  minWarm: 1,
  max: 1_000,
  idleToZeroUs: 600_000_000,
  utilisationRatio: 0.85,
  drainTargetUs: 60_000_000,
  queueTarget: 20,
  coldStartUs: 60_000_000,
  isDryRun: false,
})

/** What is seen of one pool at one instant, by all gateways together. Work is in weighted tokens, as fairness counts it. */
export interface PoolSeen {
  /** Work offered since the last look, refused or not, and the time since then. */
  readonly offeredCost: number
  readonly elapsedUs: number
  readonly backlogCost: number
  readonly queuedCount: number
  /** Requests that run. */
  readonly heldCount: number
  /** Work that one replica does in a microsecond. */
  readonly drainPerReplicaUs: number
  readonly readyCount: number
  /** Ordered, and not ready yet. */
  readonly pendingCount: number
  /** Share of what the ready replicas could do that they do; undefined where engines do not tell. */
  readonly workRatio: number | undefined
  readonly coldStartUs: number
}
