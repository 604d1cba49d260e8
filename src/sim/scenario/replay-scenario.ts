import { PROFILE_SMALL } from '../../config/defaults.ts'
import type { BackendConfig, Config, ModelConfig, PoolConfig } from '../../config/schema.ts'

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
    .filter(({ backend }) => profileNamed(backend) === undefined)
    .map(
      ({ id, model }) =>
        `the GPU of pool ${id ?? model} is not in the configuration; it is played as ${PROFILE_SMALL}. Give --profile, or set backend.profile.`,
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
  const likened = { kind: 'simulated', profile: profileNamed(backend) ?? PROFILE_SMALL }
  return { ...pool, replicas: count, backend: backend.kind === 'simulated' ? backend : likened }
}

/** The profile of simulated engines, or the one that real engines are said to be like. */
const profileNamed = (backend: BackendConfig): string | undefined =>
  'profile' in backend ? backend.profile : undefined
