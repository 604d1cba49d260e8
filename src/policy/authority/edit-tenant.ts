import { STORING_DEFAULTS, STORING_MAX, type StoringTerms } from '../../domain/archive.ts'
import type { AuthorityRefusal, OrgRecord, TenantRecord, TreeEdit } from '../../domain/tenancy.ts'
import type { AnswerCacheTerms } from '../../domain/tenant.ts'
import {
  boundRefusal,
  checkTerms,
  type EditContext,
  type EditPlan,
  fileRefusal,
  idRefusal,
  noSuch,
  PLATFORM,
  planned,
  refusalOf,
  refusedBy,
  tenantInReach,
  tenantParents,
  weightRefusal,
} from './edit-checks.ts'
import { managingGain } from './managing-gain.ts'
import { mayDo } from './may-do.ts'
import { quoted } from './plain-text.ts'
import { termsBelowOrg } from './tree.ts'
import { isNumberIn } from './valid-terms.ts'

/**
 * Which edits of a tenant make sense?
 *
 * A tenant's promise is one of those that its org was given. Weights divide the org's share among its tenants, so an
 * org's administrator sets them, but only where the org has a weight of its own: an org without one weighs as much as its
 * tenants, and its administrator would take from other orgs. Whether answers are stored for the tenant's clients, and how
 * many, is an operator's to say: the store is the platform's. The removal of a tenant removes its keys.
 */
type EditOf<Kind extends TreeEdit['kind']> = Extract<TreeEdit, { readonly kind: Kind }>
type TenantValues = Omit<EditOf<'change-tenant'>, 'kind' | 'id' | 'because'>

export function createTenant(context: EditContext, edit: EditOf<'create-tenant'>): EditPlan {
  const { tree, actor } = context
  const { id, orgId } = edit
  const ruling = mayDo(actor, 'change-tenant', { orgId })
  if (ruling.kind === 'refused') return refusedBy(ruling.refusal)
  const org = tree.orgs.get(orgId)
  if (org === undefined) return refusedBy(noSuch(context, 'org', orgId))
  const { bounds } = tree
  const refusal =
    idRefusal('tenant', id, tree.tenants.has(id)) ??
    boundRefusal('tenants', tree.tenants.size, bounds.tenantsMax) ??
    boundRefusal('tenants in the org', tree.tenantIds.get(orgId)?.size ?? 0, bounds.tenantsPerOrgMax, {
      kind: 'org',
      id: orgId,
    }) ??
    shareRefusal(context, org) ??
    storingRefusal(context, edit.storing) ??
    screeningRefusal(context, edit.screening) ??
    valuesRefusal(org, edit)
  if (refusal !== undefined) return refusedBy(refusal)
  const slo = edit.slo ?? org.slos[0]
  if (slo === undefined) return refusedBy(sloRefusal(org, ''))
  const checked = checkTerms(tenantParents(org), {}, edit.terms ?? {})
  if ('refusal' in checked) return refusedBy(checked.refusal)
  const first = { id, orgId, source: 'registry', weight: 1, slo, contract: 'degrade', bidMax: 0 } as const
  const after: TenantRecord = { ...withValues({ ...first, terms: {} }, edit), terms: checked.terms }
  return planned(orgId, { level: 'tenant', before: undefined, after })
}

export function changeTenant(context: EditContext, edit: EditOf<'change-tenant'>): EditPlan {
  const { tree } = context
  const before = tenantInReach(context, edit.id)
  const org = before === undefined ? undefined : tree.orgs.get(before.orgId)
  if (before === undefined || org === undefined) return refusedBy(noSuch(context, 'tenant', edit.id))
  const refusal =
    fileRefusal('tenant', before) ??
    (edit.weight === undefined ? undefined : shareRefusal(context, org)) ??
    storingRefusal(context, edit.storing) ??
    screeningRefusal(context, edit.screening) ??
    valuesRefusal(org, edit)
  if (refusal !== undefined) return refusedBy(refusal)
  const checked = checkTerms(tenantParents(org), before.terms, edit.terms ?? {})
  if ('refusal' in checked) return refusedBy(checked.refusal)
  const after: TenantRecord = { ...withValues(before, edit), terms: checked.terms }
  const gain = edit.terms === undefined ? undefined : gainOfKeys(context, before, after)
  return gain === undefined ? planned(org.id, { level: 'tenant', before, after }) : refusedBy(gain)
}

export function removeTenant(context: EditContext, { id }: { readonly id: string }): EditPlan {
  const { tree } = context
  const before = tenantInReach(context, id)
  if (before === undefined) return refusedBy(noSuch(context, 'tenant', id))
  const keys = [...(tree.keyIds.get(id)?.entries() ?? [])].flatMap(([keyId]) => tree.keys.get(keyId) ?? [])
  const refusal =
    fileRefusal('tenant', before) ?? keys.map((key) => fileRefusal('key', key)).find((one) => one !== undefined)
  if (refusal !== undefined) return refusedBy(refusal)
  return planned(before.orgId, ...keys.map((key) => ({ level: 'key', before: key, after: undefined }) as const), {
    level: 'tenant',
    before,
    after: undefined,
  })
}

/** Keys of the tenant that manage must not become stronger than the actor. A tenant has a bounded number of keys. */
function gainOfKeys(context: EditContext, before: TenantRecord, after: TenantRecord): AuthorityRefusal | undefined {
  const { tree, actor } = context
  if (actor.kind === 'operator') return undefined
  for (const [keyId] of tree.keyIds.get(before.id)?.entries() ?? []) {
    const key = tree.keys.get(keyId)
    if (key?.terms.canManage !== true) continue
    const was = { ...key, terms: termsBelowOrg(before, key) }
    const gain = managingGain(actor, was, { ...key, terms: termsBelowOrg(after, key) })
    if (gain !== undefined) return gain
  }
  return undefined
}

function shareRefusal({ actor }: EditContext, { id, weight }: OrgRecord): AuthorityRefusal | undefined {
  if (actor.kind === 'operator' || weight !== undefined) return undefined
  const because = `the org ${id} has no weight of its own, so its tenants' weights count against other orgs. Have an operator give the org a weight`
  return refusalOf('org-has-weight', PLATFORM, 'weight', because)
}

function storingRefusal({ actor }: EditContext, storing: TenantValues['storing']): AuthorityRefusal | undefined {
  if (storing === undefined) return undefined
  if (actor.kind !== 'operator' && storing !== null) {
    const because = 'answers are stored by the platform. Have an operator allow it'
    return refusalOf('role-allows', PLATFORM, 'storing', because)
  }
  for (const part of ['ttlS', 'countMax', 'bytesMax'] as const) {
    const value = storing?.[part]
    if (value === undefined || (Number.isSafeInteger(value) && value >= 1 && value <= STORING_MAX[part])) continue
    const because = `the value of storing.${part} is not a whole number from 1 to ${STORING_MAX[part]}`
    return refusalOf('value-is-valid', PLATFORM, `storing.${part}`, because)
  }
  return undefined
}

/** A policy protects others than those who are screened. What it may say is the settings' to check. */
function screeningRefusal({ actor }: EditContext, screening: TenantValues['screening']): AuthorityRefusal | undefined {
  if (screening === undefined || actor.kind === 'operator') return undefined
  return refusalOf('role-allows', PLATFORM, 'screening', 'the policy of screening is an operator’s to change')
}

/** Bounds as in the configuration file. */
const BID_MAX = 1_000_000
const QUEUE_US_MAX = 86_400_000_000

function valuesRefusal(org: OrgRecord, values: TenantValues): AuthorityRefusal | undefined {
  const { slo, contract, bidMax, queueUsMax, answerCache } = values
  const invalid = (param: string, because: string): AuthorityRefusal =>
    refusalOf('value-is-valid', PLATFORM, param, `the value of ${param} ${because}`)
  if (slo !== undefined && !org.slos.includes(slo)) return sloRefusal(org, slo)
  if (contract !== undefined && contract !== 'degrade' && contract !== 'reject') {
    return invalid('contract', 'is neither degrade nor reject')
  }
  if (bidMax !== undefined && bidMax !== 0 && !isNumberIn(bidMax, 0, BID_MAX)) {
    return invalid('bidMax', `is not between 0 and ${BID_MAX}`)
  }
  const isWait = queueUsMax === undefined || queueUsMax === null || Number.isSafeInteger(queueUsMax)
  if (!isWait || (queueUsMax ?? 0) < 0 || (queueUsMax ?? 0) > QUEUE_US_MAX) {
    return invalid('queueUsMax', 'is not a time between 0 and a day')
  }
  const wrong = answerCache === undefined || answerCache === null ? undefined : wrongCacheTerm(answerCache)
  if (wrong !== undefined) return invalid(`answerCache.${wrong}`, `is not between ${CACHE_TERMS[wrong].join(' and ')}`)
  return weightRefusal(values.weight)
}

/** Least and most of each, as in the configuration file. */
const CACHE_TERMS: Readonly<Record<keyof AnswerCacheTerms, readonly [number, number]>> = {
  similarityMin: [0, 1],
  temperatureMax: [0, 2],
  ttlUs: [1_000_000, 31_536_000_000_000],
  checkRatio: [0, 1],
}

function wrongCacheTerm(terms: AnswerCacheTerms): keyof AnswerCacheTerms | undefined {
  const names = Object.keys(CACHE_TERMS) as Array<keyof AnswerCacheTerms>
  return names.find((name) => !(terms[name] >= CACHE_TERMS[name][0] && terms[name] <= CACHE_TERMS[name][1]))
}

function sloRefusal({ id, slos }: OrgRecord, slo: string): AuthorityRefusal {
  const because = `the promise ${quoted(slo)} is none of those of the org ${id}: ${slos.join(', ')}`
  return refusalOf('slo-of-org', { kind: 'org', id }, 'slo', because)
}

function withValues(tenant: TenantRecord, values: TenantValues): TenantRecord {
  const { weight, slo, contract, bidMax, queueUsMax, answerCache } = values
  const { queueUsMax: wait, answerCache: cache, storing: _before, screening: policy, ...rest } = tenant
  const storing = storingAfter(tenant, values)
  const nextWait = queueUsMax === undefined ? wait : (queueUsMax ?? undefined)
  const nextPolicy = values.screening === undefined ? policy : (values.screening ?? undefined)
  const nextCache = answerCache === undefined ? cache : (answerCache ?? undefined)
  return {
    ...rest,
    ...(weight !== undefined && { weight }),
    ...(slo !== undefined && { slo }),
    ...(contract !== undefined && { contract }),
    ...(bidMax !== undefined && { bidMax }),
    ...(nextWait !== undefined && { queueUsMax: nextWait }),
    ...(nextCache !== undefined && { answerCache: nextCache }),
    ...(storing !== undefined && { storing }),
    ...(nextPolicy !== undefined && { screening: nextPolicy }),
  }
}

function storingAfter({ storing: before }: TenantRecord, { storing }: TenantValues): StoringTerms | undefined {
  if (storing === undefined || storing === null) return storing === null ? undefined : before
  return { ...STORING_DEFAULTS, ...before, ...storing }
}
