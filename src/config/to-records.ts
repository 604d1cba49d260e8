import { msToUs } from '../base/clock.ts'
import type { KeyRecord, OrgRecord, TenantRecord } from '../domain/tenancy.ts'
import type { TreeRecords } from '../policy/authority/load-tree.ts'
import type { Config } from './schema.ts'
import { toAllowance, toKeys, toOrgAllowances, toOrgWeights, toTenants } from './to-domain.ts'

/**
 * The file's orgs, tenants and keys as records of the tenancy tree. A tenant without an org is one by its own name. The
 * file's orgs may use every promise of the file, and its keys do not manage.
 */
export function toRecords(config: Config): TreeRecords {
  const weights = toOrgWeights(config)
  const allowances = toOrgAllowances(config)
  const slos = config.slos.map(({ name }) => name)
  const orgIds = new Set([...config.orgs.map(({ id }) => id), ...config.tenants.map(({ id, org }) => org ?? id)])
  const orgs = Array.from(orgIds, (id): OrgRecord => {
    const weight = weights.get(id)
    const allowance = allowances.get(id)
    return {
      id,
      source: 'file',
      ...(weight !== undefined && { weight }),
      slos,
      terms: allowance === undefined ? {} : { allowance },
    }
  })
  const inForce = new Map(toTenants(config).map((tenant) => [tenant.id, tenant]))
  const tenants = config.tenants.map((tenant): TenantRecord => {
    const { id, org: orgId = id, weight, slo, contract, bidMax, bands, waitMsMax, storing, screening } = tenant
    const answerCache = inForce.get(id)?.answerCache
    const allowance = toAllowance(tenant.allowance)
    return {
      id,
      orgId,
      source: 'file',
      weight,
      slo,
      contract,
      bidMax,
      ...(waitMsMax !== undefined && { queueUsMax: msToUs(waitMsMax) }),
      ...(answerCache !== undefined && { answerCache }),
      ...(storing !== undefined && { storing }),
      ...(screening !== undefined && { screening }),
      terms: { bands, ...(isLimit(allowance) && { allowance }) },
    }
  })
  const keys = toKeys(config).map(
    ({ key: { id, tenantId, weight, allowance }, hash }): KeyRecord => ({
      id,
      tenantId,
      source: 'file',
      weight,
      role: 'member',
      secrets: [{ hash: hash.replace(/^sha256:/, ''), createdAtMs: 0 }],
      terms: isLimit(allowance) ? { allowance } : {},
    }),
  )
  return { orgs, tenants, keys }
}

const isLimit = (allowance: object): boolean => Object.keys(allowance).length > 0
