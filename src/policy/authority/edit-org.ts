import type { OrgRecord, TreeEdit } from '../../domain/tenancy.ts'
import {
  boundRefusal,
  checkTerms,
  type EditContext,
  type EditPlan,
  fileRefusal,
  idRefusal,
  noSuch,
  orgParents,
  PLATFORM,
  planned,
  refusalOf,
  refusedBy,
  weightRefusal,
} from './edit-checks.ts'
import { quoted } from './plain-text.ts'

/**
 * Which edits of an org make sense?
 *
 * Only operators get here. A new org has a weight of its own, 1 unless another is asked for: an org that weighed as much
 * as its tenants could raise its share by making more of them. An org goes when its last tenant has gone, so that no
 * single call can cut off many tenants.
 */
type EditOf<Kind extends TreeEdit['kind']> = Extract<TreeEdit, { readonly kind: Kind }>

export function createOrg({ tree }: EditContext, edit: EditOf<'create-org'>): EditPlan {
  const { id, weight = 1, slos = [], terms = {} } = edit
  const refusal =
    idRefusal('org', id, tree.orgs.has(id)) ??
    boundRefusal('orgs', tree.orgs.size, tree.bounds.orgsMax) ??
    weightRefusal(weight) ??
    slosRefusal(slos)
  if (refusal !== undefined) return refusedBy(refusal)
  const checked = checkTerms(orgParents, {}, terms)
  if ('refusal' in checked) return refusedBy(checked.refusal)
  const after: OrgRecord = { id, source: 'registry', weight, slos, terms: checked.terms }
  return planned(id, { level: 'org', before: undefined, after })
}

export function changeOrg(context: EditContext, edit: EditOf<'change-org'>): EditPlan {
  const before = context.tree.orgs.get(edit.id)
  if (before === undefined) return refusedBy(noSuch(context, 'org', edit.id))
  const { weight, slos, terms = {} } = edit
  const refusal =
    fileRefusal('org', before) ?? weightRefusal(weight) ?? (slos === undefined ? undefined : slosRefusal(slos))
  if (refusal !== undefined) return refusedBy(refusal)
  const checked = checkTerms(orgParents, before.terms, terms)
  if ('refusal' in checked) return refusedBy(checked.refusal)
  const after: OrgRecord = {
    ...before,
    ...(weight !== undefined && { weight }),
    ...(slos !== undefined && { slos }),
    terms: checked.terms,
  }
  return planned(before.id, { level: 'org', before, after })
}

export function removeOrg(context: EditContext, { id }: { readonly id: string }): EditPlan {
  const before = context.tree.orgs.get(id)
  if (before === undefined) return refusedBy(noSuch(context, 'org', id))
  const tenantCount = context.tree.tenantIds.get(id)?.size ?? 0
  const inUse =
    tenantCount === 0
      ? undefined
      : refusalOf(
          'org-is-empty',
          { kind: 'org', id },
          'id',
          `the org ${id} has ${tenantCount} tenants. Remove them first`,
        )
  const refusal = fileRefusal('org', before) ?? inUse
  return refusal === undefined ? planned(id, { level: 'org', before, after: undefined }) : refusedBy(refusal)
}

/** Promises of one org at most; their names are checked against the configuration where they are used. */
const SLOS_MAX = 32
const SLO_NAME = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$/

function slosRefusal(slos: readonly string[]) {
  const wrong = slos.find((slo) => !SLO_NAME.test(slo))
  if (slos.length > 0 && slos.length <= SLOS_MAX && wrong === undefined) return undefined
  const because =
    wrong === undefined ? `name 1 to ${SLOS_MAX} promises` : `${quoted(wrong)} is not the name of a promise`
  return refusalOf('value-is-valid', PLATFORM, 'slos', because)
}
