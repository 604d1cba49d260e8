/**
 * Places at the console's feed. Each connection holds one of its key's, of its tenant's and of its address's, so that no
 * key, no tenant with many keys and no address takes those of others. Operators have places apart from tenants: whatever
 * tenants hold open, an operator can look.
 */
export interface Viewer {
  /** The key that the viewer came with. */
  readonly name: string
  /** Undefined for an operator. */
  readonly tenantId: string | undefined
  /** Undefined when nobody knows it. */
  readonly address: string | undefined
}

/** A browser has one feed for each page; ten pages of one key are many. */
const PER_KEY_MAX = 10
const PER_TENANT_MAX = 20
/** An office behind one address has several keys. */
const PER_ADDRESS_MAX = 40
/** A second's message for a tenant takes about 0.1 ms, and is made once for all viewers of the tenant. */
const TENANTS_TOGETHER_MAX = 400
/** Operators get the same message: ten viewers cost what one costs, and a hundred are a mistake. */
const OPERATORS_TOGETHER_MAX = 100
const PER_OPERATOR_MAX = 25

export class ViewerPlaces {
  readonly #taken = new Map<string, number>()

  /** Gives the place back when the returned function is called; undefined when there is none left. */
  take(viewer: Viewer): (() => void) | undefined {
    const bounds = boundsOf(viewer)
    for (const [holder, max] of bounds) if ((this.#taken.get(holder) ?? 0) >= max) return undefined
    for (const [holder] of bounds) this.#taken.set(holder, (this.#taken.get(holder) ?? 0) + 1)
    let isTaken = true
    return () => {
      if (!isTaken) return
      isTaken = false
      for (const [holder] of bounds) this.#giveBack(holder)
    }
  }

  /** Keys, tenants and addresses with a place. */
  get holderCount(): number {
    return this.#taken.size
  }

  #giveBack(holder: string): void {
    const left = (this.#taken.get(holder) ?? 0) - 1
    if (left > 0) this.#taken.set(holder, left)
    else this.#taken.delete(holder)
  }
}

function boundsOf({ name, tenantId, address }: Viewer): ReadonlyArray<readonly [string, number]> {
  if (tenantId === undefined)
    return [
      [`operator ${name}`, PER_OPERATOR_MAX],
      ['operators', OPERATORS_TOGETHER_MAX],
    ]
  return [
    [`key ${name} of ${tenantId}`, PER_KEY_MAX],
    [`tenant ${tenantId}`, PER_TENANT_MAX],
    [`address ${address ?? 'unknown'}`, PER_ADDRESS_MAX],
    ['tenants', TENANTS_TOGETHER_MAX],
  ]
}
