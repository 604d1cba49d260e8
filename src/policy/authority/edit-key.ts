import { type Actor, KEY_ROLES } from '../../domain/actor.ts'
import { GRACE_MS_MAX, type KeySecret, LIVE_SECRETS_MAX, type TermsPatch } from '../../domain/key-terms.ts'
import type { AuthorityRefusal, KeyRecord, TreeEdit } from '../../domain/tenancy.ts'
import {
  boundRefusal,
  checkTerms,
  type EditContext,
  type EditPlan,
  fileRefusal,
  idRefusal,
  keyInReach,
  keyParents,
  noSuch,
  PLATFORM,
  planned,
  refusalOf,
  refusedBy,
  tenantInReach,
  weightRefusal,
} from './edit-checks.ts'
import { boundByActor, managingGain } from './managing-gain.ts'
import { wholeProblem } from './valid-terms.ts'

/**
 * Which edits of a key make sense?
 *
 * A key keeps its id for life; secrets come and go. A rotation adds a secret and lets the one before live on for a grace
 * of 0 to 7 days, so that clients can change over without a refused request. At most two secrets are live: a rotation
 * during a grace is refused, unless its own grace is 0, which ends all older secrets at once (a secret has leaked). Ended
 * secrets leave the record at the next rotation or revocation; until then they are known, and refused.
 *
 * Example: secret A; rotate with a grace of a day: A (until tomorrow), B. Rotate again within the day: refused. Revoke A,
 * then rotate: B (until its grace ends), C.
 */
type EditOf<Kind extends TreeEdit['kind']> = Extract<TreeEdit, { readonly kind: Kind }>

export function createKey(context: EditContext, edit: EditOf<'create-key'>): EditPlan {
  const { tree, actor, nowMs } = context
  const { id, tenantId, hash, weight = 1, role = 'member' } = edit
  const tenant = tenantInReach(context, tenantId)
  const org = tenant === undefined ? undefined : tree.orgs.get(tenant.orgId)
  if (tenant === undefined || org === undefined) return refusedBy(noSuch(context, 'tenant', tenantId))
  const { bounds } = tree
  const count = tree.keyIds.get(tenantId)?.size ?? 0
  const refusal =
    idRefusal('key', id, tree.keys.has(id)) ??
    boundRefusal('keys', tree.keys.size, bounds.keysMax) ??
    boundRefusal('keys of the tenant', count, bounds.keysPerTenantMax, { kind: 'tenant', id: tenantId }) ??
    weightRefusal(weight) ??
    roleRefusal(role) ??
    hashRefusal(context, hash) ??
    budgetRefusal(edit.terms)
  if (refusal !== undefined) return refusedBy(refusal)
  // A new key manages only if the call says so.
  const checked = checkTerms(keyParents(org, tenant), { canManage: false }, edit.terms ?? {})
  if ('refusal' in checked) return refusedBy(checked.refusal)
  const terms = boundByActor(actor, { canManage: false, ...checked.terms })
  const never = wholeProblem(terms)
  if (never !== undefined) return refusedBy(refusalOf('value-is-valid', PLATFORM, never.param, never.because))
  const secrets = [{ hash, createdAtMs: nowMs }]
  const after: KeyRecord = { id, tenantId, source: 'registry', weight, role, secrets, terms }
  const gain = managingGain(actor, undefined, after)
  return gain === undefined ? planned(org.id, { level: 'key', before: undefined, after }) : refusedBy(gain)
}

export function changeKey(context: EditContext, edit: EditOf<'change-key'>): EditPlan {
  const found = keyInReach(context, edit.id)
  const org = found === undefined ? undefined : context.tree.orgs.get(found.tenant.orgId)
  if (found === undefined || org === undefined) return refusedBy(noSuch(context, 'key', edit.id))
  const { key: before, tenant } = found
  const { weight, role } = edit
  const refusal =
    fileRefusal('key', before) ??
    weightRefusal(weight) ??
    (role === undefined ? undefined : roleRefusal(role)) ??
    budgetRefusal(edit.terms)
  if (refusal !== undefined) return refusedBy(refusal)
  const checked = checkTerms(keyParents(org, tenant), before.terms, edit.terms ?? {})
  if ('refusal' in checked) return refusedBy(checked.refusal)
  const after: KeyRecord = {
    ...before,
    ...(weight !== undefined && { weight }),
    ...(role !== undefined && { role }),
    // Back to the parent's would be back to true.
    terms: { canManage: false, ...checked.terms },
  }
  const gain = managingGain(context.actor, before, after) ?? knownSecretRefusal(before, after, context.nowMs)
  return gain === undefined ? planned(org.id, { level: 'key', before, after }) : refusedBy(gain)
}

/**
 * A key that does not manage may be rotated by every administrator of its org, also by one that ends tomorrow. So nobody
 * can say who knows its secrets, and none of them may begin to manage: operators are bound by this, too.
 */
function knownSecretRefusal(before: KeyRecord, after: KeyRecord, nowMs: number): AuthorityRefusal | undefined {
  const begins = before.terms.canManage !== true && after.terms.canManage === true
  if (!begins || liveSecrets(before, nowMs).length === 0) return undefined
  const because =
    `the key ${before.id} would manage with secrets that were given out while it did not. ` +
    'Revoke its secrets, give it canManage, then rotate it; or create another key'
  return refusalOf('canManage-with-new-secret', { kind: 'key', id: before.id }, 'terms.canManage', because)
}

/** The ledger counts models and end users for each tenant, not for each key. */
function budgetRefusal(terms: TermsPatch | undefined): AuthorityRefusal | undefined {
  const budgets = terms?.allowance?.budgets ?? []
  if (!budgets.some(({ model, isPerUser }) => model !== undefined || isPerUser === true)) return undefined
  const because = 'is for a model or per user, which keys do not have: give it to the tenant'
  return refusalOf('value-is-valid', PLATFORM, 'terms.allowance.budgets', because)
}

export function removeKey(context: EditContext, { id }: { readonly id: string }): EditPlan {
  const found = keyInReach(context, id)
  if (found === undefined) return refusedBy(noSuch(context, 'key', id))
  const refusal = fileRefusal('key', found.key)
  if (refusal !== undefined) return refusedBy(refusal)
  return planned(found.tenant.orgId, { level: 'key', before: found.key, after: undefined })
}

export function rotateKey(context: EditContext, edit: EditOf<'rotate-key'>): EditPlan {
  const { actor, nowMs } = context
  const { id, hash, graceMs } = edit
  const found = keyInReach(context, id)
  if (found === undefined) return refusedBy(noSuch(context, 'key', id))
  const { key: before, tenant } = found
  const live = liveSecrets(before, nowMs)
  const refusal =
    fileRefusal('key', before) ??
    graceRefusal(graceMs) ??
    hashRefusal(context, hash) ??
    // The caller of a rotation learns the new secret.
    (isOwnRenewal(actor, before) ? undefined : managingGain(actor, undefined, before)) ??
    (graceMs > 0 && live.length >= LIVE_SECRETS_MAX ? tooManyLive(before, live) : undefined)
  if (refusal !== undefined) return refusedBy(refusal)
  const kept = graceMs === 0 ? [] : live.map((secret) => endingBy(secret, nowMs + graceMs))
  const after: KeyRecord = { ...before, secrets: [...kept, { hash, createdAtMs: nowMs }] }
  return planned(tenant.orgId, { level: 'key', before, after })
}

/** Who holds the newest secret of a key may replace it: the new one is worth as much. */
function isOwnRenewal(actor: Actor, { id, secrets }: KeyRecord): boolean {
  const credential = actor.kind === 'operator' ? undefined : actor.credential
  return credential?.keyId === id && secrets.some((one) => one.hash === credential.hash && one.endsAtMs === undefined)
}

/** A key may lose its last secret: it then waits, with its id and terms, for a rotation. */
export function revokeSecret(context: EditContext, { id, hash }: EditOf<'revoke-secret'>): EditPlan {
  const found = keyInReach(context, id)
  if (found === undefined) return refusedBy(noSuch(context, 'key', id))
  const { key: before, tenant } = found
  const refusal = fileRefusal('key', before)
  if (refusal !== undefined) return refusedBy(refusal)
  if (!before.secrets.some((secret) => secret.hash === hash)) {
    return refusedBy(refusalOf('exists', { kind: 'key', id }, 'hash', `the key ${id} has no secret with this hash`))
  }
  const secrets = liveSecrets(before, context.nowMs).filter((secret) => secret.hash !== hash)
  return planned(tenant.orgId, { level: 'key', before, after: { ...before, secrets } })
}

export function liveSecrets({ secrets }: KeyRecord, nowMs: number): readonly KeySecret[] {
  return secrets.filter(({ endsAtMs }) => endsAtMs === undefined || nowMs < endsAtMs)
}

const endingBy = (secret: KeySecret, atMs: number): KeySecret => ({
  ...secret,
  endsAtMs: Math.min(secret.endsAtMs ?? atMs, atMs),
})

function tooManyLive({ id }: KeyRecord, live: readonly KeySecret[]): AuthorityRefusal {
  const ends = new Date(Math.min(...live.map(({ endsAtMs }) => endsAtMs ?? Number.MAX_SAFE_INTEGER)))
  const when = Number.isNaN(ends.getTime()) ? '' : ` until ${ends.toISOString()}`
  const because = `the key ${id} has ${live.length} live secrets, the older one${when}. Wait, revoke it, or rotate with a grace of 0, which ends both`
  return refusalOf('two-live-secrets', { kind: 'key', id }, 'graceMs', because)
}

function graceRefusal(graceMs: number): AuthorityRefusal | undefined {
  if (Number.isSafeInteger(graceMs) && graceMs >= 0 && graceMs <= GRACE_MS_MAX) return undefined
  return refusalOf(
    'grace-within-week',
    PLATFORM,
    'graceMs',
    `the grace is not between 0 and ${GRACE_MS_MAX} ms (7 days)`,
  )
}

const HASH = /^[0-9a-f]{64}$/

function hashRefusal({ tree }: EditContext, hash: string): AuthorityRefusal | undefined {
  if (!HASH.test(hash)) {
    return refusalOf(
      'value-is-valid',
      PLATFORM,
      'hash',
      'the hash is not a SHA-256 in 64 lower-case hexadecimal digits',
    )
  }
  // The refusal does not say whose secret it is.
  return tree.keyIdByHash.has(hash)
    ? refusalOf('hash-is-new', PLATFORM, 'hash', 'the secret is in use. Make a new one')
    : undefined
}

function roleRefusal(role: string): AuthorityRefusal | undefined {
  if (KEY_ROLES.some((one) => one === role)) return undefined
  return refusalOf('value-is-valid', PLATFORM, 'role', `the role of a key is one of ${KEY_ROLES.join(', ')}`)
}
