import type { KeyTerms } from '../../domain/key-terms.ts'
import type { AuthorityHolder, AuthorityRefusal } from '../../domain/tenancy.ts'
import { replacedBudgets } from './clip-budgets.ts'
import { clipTerms, isPartWithin, TERMS_PARTS, type TermsPart } from './clip-terms.ts'
import { holderName } from './holder-name.ts'

/**
 * May a child have these terms below this parent?
 *
 * A child never exceeds its parent. A part that the child asks for by name must lie within the parent's part: asking for
 * more is refused rather than silently lowered, because a caller that was told "yes" would believe in what it asked for.
 * A part that the child does not name is the parent's. Every mutation of terms passes through here, once for each level
 * above.
 *
 * Limits are compared limit by limit, and only those that the child names: a child without a limit of its own spends its
 * parent's. The sum of the children's limits may exceed the parent's limit, which still binds.
 *
 * Laws: narrowed terms are within the parent's in every part; narrowing them again changes nothing.
 * Example: the tenant may use [m1, m2] until June. A key that wants [m1] gets [m1] until June; one that wants [m1, m3] is
 * refused by `models-within-parent`, on the tenant's authority.
 */
export interface AuthorityParent {
  readonly holder: AuthorityHolder
  readonly terms: KeyTerms
}

export type Narrowed =
  | { readonly kind: 'narrowed'; readonly terms: KeyTerms }
  | { readonly kind: 'refused'; readonly refusal: AuthorityRefusal }

export function narrow(parent: AuthorityParent, wanted: KeyTerms): Narrowed {
  // What the child does not name is the parent's, so only what the child names can exceed.
  const terms = clipTerms(parent.terms, wanted)
  const named = { ...parent.terms, ...wanted, ...(wanted.allowance && { allowance: allowanceOf(parent, wanted) }) }
  const part = TERMS_PARTS.find((one) => wanted[one] !== undefined && !isPartWithin(one, parent.terms, named))
  return part === undefined ? { kind: 'narrowed', terms } : { kind: 'refused', refusal: excess(parent, part, wanted) }
}

function allowanceOf({ terms }: AuthorityParent, { allowance }: KeyTerms): NonNullable<KeyTerms['allowance']> {
  const budgets = replacedBudgets(terms.allowance?.budgets, allowance?.budgets)
  return { ...terms.allowance, ...allowance, ...(budgets !== undefined && { budgets }) }
}

function excess({ holder, terms }: AuthorityParent, part: TermsPart, wanted: KeyTerms): AuthorityRefusal {
  const because =
    `the wanted ${part} ${shown(wanted[part])} exceeds what ${holderName(holder)} may do, ${shown(terms[part])}. ` +
    `Ask for less, or have ${holderName(holder)} be given more first`
  return { rule: `${part}-within-parent`, authority: holder, param: `terms.${part}`, because }
}

/** Values in a message are short: a list of models can be long. */
const SHOWN_LENGTH_MAX = 120

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text
}
