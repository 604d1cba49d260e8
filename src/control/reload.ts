import type { Config } from '../config/schema.ts'
import { toKeys, toTenants } from '../config/to-domain.ts'
import type { Key } from '../domain/tenant.ts'
import type { TenantDirectory } from '../gateway/tenant-directory.ts'
import type { Platform } from '../lifecycle/platform.ts'

/**
 * Tenants on new terms while the platform runs: weights, orgs, bands, limits, SLOs and contracts. Nothing queued is
 * lost: weights count from the next turn on, everything else from the next request on. Models, pools and listeners
 * need a restart.
 */
export function reloadTenants(platform: Platform, directory: TenantDirectory, config: Config): number {
  const { dispatcher } = platform.policies
  const before = directory.tenants
  const tenants = toTenants(config)
  const keys = toKeys(config)
  let changes = 0
  for (const tenant of tenants) {
    const old = before.get(tenant.id)
    if (JSON.stringify(old) === JSON.stringify(tenant)) continue
    changes++
    if (old !== undefined && (old.weight !== tenant.weight || old.orgId !== tenant.orgId)) {
      dispatcher.reweigh({ kind: 'tenant', tenantId: tenant.id, orgId: tenant.orgId, weight: tenant.weight })
    }
  }
  for (const id of before.keys()) if (!tenants.some((tenant) => tenant.id === id)) changes++
  for (const { key } of keys) reweighKey(platform, key)
  directory.replace(tenants, keys)
  return changes
}

function reweighKey(platform: Platform, key: Key): void {
  platform.policies.dispatcher.reweigh({ kind: 'key', keyId: key.id, weight: key.weight })
}
