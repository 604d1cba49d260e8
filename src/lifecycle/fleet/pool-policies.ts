import type { EngineSpeed, PoolSpeed } from '../../domain/engine-speed.ts'
import type { Pool, Replica } from '../../domain/fleet.ts'
import type { PredictedWait } from '../../policy/admission/predicted-wait.ts'
import type { RefusalAudit } from '../../policy/admission/refusal-audit.ts'
import type { Attainment } from '../../policy/autoscale/attainment.ts'
import type { OfferedWork } from '../../policy/autoscale/offered-work.ts'
import type { PoolScaler } from '../../policy/autoscale/pool-scaler.ts'
import type { Reading } from '../../policy/dispatch/long-prompts.ts'
import type { Demand } from '../../policy/ladder/demand.ts'
import type { OfflineShedding } from '../../policy/ladder/offline-shedding.ts'
import type { Limit } from '../../policy/limits/limit.ts'
import type { PoolDenial } from '../../policy/routing/pool-denial.ts'
import type { Presence } from '../../policy/routing/presence.ts'
import type { RegionOutlook } from '../../policy/routing/region-outlook.ts'
import type { ObservedSpeed } from '../../policy/twin/observed-speed.ts'
import type { Twins } from '../../policy/twin/twins.ts'
import type { LastReports } from './last-reports.ts'
import type { WorkMeter } from './work-meter.ts'

/**
 * The meters of one pool. They come and go with it.
 */
export interface PoolPolicies {
  /** With its replicas of the moment: read it, and keep no copy. Only `fleet.ts` sets it. */
  pool: Pool
  readonly wait: PredictedWait
  /** As busy as usual, learned; and as the engine's own model says it is alone. */
  readonly speed: ObservedSpeed
  readonly speedAlone: EngineSpeed
  /** What is known of one replica's engine: GPUs of a pool may differ. `steps` is absent where it tells nothing of them. */
  readonly engineOf: (replica: Replica) => Pick<PoolSpeed, 'alone' | 'steps'>
  /** What was learned of its engines' steps; undefined where they are known. */
  readonly twins: Twins | undefined
  /** The most that one replica's memory holds, as declared or told by its engines, not guessed: more is too big. */
  readonly kvTokensMax: number
  /** What one replica's memory holds, perhaps guessed, and a limit for it: GPUs of a pool may differ. */
  readonly kvTokensMaxOf: (replica: Replica) => number
  /** GPU memory of a token's keys and values; undefined where no profile says it. */
  readonly kvBytesPerToken: number | undefined
  readonly makeLimit: (replica: Replica) => Limit
  /** How the replica reads prompts; undefined where its step times are unknown. */
  readonly readingOf: (replica: Replica) => Reading | undefined
  /** What everybody asks for in full, against what fair sharing would give. */
  readonly demand: Demand
  readonly shedding: OfflineShedding
  /** How many replicas it should have. Only `fleet.ts` sets it, with other terms. */
  scaler: PoolScaler
  /** What it is offered, at all gateways; how much of that is served as promised; what its replicas last said. */
  readonly offered: OfferedWork
  readonly attainment: Attainment
  readonly reports: LastReports
  /** In the gateway’s own region; else so far away. */
  readonly isLocal: boolean
  readonly roundTripUs: number
  /** What another region’s gateway says of itself; undefined for a pool of engines. */
  readonly outlook: RegionOutlook | undefined
  readonly presence: Presence
  /** What its engines do of what they could do. */
  readonly work: WorkMeter
  /** Dollars for an hour of one replica; undefined where no price is known. */
  readonly usdPerHourOf: (replica: Replica) => number | undefined
  readonly denial: PoolDenial
  /** Were refusals for lateness right? */
  readonly audit: RefusalAudit
}
