import { isDeepStrictEqual } from 'node:util'
import type { Tenant } from '../domain/tenant.ts'
import type { SettingsChange } from './settings-change.ts'
import type { Wanted } from './wanted.ts'

/**
 * Which orgs, tenants and keys were added, removed or changed, and which machines must hear of it? Pure. New weights go to the
 * dispatcher, which may hold requests of the tenant or key; the promises of all tenants go to the meter of the
 * tightest one. Everything else comes with the next request.
 */
export function reconcileTenants(before: Wanted, wanted: Wanted): SettingsChange[] {
  const tenants = [...orgChanges(before, wanted), ...tenantChanges(before, wanted), ...keyChanges(before, wanted)]
  const isPromiseTouched = !isDeepStrictEqual(before.tenants.map(promiseOf), wanted.tenants.map(promiseOf))
  return [...tenants, ...(isPromiseTouched ? [{ kind: 'change-promise', tenants: wanted.tenants } as const] : [])]
}

const promiseOf = ({ slo }: Tenant): readonly number[] => [slo.ttftUs, slo.interTokenUs]

/** Orgs come first: a tenant that moves finds the new weight of the org that it moves to. */
function orgChanges(before: Wanted, wanted: Wanted): SettingsChange[] {
  const ids = new Set([...before.orgWeights.keys(), ...wanted.orgWeights.keys()])
  return [...ids].flatMap((orgId): SettingsChange[] => {
    const weight = wanted.orgWeights.get(orgId)
    if (before.orgWeights.get(orgId) === weight) return []
    return [{ kind: 'reweigh', weight: { kind: 'org', orgId, weight } }]
  })
}

function tenantChanges(before: Wanted, wanted: Wanted): SettingsChange[] {
  const known = new Map(before.tenants.map((tenant) => [tenant.id, tenant]))
  const kept = new Set(wanted.tenants.map(({ id }) => id))
  return [
    ...[...known.keys()].flatMap((tenantId): SettingsChange[] =>
      kept.has(tenantId) ? [] : [{ kind: 'remove-tenant', tenantId }],
    ),
    ...wanted.tenants.flatMap((tenant): SettingsChange[] => {
      const old = known.get(tenant.id)
      if (isDeepStrictEqual(old, tenant)) return []
      const { id: tenantId, orgId, weight } = tenant
      // A tenant that was removed and is added again may still have requests in its lanes.
      const isWeighed = old?.weight === weight && old.orgId === orgId
      const reweigh = { kind: 'reweigh', weight: { kind: 'tenant', tenantId, orgId, weight } } as const
      return [{ kind: 'put-tenant', tenant }, ...(isWeighed ? [] : [reweigh])]
    }),
  ]
}

function keyChanges(before: Wanted, wanted: Wanted): SettingsChange[] {
  const known = new Map(before.keys.map((setup) => [setup.key.id, setup]))
  const kept = new Set(wanted.keys.map(({ key }) => key.id))
  return [
    ...[...known.keys()].flatMap((keyId): SettingsChange[] => (kept.has(keyId) ? [] : [{ kind: 'remove-key', keyId }])),
    ...wanted.keys.flatMap((setup): SettingsChange[] => {
      const { id: keyId, weight } = setup.key
      const old = known.get(keyId)
      if (isDeepStrictEqual(old, setup)) return []
      const reweigh = { kind: 'reweigh', weight: { kind: 'key', keyId, weight } } as const
      return [{ kind: 'put-key', keyId }, ...(old?.key.weight === weight ? [] : [reweigh])]
    }),
  ]
}
