import type { Model, Pool, Release, Replica } from '../../domain/fleet.ts'
import { TokenRatio } from '../../policy/planning/token-ratio.ts'
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
  readonly #ratios = new Map<string, TokenRatio>()
  readonly #poolsById = new Map<string, PoolPolicies>()
  readonly #replicas = new Map<string, Replica>()
  readonly #poolsByRelease = new Map<string, PoolPolicies[]>()
  readonly #peersByModel = new Map<string, PoolPolicies[]>()

  get models(): ReadonlyMap<string, Model> {
    return this.#models
  }

  get releases(): ReadonlyMap<string, Release> {
    return this.#releases
  }

  get ratios(): ReadonlyMap<string, TokenRatio> {
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

  /** With all of its releases: those that it had and has no more are forgotten. */
  putModel(model: Model, releases: readonly Release[]): void {
    for (const id of this.#models.get(model.name)?.releases ?? []) this.#releases.delete(id)
    for (const release of releases) this.#releases.set(release.id, release)
    this.#models.set(model.name, model)
    if (!this.#ratios.has(model.name)) this.#ratios.set(model.name, new TokenRatio())
  }

  dropModel(name: string): void {
    for (const id of this.#models.get(name)?.releases ?? []) this.#releases.delete(id)
    this.#models.delete(name)
    this.#ratios.delete(name)
  }

  addPool(known: PoolPolicies): void {
    const { id, releaseId, model, replicas, isPeer } = known.pool
    for (const replica of replicas) this.#replicas.set(replica.id, replica)
    this.#poolsById.set(id, known)
    const [lists, key] = isPeer === true ? [this.#peersByModel, model] : [this.#poolsByRelease, releaseId]
    const siblings = lists.get(key)
    if (siblings === undefined) lists.set(key, [known])
    else siblings.push(known)
  }

  /** No longer to be chosen; still known. */
  closePool(poolId: string): void {
    const known = this.#poolsById.get(poolId)
    if (known === undefined) return
    const others = (this.#poolsByRelease.get(known.pool.releaseId) ?? []).filter((pool) => pool !== known)
    if (others.length === 0) this.#poolsByRelease.delete(known.pool.releaseId)
    else this.#poolsByRelease.set(known.pool.releaseId, others)
  }

  dropPool(poolId: string): void {
    this.closePool(poolId)
    for (const { id } of this.#poolsById.get(poolId)?.pool.replicas ?? []) this.#replicas.delete(id)
    this.#poolsById.delete(poolId)
  }

  setReplicas(known: PoolPolicies, replicas: readonly Replica[]): void {
    for (const { id } of known.pool.replicas) this.#replicas.delete(id)
    for (const replica of replicas) this.#replicas.set(replica.id, replica)
    known.pool = { ...known.pool, replicas }
  }
}
