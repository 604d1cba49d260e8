import type { OrgActor } from '../../domain/actor.ts'
import type { KeySecret, KeyTerms } from '../../domain/key-terms.ts'
import type { KeyRecord, OrgRecord, TenantRecord } from '../../domain/tenancy.ts'
import type { ClientRange } from './client-range.ts'
import { clipTerms, rangesOf } from './clip-terms.ts'
import { keyTermsInForce, type TenancyTree, termsBelowOrg } from './tree.ts'

/**
 * Whose key is this, and do its terms hold now?
 *
 * The hash of the presented secret leads to the key, the key to its tenant and org; their terms are clipped to those in
 * force. What was found is remembered by the hash, with a number that goes up whenever the finder sees another tree: a
 * request pays one look-up in a plain map. The first look-up of a key after an edit also asks the tree, but only for the
 * levels that have changed anywhere since. When all three records are the same, the answer is the same object as before,
 * so that budgets can be kept by it.
 *
 * Bounded: a finder remembers no more secrets than the tree has, with some room for those that have gone. Unknown
 * secrets are not remembered.
 *
 * Deliberately not: what the key may ask for (`may-call.ts`), and when its secrets were used last (`secret-uses.ts`).
 */
export type FoundKey =
  | { readonly kind: 'found'; readonly found: KeyInForce }
  | { readonly kind: 'unknown' | 'secret-ended' | 'not-yet' | 'expired' }

export interface KeyInForce {
  readonly org: OrgRecord
  readonly tenant: TenantRecord
  readonly key: KeyRecord
  readonly secret: KeySecret
  readonly terms: KeyTerms
  /** The terms' client ranges, read once. */
  readonly ranges: readonly ClientRange[] | undefined
}

interface Remembered {
  /** The finder's number of the tree in which this was found last. */
  treeNumber: number
  answer: Extract<FoundKey, { kind: 'found' }>
}

/** Secrets that have left the tree and may still be remembered, beside those that are in it. */
const GONE_MAX = 1_000

export class KeyFinder {
  readonly #remembered = new Map<string, Remembered>()
  #tree: TenancyTree | undefined
  #treeNumber = 0
  /** Numbers of the trees in which a record of each level changed last. */
  #orgsNumber = 0
  #tenantsNumber = 0
  #keysNumber = 0

  find(tree: TenancyTree, hash: string, nowMs: number): FoundKey {
    if (tree !== this.#tree) this.#take(tree)
    const known = this.#remembered.get(hash)
    const answer = known?.treeNumber === this.#treeNumber ? known.answer : this.#walk(tree, hash, known)
    if (answer === undefined) return UNKNOWN
    const { secret, terms } = answer.found
    if (secret.endsAtMs !== undefined && nowMs >= secret.endsAtMs) return SECRET_ENDED
    return timeProblem(terms, nowMs) ?? answer
  }

  get rememberedCount(): number {
    return this.#remembered.size
  }

  #take(tree: TenancyTree): void {
    const number = ++this.#treeNumber
    if (tree.orgs !== this.#tree?.orgs) this.#orgsNumber = number
    if (tree.tenants !== this.#tree?.tenants) this.#tenantsNumber = number
    if (tree.keys !== this.#tree?.keys) this.#keysNumber = number
    this.#tree = tree
  }

  #walk(tree: TenancyTree, hash: string, known: Remembered | undefined): Remembered['answer'] | undefined {
    const seen = known?.answer.found
    const number = known?.treeNumber ?? 0
    const key = number < this.#keysNumber ? keyOf(tree, hash) : seen?.key
    const secret = key?.secrets.find((one) => one.hash === hash)
    const isSameTenant = number >= this.#tenantsNumber && seen?.tenant.id === key?.tenantId
    const tenant = isSameTenant ? seen?.tenant : tree.tenants.get(key?.tenantId ?? '')
    const isSameOrg = number >= this.#orgsNumber && seen?.org.id === tenant?.orgId
    const org = isSameOrg ? seen?.org : tree.orgs.get(tenant?.orgId ?? '')
    if (key === undefined || secret === undefined || tenant === undefined || org === undefined) {
      this.#remembered.delete(hash)
      return undefined
    }
    if (known !== undefined && seen?.key === key && seen.tenant === tenant && seen.org === org) {
      known.treeNumber = this.#treeNumber
      return known.answer
    }
    const terms = clipTerms(clipTerms(org.terms, tenant.terms), key.terms)
    const ranges = terms.clientRanges === undefined ? undefined : rangesOf(terms.clientRanges)
    const answer = { kind: 'found', found: { org, tenant, key, secret, terms, ranges } } as const
    if (this.#remembered.size >= tree.keyIdByHash.size + GONE_MAX) this.#remembered.clear()
    this.#remembered.set(hash, { treeNumber: this.#treeNumber, answer })
    return answer
  }
}

/**
 * The actor behind a secret; undefined when the secret is gone or has ended, or its key does not manage now. A secret in
 * its grace ends the actor's authority with the grace: who has only the old secret must not renew it.
 */
export function actorOfSecret(tree: TenancyTree, hash: string, nowMs: number): OrgActor | undefined {
  const key = keyOf(tree, hash)
  const secret = key?.secrets.find((one) => one.hash === hash)
  const tenant = key === undefined ? undefined : tree.tenants.get(key.tenantId)
  if (key === undefined || secret === undefined || tenant === undefined) return undefined
  const end = secret.endsAtMs === undefined ? {} : { expiresAtMs: secret.endsAtMs }
  const inForce = clipTerms(keyTermsInForce(tree, key), end)
  if (inForce.canManage !== true || timeProblem(inForce, nowMs) !== undefined) return undefined
  const terms = clipTerms(termsBelowOrg(tenant, key), end)
  const { id: tenantId, orgId } = tenant
  const credential = { keyId: key.id, hash }
  return { kind: 'org-actor', name: key.id, orgId, tenantId, role: key.role, credential, terms }
}

function keyOf(tree: TenancyTree, hash: string): KeyRecord | undefined {
  const id = tree.keyIdByHash.get(hash)
  return id === undefined ? undefined : tree.keys.get(id)
}

/** Why terms do not hold at this instant. */
export function timeProblem({ notBeforeAtMs, expiresAtMs }: KeyTerms, nowMs: number): FoundKey | undefined {
  if (notBeforeAtMs !== undefined && nowMs < notBeforeAtMs) return NOT_YET
  return expiresAtMs !== undefined && nowMs >= expiresAtMs ? EXPIRED : undefined
}

const UNKNOWN: FoundKey = { kind: 'unknown' }
const SECRET_ENDED: FoundKey = { kind: 'secret-ended' }
const NOT_YET: FoundKey = { kind: 'not-yet' }
const EXPIRED: FoundKey = { kind: 'expired' }
