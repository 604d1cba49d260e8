import type { Config } from '../config/schema.ts'
import {
  type HoldoutSetup,
  type KeySetup,
  type PoolSetup,
  toHoldouts,
  toKeys,
  toModels,
  toOrgWeights,
  toPools,
  toReleases,
  toRollouts,
  toTenants,
} from '../config/to-domain.ts'
import { withRegistry } from '../config/with-registry.ts'
import type { Model, Release } from '../domain/fleet.ts'
import type { RegistryEntry } from '../domain/registry.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { RolloutSettings } from '../policy/rollout/model-rollout.ts'

/**
 * What is wanted of the platform right now? One immutable value, made from its two sources:
 *
 *   configuration file (as loaded, or loaded again) ⊕ registry (what was added while it ran) ─▶ Wanted
 *
 * The file wins and the registry adds (`config/with-registry.ts`). `reconcile.ts` compares one of these with the next,
 * and `settings-changer.ts` carries out the difference. No other object keeps settings that may change: an object that
 * needs one asks the owner at the moment of use, or listens.
 */
export interface Wanted {
  /** The file alone, with settings that need a restart as at the start. Edits of the registry are checked against it. */
  readonly file: Config
  readonly entries: readonly RegistryEntry[]
  /** The file and the registry together: the settings in force. */
  readonly settings: Config
  readonly tenants: readonly Tenant[]
  /** Orgs with a weight of their own. */
  readonly orgWeights: ReadonlyMap<string, number>
  readonly keys: readonly KeySetup[]
  /** Gateways of other regions that may call this one. */
  readonly peers: ReadonlyArray<{ readonly region: string; readonly hash: string }>
  readonly models: readonly Model[]
  readonly releases: readonly Release[]
  readonly pools: ReadonlyMap<string, PoolSetup>
  /** Ids of the pools that the file names, those of other regions included. */
  readonly filePoolIds: ReadonlySet<string>
  readonly rollouts: ReadonlyMap<string, RolloutSettings>
  readonly holdouts: ReadonlyMap<string, HoldoutSetup>
  /** Request headers that a rollout's rules look at. */
  readonly flagHeaders: readonly string[]
}

/** `resolve` adds the upstream keys of the environment to the registry's pools; the loader has done so for the file's. */
export function wantedOf(
  file: Config,
  entries: readonly RegistryEntry[],
  resolve: (settings: Config) => Config = (settings) => settings,
): Wanted {
  const settings = resolve(withRegistry(file, entries))
  const rollouts = toRollouts(settings)
  return {
    file,
    entries,
    settings,
    tenants: toTenants(settings),
    orgWeights: toOrgWeights(settings),
    keys: toKeys(settings),
    peers: settings.regions.peers.flatMap(({ region, hash }) => (hash === undefined ? [] : [{ region, hash }])),
    models: toModels(settings),
    releases: toReleases(settings),
    pools: new Map(toPools(settings).map((setup) => [setup.pool.id, setup])),
    filePoolIds: new Set(toPools(file).map(({ pool }) => pool.id)),
    rollouts: new Map(rollouts.map((rollout) => [rollout.model, rollout])),
    holdouts: new Map(toHoldouts(settings).map((holdout) => [holdout.model, holdout])),
    flagHeaders: rollouts.flatMap(({ pins }) => pins.flatMap(({ header }) => header?.name ?? [])),
  }
}

/** The owner of the settings in force: answers what they are, and tells its listeners when they change. */
export class WantedOwner {
  #current: Wanted
  readonly #listeners: Array<(wanted: Wanted) => void> = []

  constructor(first: Wanted) {
    this.#current = first
  }

  get current(): Wanted {
    return this.#current
  }

  /** Adds a listener, which is called within the instant of every change. Listeners are never removed. */
  onChange(listener: (wanted: Wanted) => void): void {
    this.#listeners.push(listener)
  }

  /** Puts the next settings in force. Only `settings-changer.ts` calls this, after the platform has changed. */
  replace(next: Wanted): void {
    this.#current = next
    for (const listener of this.#listeners) listener(next)
  }
}
