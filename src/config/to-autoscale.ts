import { msToUs } from '../base/clock.ts'
import type { AutoscaleTerms } from '../domain/autoscale.ts'
import type { Pool } from '../domain/fleet.ts'
import type { PoolConfig } from './schema.ts'

/** A pool's autoscaling: its terms in microseconds, and who carries them out. */
export interface ScalingSetup {
  readonly actuator: ActuatorConfig | undefined
  readonly dcgmUrl: string | undefined
}

type AutoscaleConfig = NonNullable<PoolConfig['autoscale']>

export type ActuatorConfig = NonNullable<AutoscaleConfig['actuator']>

export function toScaledPool({ autoscale, spot }: PoolConfig): Pick<Pool, 'autoscale' | 'isSpot'> {
  return {
    ...(autoscale !== undefined && { autoscale: toTerms(autoscale) }),
    ...(spot && { isSpot: true }),
  }
}

export function toScaling({ autoscale }: PoolConfig): ScalingSetup | undefined {
  return autoscale && { actuator: autoscale.actuator, dcgmUrl: autoscale.dcgmUrl }
}

function toTerms(config: AutoscaleConfig): AutoscaleTerms {
  const { writer, rule, minWarm, max, queueTarget } = config
  return {
    writer,
    rule,
    minWarm,
    max,
    queueTarget,
    idleToZeroUs: msToUs(config.idleToZeroMs),
    utilisationRatio: config.utilisation,
    drainTargetUs: msToUs(config.drainTargetMs),
    coldStartUs: msToUs(config.coldStartMs),
    isDryRun: config.dryRun,
  }
}
