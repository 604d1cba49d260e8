import type { LiveBackends } from '../assembly/live-backends.ts'
import { unreachable } from '../base/assert.ts'
import { changeMode, changePromise, changeWeight } from '../lifecycle/change-terms.ts'
import type { ChangeReason, FleetAnswer } from '../lifecycle/fleet/change-fleet.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { dropRollout, putRollout } from '../lifecycle/rollout/change-rollout.ts'
import { Holdout } from '../policy/rollout/holdout.ts'
import type { LiveFleet } from './live-fleet.ts'
import { type PoolRefusal, type Present, type Reconciled, reconcile } from './reconcile.ts'
import type { SettingsChange } from './settings-change.ts'
import type { Wanted, WantedOwner } from './wanted.ts'

/**
 * Brings the running platform to what is wanted, whole or not at all:
 *
 *   reconcile ─▶ could every new pool run here? ─▶ carry out, in one instant ─▶ the owner tells who listens
 *
 * Every refusal comes before the first change. Callers come one at a time (`one-at-a-time.ts`).
 */
export interface ChangerParts {
  readonly owner: WantedOwner
  readonly platform: Platform
  readonly fleet: LiveFleet
  readonly backends: Pick<LiveBackends, 'putModel' | 'dropModel' | 'useKey' | 'forgetKey'>
  /** True when the registry keeps this model's rollout, or will: a restart would go on from it. */
  readonly isRolloutKept: (model: string) => boolean
}

export class SettingsChanger {
  readonly #parts: ChangerParts

  constructor(parts: ChangerParts) {
    this.#parts = parts
  }

  /** The changes that lead to `next`, or all reasons why they cannot be made now. Changes nothing. */
  async plan(next: Wanted): Promise<Reconciled> {
    const reconciled = reconcile(this.#present(), next)
    if (reconciled.kind === 'refused') return reconciled
    const refusals: PoolRefusal[] = []
    for (const change of reconciled.changes) {
      if (change.kind !== 'add-pool') continue
      const because = await this.#parts.fleet.problemOf(change.setup)
      const poolId = change.setup.pool.id
      if (because !== undefined) refusals.push({ code: 'invalid-value', because, param: 'pool.backend', poolId })
    }
    return refusals.length > 0 ? { kind: 'refused', refusals } : reconciled
  }

  /** Makes the changes of `plan`. Returns what failed: nothing, as a rule, because `plan` has checked. */
  carryOut(changes: readonly SettingsChange[], next: Wanted, reason: ChangeReason, isFounding = false): string[] {
    const problems = changes.flatMap((change) => {
      const answer = this.#carryOut(change, reason, isFounding)
      return answer?.kind === 'refused' ? [answer.because] : []
    })
    this.#parts.owner.replace(next)
    return problems
  }

  /**
   * Follows what the store holds. A pool that cannot be as the store says stays as it is, and is reported: one entry must
   * not keep the others from being served.
   */
  async follow(next: Wanted, reason: ChangeReason, isFounding: boolean): Promise<readonly string[]> {
    const problems: string[] = []
    const pools = new Map(next.pools)
    const present = this.#present()
    const first = reconcile(present, next)
    for (const { because, poolId } of first.kind === 'refused' ? first.refusals : []) {
      problems.push(because)
      const running = present.closingIds.has(poolId) ? undefined : present.wanted.pools.get(poolId)
      if (running === undefined) pools.delete(poolId)
      else pools.set(poolId, running)
    }
    for (const setup of next.pools.values()) {
      if (present.poolIds.has(setup.pool.id)) continue
      const problem = await this.#parts.fleet.problemOf(setup)
      if (problem === undefined) continue
      problems.push(problem)
      pools.delete(setup.pool.id)
    }
    const possible = { ...next, pools }
    const planned = reconcile(this.#present(), possible)
    if (planned.kind === 'refused') return [...problems, ...planned.refusals.map(({ because }) => because)]
    return [...problems, ...this.carryOut(planned.changes, possible, reason, isFounding)]
  }

  #present(): Present {
    const { owner, platform } = this.#parts
    const ids = platform.pools.map(({ id }) => id)
    return {
      wanted: owner.current,
      poolIds: new Set(ids),
      closingIds: new Set(ids.filter((id) => platform.fleetChanges.isLeaving(id))),
    }
  }

  #carryOut(change: SettingsChange, reason: ChangeReason, isFounding: boolean): FleetAnswer | undefined {
    const { platform, fleet, backends, isRolloutKept } = this.#parts
    switch (change.kind) {
      case 'remove-pool':
        backends.forgetKey(change.poolId)
        return fleet.removePool(change.poolId, reason)
      case 'put-model':
        backends.putModel(change.model)
        return platform.changeFleet(change, reason)
      case 'add-pool':
        return fleet.addPool(change.setup, reason, isFounding)
      case 'dedicate-pool':
        return platform.changeFleet(change, reason)
      case 'scale-pool':
        return platform.changeFleet(change, reason)
      case 'rekey-pool':
        backends.useKey(change.poolId, change.apiKey)
        return undefined
      case 'add-replica':
        return fleet.addReplica(change.setup, change.replica, reason)
      case 'remove-replica':
        return fleet.removeReplica(change.replicaId, reason)
      case 'remove-model':
        backends.dropModel(change.name)
        return platform.changeFleet(change, reason)
      case 'reweigh':
        changeWeight(platform, change.weight)
        return undefined
      case 'change-promise':
        changePromise(platform, change.tenants)
        return undefined
      case 'put-rollout':
        putRollout(platform, change.settings, isRolloutKept(change.settings.model))
        return undefined
      case 'remove-rollout':
        dropRollout(platform, change.model, !change.isModelGone && isRolloutKept(change.model))
        return undefined
      case 'put-holdout':
        platform.policies.holdouts.set(change.holdout.model, new Holdout(change.holdout.items, change.holdout.options))
        return undefined
      case 'remove-holdout':
        platform.policies.holdouts.delete(change.model)
        return undefined
      case 'change-prices':
        platform.policies.prices.replace(change.lists)
        return undefined
      case 'change-mode':
        changeMode(platform, change.mode, reason)
        return undefined
      // The owner tells the directories of tenants and keys.
      case 'put-tenant':
      case 'remove-tenant':
      case 'put-key':
      case 'remove-key':
        return undefined
      default:
        return unreachable(change)
    }
  }
}
