import type { HoldoutSetup, PoolSetup } from '../config/to-domain.ts'
import type { AutoscaleTerms } from '../domain/autoscale.ts'
import type { Model, Release, Replica } from '../domain/fleet.ts'
import type { WeightChange } from '../domain/share-path.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { AdminReload } from '../gateway/fleet-admin.ts'
import type { PriceListSpec } from '../policy/money/price-list.ts'
import type { RolloutSettings } from '../policy/rollout/model-rollout.ts'

/** One change of the running platform: `reconcile.ts` lists the changes, `settings-changer.ts` carries them out. */
export type SettingsChange =
  | { readonly kind: 'remove-pool'; readonly poolId: string }
  | { readonly kind: 'put-model'; readonly model: Model; readonly releases: readonly Release[] }
  | { readonly kind: 'add-pool'; readonly setup: PoolSetup }
  | { readonly kind: 'dedicate-pool'; readonly poolId: string; readonly dedicatedTo: readonly string[] | undefined }
  | { readonly kind: 'scale-pool'; readonly poolId: string; readonly autoscale: AutoscaleTerms | undefined }
  | { readonly kind: 'rekey-pool'; readonly poolId: string; readonly apiKey: string | undefined }
  | { readonly kind: 'add-replica'; readonly setup: PoolSetup; readonly replica: Replica }
  | { readonly kind: 'remove-replica'; readonly replicaId: string }
  | { readonly kind: 'remove-model'; readonly name: string }
  | { readonly kind: 'put-tenant'; readonly tenant: Tenant }
  | { readonly kind: 'remove-tenant'; readonly tenantId: string }
  | { readonly kind: 'put-key' | 'remove-key'; readonly keyId: string }
  | { readonly kind: 'reweigh'; readonly weight: WeightChange }
  /** The tightest promise may be another one. */
  | { readonly kind: 'change-promise'; readonly tenants: readonly Tenant[] }
  | { readonly kind: 'put-rollout'; readonly settings: RolloutSettings }
  | { readonly kind: 'remove-rollout'; readonly model: string; readonly isModelGone: boolean }
  | { readonly kind: 'put-holdout'; readonly holdout: HoldoutSetup }
  | { readonly kind: 'remove-holdout'; readonly model: string }
  | { readonly kind: 'change-prices'; readonly lists: readonly PriceListSpec[] }
  | { readonly kind: 'change-mode'; readonly mode: 'enforce' | 'observe' }

/** The number of changes of each kind. A tenant or key with new terms counts as changed. */
export function countChanges(changes: readonly SettingsChange[]): AdminReload['changed'] {
  const count = (...kinds: ReadonlyArray<SettingsChange['kind']>): number =>
    changes.filter(({ kind }) => kinds.includes(kind)).length
  const replicasOfPools = changes.reduce(
    (sum, change) => sum + (change.kind === 'add-pool' ? change.setup.pool.replicas.length : 0),
    0,
  )
  return {
    tenants: count('put-tenant', 'remove-tenant'),
    keys: count('put-key', 'remove-key'),
    models: count('put-model', 'remove-model'),
    rollouts: count('put-rollout', 'remove-rollout', 'put-holdout', 'remove-holdout'),
    poolsAdded: count('add-pool'),
    poolsRemoved: count('remove-pool'),
    poolsDedicated: count('dedicate-pool'),
    poolsScaled: count('scale-pool'),
    poolsRekeyed: count('rekey-pool'),
    replicasAdded: count('add-replica') + replicasOfPools,
    replicasRemoved: count('remove-replica'),
  }
}
