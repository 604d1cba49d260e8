import { makeSecretPart } from '../base/live-ids.ts'
import type { Actor } from '../domain/actor.ts'
import type { TreeEdit } from '../domain/tenancy.ts'
import type { StoredFact } from '../domain/tenancy-store.ts'
import { digestOf } from '../gateway/authenticate.ts'
import type {
  AskedEdit,
  ListAsk,
  TenancyDesk,
  TenancyHistoryAsk,
  TenancyReply,
  TenancySight,
  TreeLevel,
  TreeRecord,
} from '../gateway/tenancy-admin.ts'
import { noSuch } from '../policy/authority/edit-checks.ts'
import { idsInReach, readRefusal, recordInReach } from '../policy/authority/in-reach.ts'
import { formSecret } from '../policy/authority/secret-form.ts'
import type { LiveTenancy } from './live-tenancy.ts'
import type { SecretUseKeeper } from './secret-use-keeper.ts'

/**
 * Orgs, tenants and keys for one actor: an operator sees and changes everything, somebody of an org what is in its reach.
 * Every change goes to the tenancy's one queue with the actor, who is read from the tree again when its turn comes.
 */
export class ActorDesk implements TenancyDesk {
  readonly #tenancy: LiveTenancy
  readonly #uses: SecretUseKeeper
  readonly #actor: Actor

  constructor(tenancy: LiveTenancy, uses: SecretUseKeeper, actor: Actor) {
    this.#tenancy = tenancy
    this.#uses = uses
    this.#actor = actor
  }

  async show(level: TreeLevel, id: string): Promise<TenancySight<TreeRecord>> {
    const { tree } = this.#tenancy
    const actor = this.#actor
    const refusal = actor.kind === 'operator' ? undefined : readRefusal(actor, 'read-tree')
    if (refusal !== undefined) return { kind: 'forbidden', refusal }
    const record = actor.kind === 'operator' ? tree[`${level}s`].get(id) : recordInReach(tree, actor, level, id)
    if (record === undefined) return { kind: 'forbidden', refusal: noSuch({ actor }, level, id) }
    const [told] = await this.#withUses([record])
    return { kind: 'seen', value: told ?? record }
  }

  async list(level: TreeLevel, { parentId, after = '', limit }: ListAsk): Promise<TenancySight<readonly TreeRecord[]>> {
    const { tree } = this.#tenancy
    const actor = this.#actor
    const refusal = actor.kind === 'operator' ? undefined : readRefusal(actor, 'read-tree')
    if (refusal !== undefined) return { kind: 'forbidden', refusal }
    const ids = actor.kind === 'operator' ? this.#allIds(level, parentId) : idsInReach(tree, actor, level, parentId)
    const records = ids
      .filter((id) => id > after)
      .sort((a, b) => (a < b ? -1 : 1))
      .slice(0, limit)
      .flatMap((id) => tree[`${level}s`].get(id) ?? [])
    return { kind: 'seen', value: await this.#withUses(records) }
  }

  async change(asked: AskedEdit): Promise<TenancyReply> {
    const secret =
      asked.kind === 'create-key' || asked.kind === 'rotate-key' ? formSecret(asked.id, makeSecretPart()) : undefined
    const edit = this.#editOf(asked, secret)
    const answer = await this.#tenancy.change(this.#actor, edit)
    if (answer.kind !== 'changed') return answer
    const { revision, facts } = answer
    return { kind: 'changed', revision, record: facts.findLast(({ after }) => after?.id === edit.id)?.after, secret }
  }

  async history(ask: TenancyHistoryAsk): Promise<TenancySight<readonly StoredFact[]>> {
    const actor = this.#actor
    const refusal = actor.kind === 'operator' ? undefined : readRefusal(actor, 'read-history')
    if (refusal !== undefined) return { kind: 'forbidden', refusal }
    const facts = await this.#tenancy.history(actor.kind === 'operator' ? ask : { ...ask, orgId: actor.orgId })
    if ('code' in facts) return { kind: 'refused', refusal: facts }
    return { kind: 'seen', value: actor.kind === 'operator' ? facts : facts.map(withoutOperator) }
  }

  #allIds(level: TreeLevel, parentId: string | undefined): readonly string[] {
    const { tree } = this.#tenancy
    const children = level === 'key' ? tree.keyIds : tree.tenantIds
    const all = parentId === undefined ? tree[`${level}s`] : children.get(parentId)
    return [...(all?.entries() ?? [])].map(([id]) => id)
  }

  #editOf(asked: AskedEdit, secret: string | undefined): TreeEdit {
    if (asked.kind === 'create-key' || asked.kind === 'rotate-key') return { ...asked, hash: digestOf(secret ?? '') }
    if (asked.kind !== 'revoke-secret') return asked
    const { hashPrefix, ...edit } = asked
    const secrets = this.#tenancy.tree.keys.get(asked.id)?.secrets ?? []
    const [meant, ...others] = secrets.filter(({ hash }) => hash.startsWith(hashPrefix))
    // A beginning that means none or both is no secret of the key, and the edit is refused as such.
    return { ...edit, hash: meant === undefined || others.length > 0 ? hashPrefix : meant.hash }
  }

  async #withUses(records: readonly TreeRecord[]): Promise<readonly TreeRecord[]> {
    return withUses(this.#uses, records)
  }
}

/** The records, keys with the times of last use of their secrets. */
export async function withUses<R extends TreeRecord>(
  uses: SecretUseKeeper,
  records: readonly R[],
): Promise<readonly R[]> {
  const hashes = records.flatMap((record) => ('secrets' in record ? record.secrets.map(({ hash }) => hash) : []))
  if (hashes.length === 0) return records
  const times = await uses.lastUses(hashes)
  return records.map((record) => {
    if (!('secrets' in record)) return record
    const secrets = record.secrets.map((secret) => {
      const lastUsedAtMs = times.get(secret.hash) ?? secret.lastUsedAtMs
      return lastUsedAtMs === undefined ? secret : { ...secret, lastUsedAtMs }
    })
    return { ...record, secrets }
  })
}

/** Operators are nobody of the org: an org learns that it was an operator, and why, not who. */
const withoutOperator = (fact: StoredFact): StoredFact =>
  fact.byKind === 'operator' ? { ...fact, by: 'an operator' } : fact
