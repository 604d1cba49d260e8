import type { Actor } from '../../domain/actor.ts'
import type { KeyTerms, TermsPatch } from '../../domain/key-terms.ts'
import type {
  AuthorityHolder,
  AuthorityRefusal,
  AuthorityRule,
  KeyRecord,
  OrgRecord,
  TenantRecord,
} from '../../domain/tenancy.ts'
import { WEIGHT_MAX, WEIGHT_MIN } from '../../domain/tenant.ts'
import { PLATFORM_TERMS } from './clip-terms.ts'
import { type AuthorityParent, narrow } from './narrow.ts'
import { idProblem, quoted } from './plain-text.ts'
import type { RecordChange, TenancyTree } from './tree.ts'
import { namedTerms, patchedTerms, patchProblem, wholeProblem } from './valid-terms.ts'

/**
 * What do the edits of all levels have to check?
 *
 * Each check returns the refusal or undefined, so that an edit reads as a list of its rules in their order. For an actor
 * of an org, a record of another org and a record that does not exist are refused with the same words: a refusal must
 * not tell whether somebody else's tenant exists. (An id that is taken can be noticed by creating it: ids are one
 * namespace, because metrics, logs and secrets name a tenant or key by its id alone.)
 */
export interface EditContext {
  readonly tree: TenancyTree
  readonly actor: Actor
  readonly nowMs: number
}

/** Changes that an edit makes within one org, or the refusal of all of them. */
export type EditPlan =
  | { readonly kind: 'planned'; readonly orgId: string; readonly changes: readonly RecordChange[] }
  | { readonly kind: 'refused'; readonly refusal: AuthorityRefusal }

export const PLATFORM: AuthorityHolder = { kind: 'platform' }

export const planned = (orgId: string, ...changes: readonly RecordChange[]): EditPlan => ({
  kind: 'planned',
  orgId,
  changes,
})

export const refusedBy = (refusal: AuthorityRefusal): EditPlan => ({ kind: 'refused', refusal })

export function refusalOf(
  rule: AuthorityRule,
  authority: AuthorityHolder,
  param: string | null,
  because: string,
): AuthorityRefusal {
  return { rule, authority, param, because }
}

/** The tenant of this id, as far as the actor can see. */
export function tenantInReach({ tree, actor }: EditContext, id: string): TenantRecord | undefined {
  const tenant = tree.tenants.get(id)
  return tenant !== undefined && (actor.kind === 'operator' || tenant.orgId === actor.orgId) ? tenant : undefined
}

/** The key of this id with its tenant, as far as the actor can see. */
export function keyInReach(
  context: EditContext,
  id: string,
): { readonly key: KeyRecord; readonly tenant: TenantRecord } | undefined {
  const key = context.tree.keys.get(id)
  const tenant = key === undefined ? undefined : tenantInReach(context, key.tenantId)
  return key === undefined || tenant === undefined ? undefined : { key, tenant }
}

export function noSuch(
  { actor }: Pick<EditContext, 'actor'>,
  level: RecordChange['level'],
  id: string,
): AuthorityRefusal {
  const isOperator = actor.kind === 'operator'
  const where = isOperator ? 'here' : `in the org ${actor.orgId}`
  const authority: AuthorityHolder = isOperator ? PLATFORM : { kind: 'org', id: actor.orgId }
  return refusalOf('exists', authority, level, `there is no ${level} ${quoted(id)} ${where}`)
}

export function idRefusal(level: RecordChange['level'], id: string, isTaken: boolean): AuthorityRefusal | undefined {
  const problem = idProblem(id)
  if (problem !== undefined) return refusalOf('id-is-plain', PLATFORM, 'id', `${quoted(id)} ${problem}`)
  if (!isTaken) return undefined
  return refusalOf('id-is-free', PLATFORM, 'id', `the ${level} id ${id} is taken. Take another one`)
}

export function fileRefusal(
  level: RecordChange['level'],
  { id, source }: OrgRecord | TenantRecord | KeyRecord,
): AuthorityRefusal | undefined {
  if (source !== 'file') return undefined
  const because = `the ${level} ${id} is in the configuration file, which wins. Change the file, then reload it`
  return refusalOf('file-wins', { kind: 'configuration-file' }, 'id', because)
}

export function weightRefusal(weight: number | undefined): AuthorityRefusal | undefined {
  if (weight === undefined || (weight >= WEIGHT_MIN && weight <= WEIGHT_MAX)) return undefined
  return refusalOf('value-is-valid', PLATFORM, 'weight', `the weight is not between ${WEIGHT_MIN} and ${WEIGHT_MAX}`)
}

export function boundRefusal(
  what: string,
  count: number,
  max: number,
  holder = PLATFORM,
): AuthorityRefusal | undefined {
  if (count < max) return undefined
  return refusalOf('within-bound', holder, null, `there are ${max} ${what} already. Remove what is not used`)
}

/** Terms of a record after a patch: valid, and narrowed by every parent. The record stores its own parts only. */
export function checkTerms(
  parents: readonly AuthorityParent[],
  current: KeyTerms,
  patch: TermsPatch,
): { readonly terms: KeyTerms } | { readonly refusal: AuthorityRefusal } {
  const terms = patchedTerms(current, patch)
  const problem = patchProblem(patch) ?? wholeProblem(terms)
  if (problem !== undefined) {
    return {
      refusal: refusalOf('value-is-valid', PLATFORM, problem.param, `the value of ${problem.param} ${problem.because}`),
    }
  }
  for (const parent of parents) {
    const narrowed = narrow(parent, namedTerms(patch))
    if (narrowed.kind === 'refused') return { refusal: narrowed.refusal }
  }
  return { terms }
}

/** Whose terms bound those of an org, a tenant and a key: outermost first, so that a refusal names the highest. */
export const orgParents: readonly AuthorityParent[] = [{ holder: PLATFORM, terms: PLATFORM_TERMS }]

export function tenantParents({ id, terms }: OrgRecord): readonly AuthorityParent[] {
  return [...orgParents, { holder: { kind: 'org', id }, terms }]
}

export function keyParents(org: OrgRecord, { id, terms }: TenantRecord): readonly AuthorityParent[] {
  return [...tenantParents(org), { holder: { kind: 'tenant', id }, terms }]
}
