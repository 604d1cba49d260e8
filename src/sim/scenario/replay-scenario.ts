import { PROFILE_SMALL } from '../../config/defaults.ts'
import type { Config, ModelConfig, PoolConfig } from '../../config/schema.ts'

/**
 * The tree of a scenario that plays a recording on the platform of a configuration: the same models, tenants, promises
 * and policies, on simulated GPUs. Rollouts are left out: a what-if is about the fleet, not about a release on trial.
 */
export interface ReplayTree {
  readonly tree: Record<string, unknown>
  /** Pools whose GPU the configuration does not tell, one line each. */
  readonly guessed: readonly string[]
}

export function replayTree(config: Config, { name, durationS }: { name: string; durationS: number }): ReplayTree {
  const chat = config.models.find(({ kind }) => kind === 'chat')
  const tenant = config.tenants[0]?.id ?? ''
  const guessed = config.pools
    .filter(({ backend }) => backend.kind !== 'simulated')
    .map(
      ({ id, model }) =>
        `the engines of pool ${id ?? model} are real; they are played as ${PROFILE_SMALL}. Give --profile for another.`,
    )
  const { queue, admission, fairness, routing, ladder, limits, engine, slos, orgs, tenants } = config
  const platform = {
    queue,
    admission,
    fairness,
    routing,
    ladder,
    limits,
    engine,
    slos,
    orgs,
    tenants,
    models: config.models.map(withoutRollout),
    pools: config.pools.map(simulatedPool),
  }
  const workload = [
    {
      tenant,
      model: chat?.name ?? '',
      // A trace takes the place of these: only tenant and model count, where the trace names none.
      arrivals: { kind: 'poisson', ratePerS: 1 },
      prompt: { kind: 'fixed', tokens: 1 },
      output: { kind: 'fixed', tokens: 1 },
    },
  ]
  const about = 'A recording, on the platform of the configuration.'
  return { tree: structuredClone({ name, about, durationS, platform, workload }), guessed }
}

function withoutRollout(model: ModelConfig): object {
  const { rollout: _, ...rest } = model
  return rest
}

function simulatedPool({ backend, replicas, ...pool }: PoolConfig): object {
  const count = typeof replicas === 'number' ? replicas : replicas.length
  return { ...pool, replicas: count, backend: backend.kind === 'simulated' ? backend : USUAL }
}

const USUAL = { kind: 'simulated', profile: PROFILE_SMALL }
