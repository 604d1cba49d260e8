import type { KeyRecord, OrgRecord, TenantRecord } from '../domain/tenancy.ts'
import type { FactsAsk, StoredFact, TenancyState, TenancyStore, TenancyWrite } from '../domain/tenancy-store.ts'

/** Orgs, tenants and keys in memory: for tests, and as the plain twin of the SQL store. */
export class MemoryTenancyStore implements TenancyStore {
  readonly #orgs = new Map<string, OrgRecord>()
  readonly #tenants = new Map<string, TenantRecord>()
  readonly #keys = new Map<string, KeyRecord>()
  readonly #facts: StoredFact[] = []
  readonly #uses = new Map<string, number>()
  #revision = 0

  load(): Promise<TenancyState> {
    const [orgs, tenants, keys] = [inOrder(this.#orgs), inOrder(this.#tenants), inOrder(this.#keys)]
    return Promise.resolve({ revision: this.#revision, orgs, tenants, keys })
  }

  revision(): Promise<number> {
    return Promise.resolve(this.#revision)
  }

  write({ expectedRevision, facts }: TenancyWrite): Promise<number | 'stale'> {
    if (expectedRevision !== this.#revision) return Promise.resolve('stale')
    this.#revision++
    for (const fact of structuredClone(facts)) {
      this.#facts.push({ ...fact, revision: this.#revision })
      if (fact.level === 'org') put(this.#orgs, fact)
      else if (fact.level === 'tenant') put(this.#tenants, fact)
      else put(this.#keys, fact)
    }
    return Promise.resolve(this.#revision)
  }

  since(revision: number, limit: number): Promise<readonly StoredFact[]> {
    return Promise.resolve(this.#facts.filter((fact) => fact.revision > revision).slice(0, limit))
  }

  noteUses({
    uses,
    gone,
  }: {
    readonly uses: ReadonlyMap<string, number>
    readonly gone: readonly string[]
  }): Promise<void> {
    for (const hash of gone) this.#uses.delete(hash)
    for (const [hash, atMs] of uses) this.#uses.set(hash, Math.max(atMs, this.#uses.get(hash) ?? 0))
    return Promise.resolve()
  }

  usesOf(hashes: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return Promise.resolve(new Map([...this.#uses].filter(([hash]) => hashes.includes(hash))))
  }

  history({ id, level, orgId, limit }: FactsAsk): Promise<readonly StoredFact[]> {
    const isMaking = (fact: StoredFact): boolean =>
      fact.level === 'org' && fact.before === undefined && fact.after?.id === orgId
    const first = orgId === undefined ? 0 : (this.#facts.findLast(isMaking)?.revision ?? 0)
    const isAsked = (fact: StoredFact): boolean =>
      (id === undefined || (fact.after ?? fact.before)?.id === id) &&
      (level === undefined || fact.level === level) &&
      (orgId === undefined || fact.orgId === orgId) &&
      fact.revision >= first
    return Promise.resolve(this.#facts.filter(isAsked).toReversed().slice(0, limit))
  }
}

function put<R extends { readonly id: string }>(
  records: Map<string, R>,
  { before, after }: { readonly before: R | undefined; readonly after: R | undefined },
): void {
  if (after !== undefined) records.set(after.id, after)
  else if (before !== undefined) records.delete(before.id)
}

const inOrder = <R extends { readonly id: string }>(records: ReadonlyMap<string, R>): R[] =>
  [...records.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
