import type { LiveBackends } from '../assembly/live-backends.ts'
import { modelFeatures } from '../assembly/model-features.ts'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import type { TenancyStore } from '../domain/tenancy-store.ts'
import { AdminDirectory } from '../gateway/admin-directory.ts'
import type { AdminReason, AdminReloadAnswer } from '../gateway/fleet-admin.ts'
import { ModelDirectory } from '../gateway/model-directory.ts'
import { TenantDirectory } from '../gateway/tenant-directory.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { Drains } from './drains.ts'
import { LiveFleet } from './live-fleet.ts'
import { LiveRegistry, type RegistryParts } from './live-registry.ts'
import { OneAtATime } from './one-at-a-time.ts'
import { Pauses } from './pauses.ts'
import { PlatformAdmin } from './platform-admin.ts'
import type { RegistryRolloutKeeper } from './registry-rollout-keeper.ts'
import { reloadSettings } from './reload.ts'
import { RolloutCommands } from './rollout-commands.ts'
import { SettingsChanger } from './settings-changer.ts'
import { TenancyControl } from './tenancy-control.ts'
import { type Wanted, WantedOwner } from './wanted.ts'

/**
 * The control plane of a running gateway: the configuration file read again, the registry, discovery and administrators
 * change the platform through it. The settings in force have one owner; directories listen to the owner, routes ask it.
 */
export interface Control {
  readonly admin: PlatformAdmin
  readonly registry: LiveRegistry
  /** Orgs, tenants and keys that are made at run time. */
  readonly tenancy: TenancyControl
  /** The directories of models, tenants and administrators follow the settings in force. */
  readonly models: ModelDirectory
  readonly tenants: TenantDirectory
  readonly admins: AdminDirectory
  /** Keys that may read metrics: administrators and `admin.metricsKeys`. */
  readonly metricsReaders: AdminDirectory
  /** The settings in force. Ask each time, and keep no copy. */
  wanted(): Wanted
  /** Takes up other settings, whole or not at all. */
  reload(load: () => Config, reason: AdminReason): Promise<AdminReloadAnswer>
  /** What this gateway decided of a model's rollout was not its to decide: the registry says how it stands. */
  overruled(model: string): void
  /** Starts the discovery of replicas; resolves after each source's first list, or after 3 s. */
  discover(): Promise<void>
  close(): Promise<void>
}

export interface ControlParts {
  /** The settings that the platform was assembled from. */
  readonly founded: Wanted
  /** Reads the configuration file again; undefined where there is nothing to read. */
  readonly load: (() => Config) | undefined
  readonly clock: Clock
  readonly platform: Platform
  readonly backends: LiveBackends
  readonly registry: Pick<RegistryParts, 'store' | 'isInUse' | 'isShared'>
  /** Where orgs, tenants and keys are kept; the same database as the registry. */
  readonly tenancyStore: TenancyStore
  readonly keeper: RegistryRolloutKeeper
  readonly onFault: (where: string, error: unknown) => void
  readonly onReloaded: (summary: string, reason: AdminReason) => void
  readonly complain: (problem: string) => void
  /** A tenant was removed, at run time or from the file: what is kept of it may go too. */
  readonly onTenantRemoved: (tenantId: string) => void
}

export function makeControl(parts: ControlParts): Control {
  const { founded, clock, platform, backends, keeper, complain } = parts
  const owner = new WantedOwner(founded)
  const queue = new OneAtATime()
  const fleet = new LiveFleet({
    engine: founded.settings,
    clock,
    platform,
    backends,
    onFailure: parts.onFault,
    isDrained: (replicaId) => drains.has(replicaId),
  })
  const isRolloutKept = (model: string): boolean =>
    keeper.pendingOf(model) !== undefined ||
    owner.current.entries.some(({ kind, name }) => kind === 'rollout' && name === model)
  const changer = new SettingsChanger({ owner, platform, fleet, backends, isRolloutKept })
  const drains = new Drains(owner, platform)
  const rollouts = new RolloutCommands(platform, keeper)
  const registry = new LiveRegistry({
    ...parts.registry,
    clock,
    owner,
    changer,
    queue,
    complain,
    onRead: (read) => rollouts.recall(read),
  })
  const reload: Control['reload'] = (load, reason) =>
    reloadSettings({ owner, changer, queue, complain, onReloaded: parts.onReloaded }, load, reason)
  const { load } = parts
  const directories = makeDirectories(owner)
  const { isInUse, isShared } = parts.registry
  const tenancy = new TenancyControl({
    clock,
    owner,
    platform,
    store: parts.tenancyStore,
    isInUse,
    isShared,
    complain,
    onTenantRemoved: parts.onTenantRemoved,
  })
  directories.tenants.addRunTime(tenancy)
  tellRemoved(owner, tenancy, parts.onTenantRemoved)
  return {
    admin: new PlatformAdmin({
      platform,
      owner,
      registry,
      rollouts,
      drains,
      pauses: new Pauses(owner, platform),
      isTenant: (id) =>
        owner.current.tenants.some((tenant) => tenant.id === id) || tenancy.tenancy.tree.tenants.has(id),
      reload: (reason) => (load === undefined ? Promise.resolve(NOTHING_TO_READ) : reload(load, reason)),
    }),
    registry,
    tenancy,
    ...directories,
    wanted: () => owner.current,
    reload,
    overruled: (model) => rollouts.overruled(model, owner.current.entries),
    discover: () => fleet.follow([...founded.pools.values()]),
    async close() {
      await keeper.close()
      await registry.close()
      await tenancy.close()
      await fleet.close()
    },
  }
}

/** Tells of tenants that the file has no more. One that the store knows by the same name is in force from now on. */
function tellRemoved(owner: WantedOwner, { tenancy }: TenancyControl, onRemoved: (tenantId: string) => void): void {
  let before = owner.current.tenants
  owner.onChange(({ tenants }) => {
    for (const { id } of before) if (!tenancy.tree.tenants.has(id)) onRemoved(id)
    before = tenants
  })
}

/** Each directory is replaced as a whole when the settings change, and counts from the next request on. */
function makeDirectories(owner: WantedOwner): Pick<Control, 'models' | 'tenants' | 'admins' | 'metricsReaders'> {
  const known = ({ models, pools }: Wanted) =>
    models.map((model) => ({ model, features: modelFeatures(model.name, pools.values()) }))
  const { current } = owner
  const models = new ModelDirectory(known(current))
  const tenants = new TenantDirectory(current.tenants, current.keys, current.peers)
  const admins = new AdminDirectory(current.settings.admin.keys, tenants, ['platform-admin'])
  const metricsReaders = new AdminDirectory(readersOf(current), tenants, ['platform-admin', 'metrics-reader'])
  owner.onChange((wanted) => {
    models.replace(known(wanted))
    tenants.replace(wanted.tenants, wanted.keys, wanted.peers)
    admins.replace(wanted.settings.admin.keys)
    metricsReaders.replace(readersOf(wanted))
  })
  return { models, tenants, admins, metricsReaders }
}

const readersOf = ({ settings: { admin } }: Wanted) => [...admin.keys, ...admin.metricsKeys]

const NOTHING_TO_READ: AdminReloadAnswer = {
  kind: 'refused',
  refusal: {
    code: 'nothing-to-reload',
    because: 'this process was not started from a configuration that could be read again',
    param: null,
  },
}
