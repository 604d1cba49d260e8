import type { Actor, KeyRole, OrgActor } from '../../domain/actor.ts'
import type { KeyTerms } from '../../domain/key-terms.ts'
import type { AuthorityRefusal } from '../../domain/tenancy.ts'
import { isPartWithin } from './clip-terms.ts'
import { isRoleWithin } from './may-do.ts'

/**
 * Would an edit let its actor manage more, longer or from elsewhere than it may now?
 *
 * An org's administrator may make and change keys that manage. Without a bound, an administrator until tomorrow could
 * make a second key without an end, rotate the secret of a stronger key and so learn it, or lift the end of the tenant
 * that its own key is in. So every managing key that an edit makes, strengthens or gives a secret to is held against the
 * actor's authority as a whole: its role, its times, its client addresses. A key that an edit does not strengthen as a
 * whole may stay as strong as it was, because an actor with that authority made it so. The two are not mixed part by
 * part: an unbounded key that reads metrics and an administrator until tomorrow do not add up to an unbounded
 * administrator.
 *
 * A key that begins to manage needs a new secret, whoever the actor is (`edit-key.ts`): while it did not manage, every
 * administrator could rotate it and keep the secret.
 *
 * A key is judged by its own terms, not by those in force: a bound of its tenant may be lifted later by somebody else,
 * and the actor would still know the secret. For the same reason a new managing key stores the actor's bounds as its own
 * where the call names none (`boundByActor`). Where a tenant's terms change, what they make of its keys is compared. An
 * org's own terms are left out on both sides: they bind actor and key alike, and only operators change them.
 *
 * A secret in its grace counts as expiring with the grace (`find-key.ts`): otherwise a thief of the old secret could use
 * the grace to rotate again, and own the key.
 *
 * What a key may infer is not compared: who manages an org's keys may give them anything that the org has.
 * Operators are not bound: their authority is the platform's.
 * Example: the actor's key expires on Friday. A new managing key until Monday is refused by `expiresAtMs-within-actor`,
 * on the authority of the actor's key; a new key without `canManage` until Monday is fine.
 */
export interface ManagingKey {
  readonly id: string
  readonly role: KeyRole
  readonly terms: KeyTerms
}

const MANAGING_PARTS = ['notBeforeAtMs', 'expiresAtMs', 'clientRanges'] as const

type ManagingPart = 'role' | (typeof MANAGING_PARTS)[number]

/** `before` is the key as it was; undefined when the edit makes the key, or gives the actor a secret of it. */
export function managingGain(
  actor: Actor,
  before: ManagingKey | undefined,
  after: ManagingKey,
): AuthorityRefusal | undefined {
  if (actor.kind === 'operator' || after.terms.canManage !== true) return undefined
  const [part] = partsBeyond(actor, after)
  if (part === undefined) return undefined
  const had = before?.terms.canManage === true ? partsBeyond(before, after) : undefined
  if (had?.length === 0) return undefined
  return part === 'role' ? roleExcess(actor, after) : excessOf(actor, part, after)
}

/** The parts in which the one manages more than the other; none when it manages nothing that the other does not. */
function partsBeyond(outer: Pick<ManagingKey, 'role' | 'terms'>, inner: ManagingKey): readonly ManagingPart[] {
  const parts = MANAGING_PARTS.filter((part) => !isPartWithin(part, outer.terms, inner.terms))
  return isRoleWithin(outer.role, inner.role) ? parts : ['role', ...parts]
}

/** Terms of a new managing key, with the actor's bounds where the key has none of its own. */
export function boundByActor(actor: Actor, terms: KeyTerms): KeyTerms {
  if (actor.kind === 'operator' || terms.canManage !== true) return terms
  const { notBeforeAtMs, expiresAtMs, clientRanges } = actor.terms
  return {
    ...(notBeforeAtMs !== undefined && { notBeforeAtMs }),
    ...(expiresAtMs !== undefined && { expiresAtMs }),
    ...(clientRanges !== undefined && { clientRanges }),
    ...terms,
  }
}

function roleExcess(actor: OrgActor, { id, role }: ManagingKey): AuthorityRefusal {
  const because = `the role ${role} of the key ${id} allows more than the actor's own, ${actor.role}`
  return { rule: 'role-within-actor', authority: ownKeyOf(actor), param: 'role', because }
}

function excessOf(actor: OrgActor, part: (typeof MANAGING_PARTS)[number], { id }: ManagingKey): AuthorityRefusal {
  const because =
    `the key ${id} manages, and its ${part} would go beyond that of the actor's own key. ` +
    'Bound it as the actor is bound, or have an administrator with wider terms do this'
  return { rule: `${part}-within-actor`, authority: ownKeyOf(actor), param: `terms.${part}`, because }
}

const ownKeyOf = ({ credential, name }: OrgActor) => ({ kind: 'key', id: credential?.keyId ?? name }) as const
