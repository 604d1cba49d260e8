import type { Clock } from '../../base/clock.ts'
import type { AutoscaleTerms } from '../../domain/autoscale.ts'
import type { FleetChanged } from '../../domain/entry.ts'
import type { Model, Release, Replica } from '../../domain/fleet.ts'
import type { HealthChange } from '../../policy/routing/health.ts'
import { recallTwin } from '../learning/keep-twins.ts'
import type { Policies } from '../policies.ts'
import type { World } from '../ports.ts'
import type { Turnstile } from '../turnstile.ts'
import type { PoolPolicies } from './pool-policies.ts'
import { shareTwin } from './share-twin.ts'

/**
 * How does the fleet change while it runs? One change at a time, in one instant, told in the journal with who and why.
 *
 *   add:     known ─▶ not ready until a probe says so ─▶ slow start (`health.ts`)
 *   remove:  draining: no new lease, running ones end ─▶ the last lease is back ─▶ forgotten everywhere
 *
 * A pool that is removed closes first: nobody new is sent to it, and whoever was promised a turn there still gets it,
 * because a promise is not broken for an operator's convenience. Waiting is bounded by every ticket's own patience, and
 * attempts by their backends, so a pool always closes in the end. Then its replicas go, and the pool itself.
 *
 * Forgotten everywhere means: health, placer and prefix index, dispatcher (room, limit, lanes), ladder, calibration,
 * backends, and, by the journal's entry, metrics and logs.
 *
 * Laws: L1 and L2 (nothing that is held is taken away), L6 (a change that makes room gives turns at once).
 * Example: a replica with two running answers is removed: draining, nothing new; the second answer ends: it is gone.
 */
export type FleetChange =
  | { readonly kind: 'put-model'; readonly model: Model; readonly releases: readonly Release[] }
  | { readonly kind: 'remove-model'; readonly name: string }
  | { readonly kind: 'add-pool'; readonly known: PoolPolicies }
  | { readonly kind: 'remove-pool'; readonly poolId: string }
  | { readonly kind: 'dedicate-pool'; readonly poolId: string; readonly dedicatedTo: readonly string[] | undefined }
  | { readonly kind: 'scale-pool'; readonly poolId: string; readonly autoscale: AutoscaleTerms | undefined }
  | { readonly kind: 'add-replica'; readonly replica: Replica }
  | { readonly kind: 'drain-replica' | 'undrain-replica' | 'remove-replica'; readonly replicaId: string }

/** Who changed it, and why: never empty. */
export interface ChangeReason {
  readonly by: string
  readonly because: string
}

export type FleetAnswer =
  | { readonly kind: 'changed' }
  | { readonly kind: 'refused'; readonly code: FleetRefusal; readonly because: string }

export type FleetRefusal =
  | 'no-such-model'
  | 'no-such-release'
  | 'no-such-pool'
  | 'no-such-replica'
  | 'name-taken'
  | 'still-used'

export interface FleetParts {
  readonly world: World
  readonly policies: Policies
  readonly turnstile: Turnstile
  readonly applyHealth: (changes: readonly HealthChange[]) => void
  /** The replica is gone: it is not watched any more. */
  readonly forget: (replicaId: string) => void
  /** Whether a live ticket still names this pool: it may wait, run, or be tried once more there. */
  readonly isNamed: (poolId: string) => boolean
}

export class FleetChanges {
  readonly #parts: FleetParts
  readonly #clock: Clock
  /** What is on its way out, and why. */
  readonly #leavingReplicas = new Map<string, ChangeReason>()
  readonly #leavingPools = new Map<string, ChangeReason>()

  constructor(parts: FleetParts) {
    this.#parts = parts
    this.#clock = parts.world.clock
  }

  get isAnythingLeaving(): boolean {
    return this.#leavingReplicas.size + this.#leavingPools.size > 0
  }

  isLeaving(id: string): boolean {
    return this.#leavingReplicas.has(id) || this.#leavingPools.has(id)
  }

  /** What was there before we were: told nobody, and warm already. */
  found(models: readonly Model[], releases: readonly Release[], pools: readonly PoolPolicies[]): void {
    const { fleet } = this.#parts.policies
    for (const model of models) {
      fleet.putModel(
        model,
        releases.filter((release) => release.model === model.name),
      )
    }
    for (const known of pools) this.#enter(known, true)
  }

  change(change: FleetChange, reason: ChangeReason, isFounding = false): FleetAnswer {
    switch (change.kind) {
      case 'put-model':
        return this.#putModel(change.model, change.releases, reason)
      case 'remove-model':
        return this.#removeModel(change.name, reason)
      case 'add-pool':
        return this.#addPool(change.known, reason, isFounding)
      case 'remove-pool':
        return this.#removePool(change.poolId, reason)
      case 'dedicate-pool':
        return this.#dedicatePool(change.poolId, change.dedicatedTo, reason)
      case 'scale-pool':
        return this.#scalePool(change.poolId, change.autoscale, reason)
      case 'add-replica':
        return this.#addReplica(change.replica, reason, isFounding)
      case 'drain-replica':
      case 'undrain-replica':
      case 'remove-replica':
        return this.#withdraw(change.kind, change.replicaId, reason)
    }
  }

  /** Whatever is on its way out and holds nothing any more goes now. Called with every tick and every ticket's end. */
  sweep(): void {
    const { policies, isNamed } = this.#parts
    for (const [replicaId, reason] of this.#leavingReplicas)
      if (policies.dispatcher.heldAt(replicaId) === 0) this.#dropReplica(replicaId, reason)
    for (const [poolId, reason] of this.#leavingPools) if (!isNamed(poolId)) this.#dropPool(poolId, reason)
  }

  #putModel(model: Model, releases: readonly Release[], reason: ChangeReason): FleetAnswer {
    const { fleet } = this.#parts.policies
    for (const id of fleet.models.get(model.name)?.releases ?? []) {
      const [first] = fleet.poolsByRelease.get(id) ?? []
      if (first !== undefined && !model.releases.includes(id))
        return refused('still-used', `the pool ${first.pool.id} serves ${id}`)
    }
    fleet.putModel(model, releases)
    return this.#tell('model-put', model.name, reason)
  }

  #removeModel(name: string, reason: ChangeReason): FleetAnswer {
    const { fleet } = this.#parts.policies
    const model = fleet.models.get(name)
    if (model === undefined) return refused('no-such-model', `no model is called ${name}`)
    const [first] = model.releases.flatMap((id) => fleet.poolsByRelease.get(id) ?? [])
    if (first !== undefined) return refused('still-used', `the pool ${first.pool.id} serves ${name}`)
    fleet.dropModel(name)
    return this.#tell('model-removed', name, reason)
  }

  #addPool(known: PoolPolicies, reason: ChangeReason, isFounding: boolean): FleetAnswer {
    const { fleet } = this.#parts.policies
    const { id, model, releaseId, replicas, isPeer } = known.pool
    if (fleet.poolsById.has(id)) return refused('name-taken', `there is a pool ${id} already`)
    // Another region's gateway runs releases of its own: only the model must be known here.
    if (isPeer === true && !fleet.models.has(model)) return refused('no-such-model', `no model is called ${model}`)
    if (isPeer !== true && !fleet.releases.has(releaseId))
      return refused('no-such-release', `there is no release ${releaseId}`)
    const taken = replicas.find((replica) => fleet.replica(replica.id) !== undefined)
    if (taken !== undefined) return refused('name-taken', `there is a replica ${taken.id} already`)
    this.#enter(known, isFounding)
    this.#tell('pool-added', id, reason)
    for (const replica of replicas) this.#tell('replica-added', replica.id, reason, id)
    return CHANGED
  }

  #enter(known: PoolPolicies, isFounding: boolean): void {
    const { policies, turnstile } = this.#parts
    policies.fleet.addPool(known)
    turnstile.addPool(known.pool.id)
    for (const replica of known.pool.replicas) this.#enterReplica(known, replica, isFounding)
  }

  #removePool(poolId: string, reason: ChangeReason): FleetAnswer {
    const { fleet } = this.#parts.policies
    if (!fleet.poolsById.has(poolId)) return refused('no-such-pool', `no pool is called ${poolId}`)
    if (this.#leavingPools.has(poolId)) return CHANGED
    fleet.closePool(poolId)
    this.#leavingPools.set(poolId, reason)
    this.#tell('pool-closing', poolId, reason)
    this.sweep()
    return CHANGED
  }

  /** Tickets that wait there keep their place; the next request is sent by the new list. */
  #dedicatePool(poolId: string, dedicatedTo: readonly string[] | undefined, reason: ChangeReason): FleetAnswer {
    const { fleet } = this.#parts.policies
    const known = fleet.poolsById.get(poolId)
    if (known === undefined) return refused('no-such-pool', `no pool is called ${poolId}`)
    fleet.dedicate(known, dedicatedTo)
    return this.#tell('pool-dedicated', poolId, reason)
  }

  /** What was learned of its demand and its cold starts is learned anew. */
  #scalePool(poolId: string, autoscale: AutoscaleTerms | undefined, reason: ChangeReason): FleetAnswer {
    const { fleet } = this.#parts.policies
    const known = fleet.poolsById.get(poolId)
    if (known === undefined) return refused('no-such-pool', `no pool is called ${poolId}`)
    fleet.scale(known, autoscale, this.#clock.now())
    return this.#tell('pool-scaled', poolId, reason)
  }

  #dropPool(poolId: string, reason: ChangeReason): void {
    const { policies, turnstile } = this.#parts
    for (const { id } of policies.fleet.poolsById.get(poolId)?.pool.replicas ?? []) this.#dropReplica(id, reason)
    this.#leavingPools.delete(poolId)
    turnstile.removePool(poolId)
    policies.fleet.dropPool(poolId)
    policies.ladder.forgetPool(poolId)
    policies.calibration.forgetPool(poolId)
    this.#tell('pool-removed', poolId, reason)
  }

  #addReplica(replica: Replica, reason: ChangeReason, isFounding: boolean): FleetAnswer {
    const { fleet } = this.#parts.policies
    const known = fleet.poolsById.get(replica.poolId)
    if (known === undefined || this.#leavingPools.has(replica.poolId))
      return refused('no-such-pool', `no pool is called ${replica.poolId}`)
    const present = fleet.replica(replica.id)
    // It went, and is back before it was gone: it stays.
    if (present?.poolId === replica.poolId && this.#leavingReplicas.has(replica.id))
      return this.#withdraw('undrain-replica', replica.id, reason)
    if (present !== undefined) return refused('name-taken', `there is a replica ${replica.id} already`)
    fleet.setReplicas(known, [...known.pool.replicas, replica])
    this.#enterReplica(known, replica, isFounding)
    return this.#tell('replica-added', replica.id, reason, replica.poolId)
  }

  /** Not ready until a tick has looked at it. */
  #enterReplica(known: PoolPolicies, replica: Replica, isFounding: boolean): void {
    const { policies, turnstile, world } = this.#parts
    policies.health.add(this.#clock.now(), replica.id, replica.poolId, isFounding)
    shareTwin(policies.fleet, known, replica)
    const kvTokensMax = known.kvTokensMaxOf(replica)
    const reading = known.readingOf(replica)
    const { offline } = policies
    turnstile.addReplica({ replica, limit: known.makeLimit(replica), kvTokensMax, reading, offline, isReady: false })
    // No exchange gives room at another region's gateway: each gateway of ours has its own there.
    if (known.pool.isPeer !== true)
      turnstile.replicaChanged(replica.id, { capacity: world.capacity.allowance(replica) })
    recallTwin(this.#parts, replica)
  }

  #withdraw(
    kind: 'drain-replica' | 'undrain-replica' | 'remove-replica',
    replicaId: string,
    reason: ChangeReason,
  ): FleetAnswer {
    const { policies, applyHealth } = this.#parts
    const replica = policies.fleet.replica(replicaId)
    if (replica === undefined) return refused('no-such-replica', `no replica is called ${replicaId}`)
    if (kind === 'undrain-replica') {
      this.#leavingReplicas.delete(replicaId)
      applyHealth(policies.health.undrain(this.#clock.now(), replicaId))
      return this.#tell('replica-kept', replicaId, reason, replica.poolId)
    }
    const isNews = policies.health.kindOf(replicaId) !== 'draining'
    applyHealth(policies.health.drain(this.#clock.now(), replicaId))
    if (isNews) this.#tell('replica-draining', replicaId, reason, replica.poolId)
    if (kind === 'remove-replica') {
      this.#leavingReplicas.set(replicaId, reason)
      this.sweep()
    }
    return CHANGED
  }

  #dropReplica(replicaId: string, reason: ChangeReason): void {
    const { policies, turnstile, world, forget } = this.#parts
    this.#leavingReplicas.delete(replicaId)
    const replica = policies.fleet.replica(replicaId)
    const known = replica && policies.fleet.poolsById.get(replica.poolId)
    if (replica === undefined || known === undefined) return
    policies.fleet.setReplicas(
      known,
      known.pool.replicas.filter(({ id }) => id !== replicaId),
    )
    policies.health.remove(replicaId)
    forget(replicaId)
    policies.placer.removed(replicaId)
    turnstile.removeReplica(replicaId)
    policies.poolsById.get(replica.poolId)?.twins?.forget(replicaId)
    world.backends.forget?.(replica)
    this.#tell('replica-removed', replicaId, reason, replica.poolId)
  }

  #tell(what: FleetChanged['what'], name: string, { by, because }: ChangeReason, poolId?: string): FleetAnswer {
    const at = this.#clock.now()
    this.#parts.world.journal.record({ kind: 'fleet-changed', at, what, name, poolId, by, because })
    return CHANGED
  }
}

const CHANGED: FleetAnswer = Object.freeze({ kind: 'changed' })

const refused = (code: FleetRefusal, because: string): FleetAnswer => ({ kind: 'refused', code, because })
