import { isDeepStrictEqual } from 'node:util'
import type { PoolSetup } from '../config/to-domain.ts'
import { toPriceLists } from '../config/to-prices.ts'
import type { Release } from '../domain/fleet.ts'
import type { AdminRefusal } from '../gateway/fleet-admin.ts'
import { reconcileTenants } from './reconcile-tenants.ts'
import type { SettingsChange } from './settings-change.ts'
import type { Wanted } from './wanted.ts'

/**
 * What must change for the platform to be as it is wanted? Pure: the present and the wanted state in, a list of changes
 * out, in the order in which they are carried out; or the reasons why the changes cannot be made now.
 *
 * The engine, model, release, region and limit of a running pool do not change, because its tickets were admitted on
 * them. Such a change is refused with the pool's id; the operator adds another pool, then removes this one. The replicas
 * of a pool, the tenants that it is dedicated to, its autoscaling and the key that it is called with may change. Replicas
 * are compared by their addresses.
 *
 * Laws: equal states give no changes; the changes lead from the present to the wanted state; one refusal refuses all.
 * Example: weight 1 → 3 for tenant a, replica gpu-2 added to pool p: `[add-replica p-gpu-2, put-tenant a, reweigh a]`.
 */
/** The present state: the settings that were taken up last, and which of their pools run. */
export interface Present {
  readonly wanted: Wanted
  /** Pools that the platform knows. A pool that could not be made is missing. */
  readonly poolIds: ReadonlySet<string>
  /** Pools that were removed and still finish their answers. */
  readonly closingIds: ReadonlySet<string>
}

export type Reconciled =
  | { readonly kind: 'changes'; readonly changes: readonly SettingsChange[] }
  | { readonly kind: 'refused'; readonly refusals: readonly PoolRefusal[] }

/** The reason why a pool cannot be as it is wanted now. */
export interface PoolRefusal extends AdminRefusal {
  readonly poolId: string
}

export function reconcile(present: Present, wanted: Wanted): Reconciled {
  const refusals = Array.from(wanted.pools.values()).flatMap((setup) => refusalsOf(present, setup))
  if (refusals.length > 0) return { kind: 'refused', refusals }
  const before = present.wanted
  return {
    kind: 'changes',
    changes: [
      ...removedPools(present, wanted),
      ...putModels(before, wanted),
      ...Array.from(wanted.pools.values()).flatMap((setup) => poolChanges(present, setup)),
      ...removedModels(before, wanted),
      ...reconcileTenants(before, wanted),
      ...rolloutChanges(before, wanted),
      ...(isDeepStrictEqual(before.settings.prices, wanted.settings.prices)
        ? []
        : [{ kind: 'change-prices', lists: toPriceLists(wanted.settings) } as const]),
      ...(before.settings.admission.mode === wanted.settings.admission.mode
        ? []
        : [{ kind: 'change-mode', mode: wanted.settings.admission.mode } as const]),
    ],
  }
}

/** The pool as it runs; undefined when it must be added. */
function runningOf({ wanted, poolIds, closingIds }: Present, poolId: string): PoolSetup | undefined {
  return poolIds.has(poolId) && !closingIds.has(poolId) ? wanted.pools.get(poolId) : undefined
}

function refusalsOf(present: Present, setup: PoolSetup): PoolRefusal[] {
  const { id } = setup.pool
  const refused = (code: AdminRefusal['code'], because: string, param: string): PoolRefusal[] => [
    { code, because, param, poolId: id },
  ]
  if (present.closingIds.has(id)) {
    const because = `a pool ${id} was removed and still finishes its answers. Try again when it is gone, or take another id`
    return refused('pool-is-closing', because, 'pool.id')
  }
  const running = runningOf(present, id)
  if (running === undefined) return []
  const changed = Object.keys(fixedOf(setup)).filter(
    (key) => !isDeepStrictEqual(fixedOf(setup)[key as Fixed], fixedOf(running)[key as Fixed]),
  )
  if (changed.length > 0) {
    const because =
      setup.pool.isPeer === true
        ? `the region ${setup.pool.region} is connected, and how it is reached can only change with a restart`
        : `the pool ${id} is running, and its ${changed.join(', ')} cannot change under its requests; only its replicas, ` +
          'dedicatedTo and autoscale can. Add a pool with another id, then remove this one'
    return refused('pool-is-running', because, 'pool')
  }
  const moved = setup.pool.replicas.find(
    (replica) => running.urls.has(replica.id) && running.urls.get(replica.id) !== setup.urls.get(replica.id),
  )
  if (moved === undefined) return []
  const because = `the replica ${moved.id} is running, and only the scheme or path of its address is another. Take the address out, let the replica go, then add it again`
  return refused('pool-is-running', because, 'pool')
}

type Fixed = keyof ReturnType<typeof fixedOf>

/** The parts of a pool that cannot change. Addresses belong to its replicas, however they are written. */
function fixedOf({ pool, kind, backend, limit, engineName, isLocal, roundTripUs, usdPerHour }: PoolSetup) {
  const { model, releaseId: release, region, isInside: inside, isSpot: spot = false } = pool
  const engine = { backend: withoutAddress(backend), limit, engineName, isLocal, roundTripMs: roundTripUs, usdPerHour }
  return { model, kind, release, region, inside, spot, ...engine }
}

function withoutAddress(backend: PoolSetup['backend']): object {
  if (backend.kind === 'peer') {
    const { hash: _hash, apiKey: _key, apiKeyEnv: _env, urls: _gateways, ...how } = backend.peer
    return how
  }
  const {
    url: _url,
    apiKey: _key,
    apiKeyEnv: _env,
    ...engine
  } = {
    url: undefined,
    apiKey: undefined,
    apiKeyEnv: undefined,
    ...backend,
  }
  return engine
}

/** The key that the pool's engines are called with. A key that is changed where it is kept must not need a new pool. */
function keyOf({ backend }: PoolSetup): string | undefined {
  if (backend.kind === 'peer') return backend.peer.apiKey
  return backend.kind === 'simulated' ? undefined : backend.apiKey
}

function removedPools(present: Present, wanted: Wanted): SettingsChange[] {
  return Array.from(present.wanted.pools.keys())
    .filter((poolId) => runningOf(present, poolId) !== undefined && !wanted.pools.has(poolId))
    .map((poolId) => ({ kind: 'remove-pool', poolId }))
}

function putModels(before: Wanted, wanted: Wanted): SettingsChange[] {
  return wanted.models.flatMap((model): SettingsChange[] => {
    const releases = releasesOf(wanted, model.name)
    const known = before.models.find(({ name }) => name === model.name)
    const isSame = isDeepStrictEqual([known, releasesOf(before, model.name)], [model, releases])
    return isSame ? [] : [{ kind: 'put-model', model, releases }]
  })
}

const releasesOf = ({ releases }: Wanted, model: string): readonly Release[] =>
  releases.filter((release) => release.model === model)

function removedModels(before: Wanted, wanted: Wanted): SettingsChange[] {
  const kept = new Set(wanted.models.map(({ name }) => name))
  return before.models.filter(({ name }) => !kept.has(name)).map(({ name }) => ({ kind: 'remove-model', name }))
}

function poolChanges(present: Present, setup: PoolSetup): SettingsChange[] {
  const { id, dedicatedTo, replicas, autoscale } = setup.pool
  const running = runningOf(present, id)
  if (running === undefined) return [{ kind: 'add-pool', setup }]
  const had = new Set(running.pool.replicas.map((replica) => replica.id))
  const has = new Set(replicas.map((replica) => replica.id))
  return [
    ...(keyOf(setup) === keyOf(running) ? [] : [{ kind: 'rekey-pool', poolId: id, apiKey: keyOf(setup) } as const]),
    ...(isDeepStrictEqual(dedicatedTo, running.pool.dedicatedTo)
      ? []
      : [{ kind: 'dedicate-pool', poolId: id, dedicatedTo } as const]),
    ...(isDeepStrictEqual(autoscale, running.pool.autoscale)
      ? []
      : [{ kind: 'scale-pool', poolId: id, autoscale } as const]),
    // Additions come first, so that a pool whose addresses all change is never empty.
    ...replicas.flatMap((replica): SettingsChange[] =>
      had.has(replica.id) ? [] : [{ kind: 'add-replica', setup, replica }],
    ),
    ...[...had].flatMap((replicaId): SettingsChange[] =>
      has.has(replicaId) ? [] : [{ kind: 'remove-replica', replicaId }],
    ),
  ]
}

function rolloutChanges(before: Wanted, wanted: Wanted): SettingsChange[] {
  const models = new Set(wanted.models.map(({ name }) => name))
  const gone = before.models.filter(({ name }) => !models.has(name)).map(({ name }) => name)
  const dropped = [...before.rollouts.keys()].filter((model) => models.has(model) && !wanted.rollouts.has(model))
  return [
    ...gone.map((model) => ({ kind: 'remove-rollout', model, isModelGone: true }) as const),
    ...dropped.map((model) => ({ kind: 'remove-rollout', model, isModelGone: false }) as const),
    ...[...wanted.rollouts.values()].flatMap((settings): SettingsChange[] =>
      isDeepStrictEqual(before.rollouts.get(settings.model), settings) ? [] : [{ kind: 'put-rollout', settings }],
    ),
    ...[...before.holdouts.keys()].flatMap((model): SettingsChange[] =>
      wanted.holdouts.has(model) ? [] : [{ kind: 'remove-holdout', model }],
    ),
    ...[...wanted.holdouts.values()].flatMap((holdout): SettingsChange[] =>
      isDeepStrictEqual(before.holdouts.get(holdout.model), holdout) ? [] : [{ kind: 'put-holdout', holdout }],
    ),
  ]
}
