import { unreachable } from '../../base/assert.ts'
import type { Actor, AdminAction } from '../../domain/actor.ts'
import type { AuthorityRefusal, TreeEdit, TreeFact } from '../../domain/tenancy.ts'
import { type EditContext, type EditPlan, PLATFORM, refusalOf } from './edit-checks.ts'
import { changeKey, createKey, removeKey, revokeSecret, rotateKey } from './edit-key.ts'
import { changeOrg, createOrg, removeOrg } from './edit-org.ts'
import { changeTenant, createTenant, removeTenant } from './edit-tenant.ts'
import { actorOfSecret } from './find-key.ts'
import { mayDo } from './may-do.ts'
import { quoted, reasonProblem } from './plain-text.ts'
import { actorOfToken } from './token-actor.ts'
import { applyFact, type TenancyTree } from './tree.ts'

/**
 * What does an administrative call make of the tree?
 *
 * Pure: tree, actor, edit and instant in; the next tree with the facts for the history out, or a refusal that names the
 * rule and whose authority it protects. The caller stores the facts first and puts the tree in force afterwards; a store
 * that fails leaves nothing to take back.
 *
 * In this order: is the actor still one (its secret may have been revoked since the call came in); does its role allow the
 * call; is the reason plain; then the rules of the level. An actor with a secret is read from the tree again, so that what
 * it brings along counts for nothing; that of a token is held against its tenant as it is now.
 *
 * Laws: a refused edit changes nothing. No edit makes an operator, moves a record to another org, or lets a child exceed
 * its parent. The facts, applied to the old tree, give the new one.
 */
export type EditResult =
  | { readonly kind: 'applied'; readonly tree: TenancyTree; readonly facts: readonly TreeFact[] }
  | { readonly kind: 'refused'; readonly refusal: AuthorityRefusal }

export function applyEdit(tree: TenancyTree, caller: Actor, edit: TreeEdit, nowMs: number): EditResult {
  const actor = liveActor(tree, caller, nowMs)
  if (actor === undefined) return { kind: 'refused', refusal: notLive(caller) }
  const ruling = mayDo(actor, ACTIONS_OF[edit.kind], actor.kind === 'operator' ? {} : actor)
  if (ruling.kind === 'refused') return ruling
  const problem = reasonProblem(edit.because)
  if (problem !== undefined) {
    return { kind: 'refused', refusal: refusalOf('text-is-plain', PLATFORM, 'because', `the reason ${problem}`) }
  }
  const plan = planOf({ tree, actor, nowMs }, edit)
  if (plan.kind === 'refused') return plan
  const { orgId, changes } = plan
  const story = { atMs: nowMs, by: actor.name, byKind: actor.kind, role: actor.role, because: edit.because }
  const facts = changes.map((change): TreeFact => ({ ...story, edit: edit.kind, orgId, ...change }))
  return { kind: 'applied', tree: facts.reduce(applyFact, tree), facts }
}

const ACTIONS_OF: Readonly<Record<TreeEdit['kind'], AdminAction>> = {
  'create-org': 'change-org',
  'change-org': 'change-org',
  'remove-org': 'change-org',
  'create-tenant': 'change-tenant',
  'change-tenant': 'change-tenant',
  'remove-tenant': 'change-tenant',
  'create-key': 'change-key',
  'change-key': 'change-key',
  'remove-key': 'change-key',
  'rotate-key': 'change-key',
  'revoke-secret': 'change-key',
}

function planOf(context: EditContext, edit: TreeEdit): EditPlan {
  switch (edit.kind) {
    case 'create-org':
      return createOrg(context, edit)
    case 'change-org':
      return changeOrg(context, edit)
    case 'remove-org':
      return removeOrg(context, edit)
    case 'create-tenant':
      return createTenant(context, edit)
    case 'change-tenant':
      return changeTenant(context, edit)
    case 'remove-tenant':
      return removeTenant(context, edit)
    case 'create-key':
      return createKey(context, edit)
    case 'change-key':
      return changeKey(context, edit)
    case 'remove-key':
      return removeKey(context, edit)
    case 'rotate-key':
      return rotateKey(context, edit)
    case 'revoke-secret':
      return revokeSecret(context, edit)
    default:
      return unreachable(edit)
  }
}

function liveActor(tree: TenancyTree, caller: Actor, nowMs: number): Actor | undefined {
  if (caller.kind === 'operator') return caller
  if (caller.credential !== undefined) return actorOfSecret(tree, caller.credential.hash, nowMs)
  const actor = actorOfToken(tree, caller, nowMs)
  // The tenant may have been removed meanwhile, and its id taken in another org.
  return actor?.orgId === caller.orgId ? actor : undefined
}

function notLive(caller: Actor): AuthorityRefusal {
  const because = `the key ${quoted(caller.name)} may not manage any more: it was removed or changed, or its time is over`
  return refusalOf('actor-is-live', { kind: 'key', id: caller.name }, null, because)
}
