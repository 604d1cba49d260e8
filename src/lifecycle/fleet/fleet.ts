import type { Instant } from '../../base/clock.ts'
import { type AutoscaleTerms, NO_AUTOSCALE } from '../../domain/autoscale.ts'
import type { Model, Pool, Release, Replica } from '../../domain/fleet.ts'
import { PoolScaler } from '../../policy/autoscale/pool-scaler.ts'
import { TenantRatios } from '../../policy/planning/tenant-ratios.ts'
import type { PoolPolicies } from './pool-policies.ts'

/**
 * What is there to run on right now? The models, the pools, and which pools may be chosen. `change-fleet.ts` is the only
 * one that changes it; everybody else reads, at the moment of asking, and keeps no copy.
 *
 * A pool that is closing is known by its id (its tickets still wait and run there) and is in no release's list any more.
 */
export class Fleet {
  readonly #models = new Map<string, Model>()
  readonly #releases = new Map<string, Release>()
  readonly #ratios = new Map<string, TenantRatios>()
  readonly #poolsById = new Map<string, PoolPolicies>()
  readonly #replicas = new Map<string, Replica>()
  /** By engine: the replicas that are it, of as many pools, the first known first. */
  readonly #byEngine = new Map<string, Set<Replica>>()
  readonly #poolsByRelease = new Map<string, PoolPolicies[]>()
  readonly #peersByModel = new Map<string, PoolPolicies[]>()

  get models(): ReadonlyMap<string, Model> {
    return this.#models
  }

  get releases(): ReadonlyMap<string, Release> {
    return this.#releases
  }

  get ratios(): ReadonlyMap<string, TenantRatios> {
    return this.#ratios
  }

  get poolsById(): ReadonlyMap<string, PoolPolicies> {
    return this.#poolsById
  }

  /** Those that may be chosen. */
  get poolsByRelease(): ReadonlyMap<string, readonly PoolPolicies[]> {
    return this.#poolsByRelease
  }

  /** Gateways of other regions that may have the model, whichever release they choose. */
  get peersByModel(): ReadonlyMap<string, readonly PoolPolicies[]> {
    return this.#peersByModel
  }

  pools(): readonly Pool[] {
    return Array.from(this.#poolsById.values(), ({ pool }) => pool)
  }

  replica(id: string): Replica | undefined {
    return this.#replicas.get(id)
  }

  /** The replicas of all pools that are the same engine, this one included; empty where the replica names none. */
  sameEngine({ engineId }: Replica): Iterable<Replica> {
    return (engineId === undefined ? undefined : this.#byEngine.get(engineId)) ?? []
  }

  /** The replica that stands for its engine, where that is counted once: its price, its seconds. */
  standsFor(replica: Replica): Replica {
    for (const first of this.sameEngine(replica)) return first
    return replica
  }

  #enter(replica: Replica): void {
    this.#replicas.set(replica.id, replica)
    const { engineId } = replica
    if (engineId !== undefined)
      this.#byEngine.set(engineId, (this.#byEngine.get(engineId) ?? new Set<Replica>()).add(replica))
  }

  #leave(replica: Replica): void {
    this.#replicas.delete(replica.id)
    const { engineId } = replica
    const same = engineId === undefined ? undefined : this.#byEngine.get(engineId)
    if (same?.delete(replica) === true && same.size === 0) this.#byEngine.delete(engineId as string)
  }

  /** With all of its releases: those that it had and has no more are forgotten. */
  putModel(model: Model, releases: readonly Release[]): void {
    for (const id of this.#models.get(model.name)?.releases ?? []) this.#releases.delete(id)
    for (const release of releases) this.#releases.set(release.id, release)
    this.#models.set(model.name, model)
    if (!this.#ratios.has(model.name)) this.#ratios.set(model.name, new TenantRatios())
  }

  dropModel(name: string): void {
    for (const id of this.#models.get(name)?.releases ?? []) this.#releases.delete(id)
    this.#models.delete(name)
    this.#ratios.delete(name)
  }

  addPool(known: PoolPolicies): void {
    const { id, replicas } = known.pool
    for (const replica of replicas) this.#enter(replica)
    this.#poolsById.set(id, known)
    const [lists, key] = this.#listsOf(known)
    lists.set(key, [...(lists.get(key) ?? []), known])
  }

  /** No longer to be chosen; still known. */
  closePool(poolId: string): void {
    const known = this.#poolsById.get(poolId)
    if (known === undefined) return
    const [lists, key] = this.#listsOf(known)
    const others = (lists.get(key) ?? []).filter((pool) => pool !== known)
    if (others.length === 0) lists.delete(key)
    else lists.set(key, others)
  }

  /** Another region's gateway is found by its model, a pool of engines by its release. */
  #listsOf({ pool }: PoolPolicies): [Map<string, PoolPolicies[]>, string] {
    return pool.isPeer === true ? [this.#peersByModel, pool.model] : [this.#poolsByRelease, pool.releaseId]
  }

  dropPool(poolId: string): void {
    this.closePool(poolId)
    for (const replica of this.#poolsById.get(poolId)?.pool.replicas ?? []) this.#leave(replica)
    this.#poolsById.delete(poolId)
  }

  /** Kept for these tenants from now on; for everybody when undefined. */
  dedicate(known: PoolPolicies, dedicatedTo: readonly string[] | undefined): void {
    known.pool = { ...known.pool, dedicatedTo }
  }

  /** Other terms of autoscaling from now on. */
  scale(known: PoolPolicies, autoscale: AutoscaleTerms | undefined, now: Instant): void {
    known.pool = { ...known.pool, autoscale }
    known.scaler = new PoolScaler(autoscale ?? NO_AUTOSCALE, now)
  }

  setReplicas(known: PoolPolicies, replicas: readonly Replica[]): void {
    // Those that stay keep their place: the first stands for its engine.
    const staying = new Set(replicas)
    for (const replica of known.pool.replicas) if (!staying.has(replica)) this.#leave(replica)
    for (const replica of replicas) if (this.#replicas.get(replica.id) !== replica) this.#enter(replica)
    known.pool = { ...known.pool, replicas }
  }
}
