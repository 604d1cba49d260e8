import { type Clock, secondsToUs } from '../base/clock.ts'
import { makeSecretPart } from '../base/live-ids.ts'
import { ANSWER_CHECK_RATIO, ANSWER_SIMILARITY_MIN, ANSWER_TEMPERATURE_MAX, ANSWER_TTL_S } from '../config/defaults.ts'
import type { Actor } from '../domain/actor.ts'
import type { TreeEdit } from '../domain/tenancy.ts'
import type { StoredFact } from '../domain/tenancy-store.ts'
import type { AnswerCacheTerms } from '../domain/tenant.ts'
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
import { type LiveTenancy, LOOK_US } from './live-tenancy.ts'
import type { SecretUseKeeper } from './secret-use-keeper.ts'
import type { TenancyIndex } from './tenancy-index.ts'

/**
 * Orgs, tenants and keys for one actor: an operator sees and changes everything, somebody of an org what is in its reach.
 * Every change goes to the tenancy's one queue with the actor, who is read from the tree again when its turn comes.
 */
export interface DeskParts {
  readonly clock: Clock
  readonly isShared: boolean
  readonly tenancy: LiveTenancy
  readonly index: TenancyIndex
  readonly uses: SecretUseKeeper
}

export class ActorDesk implements TenancyDesk {
  readonly #parts: DeskParts
  readonly #actor: Actor

  constructor(parts: DeskParts, actor: Actor) {
    this.#parts = parts
    this.#actor = actor
  }

  async show(level: TreeLevel, id: string): Promise<TenancySight<TreeRecord>> {
    const { tree } = this.#parts.tenancy
    const actor = this.#actor
    const refusal = actor.kind === 'operator' ? undefined : readRefusal(actor, 'read-tree')
    if (refusal !== undefined) return { kind: 'forbidden', refusal }
    const record = actor.kind === 'operator' ? tree[`${level}s`].get(id) : recordInReach(tree, actor, level, id)
    if (record === undefined) return { kind: 'forbidden', refusal: noSuch({ actor }, level, id) }
    const [told] = await this.#withUses([record])
    return { kind: 'seen', value: told ?? record }
  }

  async list(level: TreeLevel, ask: ListAsk): Promise<TenancySight<readonly TreeRecord[]>> {
    const { tree } = this.#parts.tenancy
    const actor = this.#actor
    const refusal = actor.kind === 'operator' ? undefined : readRefusal(actor, 'read-tree')
    if (refusal !== undefined) return { kind: 'forbidden', refusal }
    const ids =
      actor.kind === 'operator'
        ? this.#parts.index.list(level, ask)
        : idsInReach(tree, actor, level, ask.parentId)
            .filter((id) => id > (ask.after ?? ''))
            .sort((x, y) => (x < y ? -1 : 1))
            .slice(0, ask.limit)
    const records = ids.flatMap((id): TreeRecord | readonly TreeRecord[] => tree[`${level}s`].get(id) ?? [])
    return { kind: 'seen', value: await this.#withUses(records) }
  }

  async change(asked: AskedEdit): Promise<TenancyReply> {
    const secret =
      asked.kind === 'create-key' || asked.kind === 'rotate-key' ? formSecret(asked.id, makeSecretPart()) : undefined
    const edit = this.#editOf(asked, secret)
    const answer = await this.#parts.tenancy.change(this.#actor, edit)
    if (answer.kind !== 'changed') return answer
    const { revision, facts } = answer
    const { clock, isShared } = this.#parts
    // Clients go over to a new secret when they are told it: by then the other gateways must have looked for it.
    if (isShared && asked.kind === 'rotate-key') await clock.sleep(SEEN_BY_OTHERS_US)
    return { kind: 'changed', revision, record: facts.findLast(({ after }) => after?.id === edit.id)?.after, secret }
  }

  async history(ask: TenancyHistoryAsk): Promise<TenancySight<readonly StoredFact[]>> {
    const actor = this.#actor
    const refusal = actor.kind === 'operator' ? undefined : readRefusal(actor, 'read-history')
    if (refusal !== undefined) return { kind: 'forbidden', refusal }
    const facts = await this.#parts.tenancy.history(actor.kind === 'operator' ? ask : { ...ask, orgId: actor.orgId })
    if ('code' in facts) return { kind: 'refused', refusal: facts }
    return { kind: 'seen', value: actor.kind === 'operator' ? facts : facts.map(withoutOperator) }
  }

  #editOf(asked: AskedEdit, secret: string | undefined): TreeEdit {
    if (asked.kind === 'create-key' || asked.kind === 'rotate-key') return { ...asked, hash: digestOf(secret ?? '') }
    if (asked.kind === 'create-tenant' || asked.kind === 'change-tenant') return withCacheTerms(asked)
    if (asked.kind !== 'revoke-secret') return asked
    const { hashPrefix, ...edit } = asked
    const secrets = this.#parts.tenancy.tree.keys.get(asked.id)?.secrets ?? []
    const [meant, ...others] = secrets.filter(({ hash }) => hash.startsWith(hashPrefix))
    // A beginning that means none or both is no secret of the key, and the edit is refused as such.
    return { ...edit, hash: meant === undefined || others.length > 0 ? hashPrefix : meant.hash }
  }

  async #withUses(records: readonly TreeRecord[]): Promise<readonly TreeRecord[]> {
    return withUses(this.#parts.uses, records)
  }
}

/** What the call does not say of the answer cache is as in the configuration file. */
function withCacheTerms(asked: Extract<AskedEdit, { readonly kind: 'create-tenant' | 'change-tenant' }>): TreeEdit {
  const { answerCache, ...edit } = asked
  if (answerCache === undefined || answerCache === null) return answerCache === null ? { ...edit, answerCache } : edit
  return { ...edit, answerCache: { ...ANSWER_TERMS, ...answerCache } }
}

const ANSWER_TERMS: AnswerCacheTerms = {
  similarityMin: ANSWER_SIMILARITY_MIN,
  temperatureMax: ANSWER_TEMPERATURE_MAX,
  ttlUs: secondsToUs(ANSWER_TTL_S),
  checkRatio: ANSWER_CHECK_RATIO,
}

/** Twice the time between two looks of another gateway. */
const SEEN_BY_OTHERS_US = 2 * LOOK_US

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
