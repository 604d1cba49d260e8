import type { LiveBackends } from '../assembly/live-backends.ts'
import type { LiveStore } from '../assembly/live-store.ts'
import type { Clock } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import { toPools } from '../config/to-domain.ts'
import { ModelDirectory } from '../gateway/model-directory.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { LiveJournal } from '../telemetry/journal.ts'
import { FleetDiff } from './fleet-diff.ts'
import { LiveAdmin } from './live-admin.ts'
import { LiveFleet } from './live-fleet.ts'
import { LiveRegistry } from './live-registry.ts'
import { LiveRollouts } from './live-rollouts.ts'

/** Everything that changes the fleet of a running gateway: discovery, the registry, and administrators. */
export interface LiveControl {
  readonly admin: LiveAdmin
  readonly registry: LiveRegistry
  /** What clients may ask for, kept in step. */
  readonly models: ModelDirectory
  /** Finds those that are to be discovered; resolves soon, whoever answers. */
  discover(): Promise<void>
  close(): Promise<void>
}

export interface ControlParts {
  readonly config: Config
  readonly clock: Clock
  readonly platform: Platform
  readonly backends: LiveBackends
  readonly store: LiveStore
  readonly onFault: (where: string, error: unknown) => void
  readonly complain: (problem: string) => void
  /** Tells what the judge changes by itself. */
  readonly journal: LiveJournal
}

export function makeLiveControl(parts: ControlParts): LiveControl {
  const { config, clock, platform, backends, store, onFault, complain } = parts
  const fleet = new LiveFleet({ config, clock, platform, backends, onFailure: onFault })
  const known = () =>
    Array.from(platform.policies.models.values(), (model) => ({ model, features: backends.featuresOf(model.name) }))
  const models = new ModelDirectory(known())
  const diff = new FleetDiff({ config, platform, fleet, onModels: () => models.replace(known()) })
  const registry = new LiveRegistry({
    config,
    clock,
    store,
    diff,
    complain,
    onRead: (entries) => rollouts.recall(entries),
  })
  const rollouts = new LiveRollouts(platform, registry)
  parts.journal.subscribe({ name: 'rollouts', take: (entry) => rollouts.take(entry) })
  return {
    admin: new LiveAdmin({ platform, registry, diff, rollouts }),
    registry,
    models,
    discover: () => fleet.follow(toPools(config)),
    async close() {
      await registry.close()
      await fleet.close()
    },
  }
}
