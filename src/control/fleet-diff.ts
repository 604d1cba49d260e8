import type { Config } from '../config/schema.ts'
import { type PoolSetup, toModels, toPools, toReleases } from '../config/to-domain.ts'
import type { Model, Release, Replica } from '../domain/fleet.ts'
import type { AdminRefusal } from '../gateway/fleet-admin.ts'
import type { ChangeReason } from '../lifecycle/fleet/change-fleet.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { LiveFleet } from './live-fleet.ts'

/**
 * What must change for the running fleet to be as these settings say? Pools that are new come, those that are gone
 * close, lists of addresses are followed address by address. What a pool *is* (its engine, its release, its limit) does
 * not change under its tickets: add another pool and remove the old one.
 */
export class FleetDiff {
  readonly #platform: Platform
  readonly #fleet: LiveFleet
  readonly #filePools: ReadonlySet<string>
  #setups: ReadonlyMap<string, PoolSetup>
  /** After models came or went. */
  readonly #onModels: () => void

  constructor(parts: { config: Config; platform: Platform; fleet: LiveFleet; onModels: () => void }) {
    this.#platform = parts.platform
    this.#fleet = parts.fleet
    this.#onModels = parts.onModels
    this.#filePools = new Set(toPools(parts.config).map(({ pool }) => pool.id))
    this.#setups = this.#setupsOf(parts.config)
  }

  get setups(): ReadonlyMap<string, PoolSetup> {
    return this.#setups
  }

  isInFile(poolId: string): boolean {
    return this.#filePools.has(poolId)
  }

  /** Why it cannot be done here and now; undefined when it can. */
  async refusalOf(next: Config): Promise<AdminRefusal | undefined> {
    const setups = this.#setupsOf(next)
    for (const [id, setup] of setups) {
      const known = this.#setups.get(id)
      if (known !== undefined && signatureOf(known) !== signatureOf(setup)) {
        const because = `the pool ${id} is running, and only its replicas can change. Add a pool with another id, then remove this one`
        return { code: 'pool-is-running', because, param: 'pool' }
      }
      if (known !== undefined) continue
      if (this.#platform.policies.poolsById.has(id)) {
        const because = `a pool ${id} was removed and still finishes its answers. Try again when it is gone, or take another id`
        return { code: 'pool-is-closing', because, param: 'pool.id' }
      }
      const problem = await this.#fleet.problemOf(setup)
      if (problem !== undefined) return { code: 'invalid-value', because: problem, param: 'pool.backend' }
    }
    return undefined
  }

  /** Says what could not be done: nothing, as a rule, because it was asked before. */
  async apply(next: Config, reason: ChangeReason, isFounding = false): Promise<readonly string[]> {
    const problems: string[] = []
    const before = this.#setups
    const after = this.#setupsOf(next)
    this.#setups = after
    for (const id of before.keys()) if (!after.has(id)) this.#fleet.removePool(id, reason)
    this.#putModels(toModels(next), toReleases(next), reason)
    for (const [id, setup] of after) {
      const known = before.get(id)
      if (known === undefined) problems.push(...(await this.#addPool(setup, reason, isFounding)))
      else this.#followReplicas(known, setup, reason)
    }
    this.#removeModels(toModels(next), reason)
    this.#onModels()
    return problems
  }

  async #addPool(setup: PoolSetup, reason: ChangeReason, isFounding: boolean): Promise<string[]> {
    const problem = await this.#fleet.problemOf(setup)
    if (problem !== undefined) return [problem]
    const answer = await this.#fleet.addPool(setup, reason, isFounding)
    return answer.kind === 'refused' ? [answer.because] : []
  }

  #putModels(models: readonly Model[], releases: readonly Release[], reason: ChangeReason): void {
    const { policies } = this.#platform
    for (const model of models) {
      const own = releases.filter((release) => release.model === model.name)
      const isSame =
        JSON.stringify(policies.models.get(model.name)) === JSON.stringify(model) &&
        own.every((release) => JSON.stringify(policies.releases.get(release.id)) === JSON.stringify(release))
      if (!isSame) this.#platform.changeFleet({ kind: 'put-model', model, releases: own }, reason)
    }
  }

  #removeModels(models: readonly Model[], reason: ChangeReason): void {
    const kept = new Set(models.map((model) => model.name))
    for (const name of this.#platform.policies.models.keys())
      if (!kept.has(name)) this.#platform.changeFleet({ kind: 'remove-model', name }, reason)
  }

  #followReplicas(known: PoolSetup, setup: PoolSetup, reason: ChangeReason): void {
    const had = new Set(known.pool.replicas.map(({ id }) => id))
    const has = new Set(setup.pool.replicas.map(({ id }) => id))
    for (const replica of setup.pool.replicas) if (!had.has(replica.id)) this.#fleet.addReplica(setup, replica, reason)
    for (const id of had) if (!has.has(id)) this.#fleet.removeReplica(id, reason)
  }

  /** Replicas of the registry are named by their address, which stays when others come and go. */
  #setupsOf(config: Config): ReadonlyMap<string, PoolSetup> {
    return new Map(
      toPools(config).map((setup) => [setup.pool.id, this.#filePools.has(setup.pool.id) ? setup : namedByUrl(setup)]),
    )
  }
}

function namedByUrl(setup: PoolSetup): PoolSetup {
  const { pool, urls } = setup
  const renamed = new Map<string, { replica: Replica; url: string }>()
  for (const replica of pool.replicas) {
    const url = urls.get(replica.id)
    if (url === undefined) continue
    const id = `${pool.id}-${url.replace(/^https?:\/\//, '').replace(/\/v1\/?$/, '')}`
    renamed.set(id, { replica: { ...replica, id }, url })
  }
  if (urls.size === 0) return setup
  return {
    ...setup,
    pool: { ...pool, replicas: Array.from(renamed.values(), ({ replica }) => replica) },
    urls: new Map(Array.from(renamed, ([id, { url }]) => [id, url])),
  }
}

/** Everything but its replicas. */
function signatureOf({ pool, backend, limit }: PoolSetup): string {
  const { model, releaseId, region, dedicatedTo } = pool
  const { url: _, ...rest } = { url: undefined, ...backend }
  return JSON.stringify([model, releaseId, region, dedicatedTo, rest, limit])
}
