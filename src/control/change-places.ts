/**
 * Places for changes that run or wait. Orgs' own administrators have most of them and one org a few, so that operators,
 * who are not counted here, get a turn whatever orgs do.
 */

/** Changes that run or wait at once. */
const WAITING_MAX = 100
/** Of these, changes by orgs. */
const ORGS_WAITING_MAX = 80
/** Of these, changes by one org. */
export const ORG_WAITING_MAX = 10

export class ChangePlaces {
  readonly #byOrg = new Map<string, number>()

  /** Whether there is a place; `waiting` is the number of all changes that run or wait. Without an org: an operator's. */
  take(orgId: string | undefined, waiting: number): boolean {
    if (orgId === undefined) return waiting < WAITING_MAX
    const own = this.#byOrg.get(orgId) ?? 0
    if (waiting >= ORGS_WAITING_MAX || own >= ORG_WAITING_MAX) return false
    this.#byOrg.set(orgId, own + 1)
    return true
  }

  giveBack(orgId: string | undefined): void {
    if (orgId === undefined) return
    const own = (this.#byOrg.get(orgId) ?? 0) - 1
    if (own > 0) this.#byOrg.set(orgId, own)
    else this.#byOrg.delete(orgId)
  }
}
