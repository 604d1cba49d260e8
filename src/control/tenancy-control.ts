import { type Clock, msToUs, secondsToUs } from '../base/clock.ts'
import { makeSecretPart } from '../base/live-ids.ts'
import { ANSWER_CHECK_RATIO, ANSWER_SIMILARITY_MIN, ANSWER_TEMPERATURE_MAX, ANSWER_TTL_S } from '../config/defaults.ts'
import { toSlo } from '../config/to-domain.ts'
import type { TreeEdit, TreeFact } from '../domain/tenancy.ts'
import type { StoredFact, TenancyStore } from '../domain/tenancy-store.ts'
import type { AnswerCacheTerms } from '../domain/tenant.ts'
import { type Caller, digestOf } from '../gateway/authenticate.ts'
import { fixedRetryUs, type KeyCode, type ToldRefusal } from '../gateway/error-table.ts'
import type { AdminRefusal } from '../gateway/fleet-admin.ts'
import type { AskedEdit, ListAsk, TenancyAdmin, TenancyReply, TreeLevel, TreeRecord } from '../gateway/tenancy-admin.ts'
import type { RunTimeKeys } from '../gateway/tenant-directory.ts'
import { changePromise, changeWeight } from '../lifecycle/change-terms.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { formSecret } from '../policy/authority/secret-form.ts'
import { emptyTree } from '../policy/authority/tree.ts'
import { LiveTenancy, LOOK_US } from './live-tenancy.ts'
import { TenancyCallers } from './tenancy-callers.ts'
import { TenancyIndex } from './tenancy-index.ts'
import type { WantedOwner } from './wanted.ts'

/**
 * The tenancy tree plugged into the platform: keys for the gateway's directory, weights and promises for the policies,
 * facts for the journal, commands for the admin API.
 */
export interface TenancyControlParts {
  readonly clock: Clock
  readonly owner: WantedOwner
  readonly platform: Platform
  readonly store: TenancyStore
  readonly isInUse: boolean
  readonly isShared: boolean
  readonly complain: (problem: string) => void
  /** A tenant is gone: what is kept of it may go too. */
  readonly onTenantRemoved: (tenantId: string) => void
}

export class TenancyControl implements RunTimeKeys, TenancyAdmin {
  readonly tenancy: LiveTenancy
  readonly #parts: TenancyControlParts
  readonly #index = new TenancyIndex(emptyTree())
  #callers: TenancyCallers

  constructor(parts: TenancyControlParts) {
    this.#parts = parts
    this.#callers = this.#makeCallers()
    this.tenancy = new LiveTenancy({
      ...parts,
      onFacts: (facts) => this.#takeUp(facts),
      onTree: (tree, changes) => {
        this.#index.follow(tree, changes)
        if (changes?.every(({ level }) => level === 'key') !== true) this.#tellPromises()
      },
      onFile: () => {
        this.#callers = this.#makeCallers()
        this.#tellPromises()
      },
    })
  }

  callerOf(digest: string): Caller | undefined {
    const found = this.tenancy.find(digest)
    return found.kind === 'found' ? this.#callers.callerOf(found.found) : undefined
  }

  whyNot(digest: string): ToldRefusal<KeyCode> | undefined {
    const { kind } = this.tenancy.find(digest)
    if (kind === 'unknown') return this.tenancy.isComplete ? undefined : NOT_READ
    return kind === 'found' ? undefined : WHY_NOT[kind]
  }

  show(level: TreeLevel, id: string): TreeRecord | undefined {
    return this.tenancy.tree[`${level}s`].get(id)
  }

  list(level: TreeLevel, ask: ListAsk): readonly TreeRecord[] {
    return this.#index.list(level, ask).flatMap((id) => this.show(level, id) ?? [])
  }

  async change(operator: string, asked: AskedEdit): Promise<TenancyReply> {
    const secret =
      asked.kind === 'create-key' || asked.kind === 'rotate-key' ? formSecret(asked.id, makeSecretPart()) : undefined
    const edit = this.#editOf(asked, secret)
    const answer = await this.tenancy.change({ kind: 'operator', name: operator, role: 'platform-admin' }, edit)
    if (answer.kind !== 'changed') return answer
    const { revision, facts } = answer
    const { clock, isShared } = this.#parts
    // Clients go over to a new secret when they are told it: by then the other gateways must have looked for it.
    if (isShared && asked.kind === 'rotate-key') await clock.sleep(SEEN_BY_OTHERS_US)
    return { kind: 'changed', revision, record: facts.findLast(({ after }) => after?.id === edit.id)?.after, secret }
  }

  history(ask: {
    readonly id?: string | undefined
    readonly limit: number
  }): Promise<readonly StoredFact[] | AdminRefusal> {
    return this.tenancy.history(ask)
  }

  #editOf(asked: AskedEdit, secret: string | undefined): TreeEdit {
    if (asked.kind === 'create-key' || asked.kind === 'rotate-key') return { ...asked, hash: digestOf(secret ?? '') }
    if (asked.kind === 'create-tenant' || asked.kind === 'change-tenant') return withCacheTerms(asked)
    if (asked.kind !== 'revoke-secret') return asked
    const { hashPrefix, ...edit } = asked
    const secrets = this.tenancy.tree.keys.get(asked.id)?.secrets ?? []
    const [meant, ...others] = secrets.filter(({ hash }) => hash.startsWith(hashPrefix))
    // A beginning that means none or both is no secret of the key, and the edit is refused as such.
    return { ...edit, hash: meant === undefined || others.length > 0 ? hashPrefix : meant.hash }
  }

  #takeUp(facts: readonly TreeFact[]): void {
    const { platform, clock } = this.#parts
    for (const { level, before, after, orgId, by, because, edit } of facts) {
      const name = (after ?? before)?.id ?? ''
      platform.world.journal.record({ kind: 'tenancy-changed', at: clock.now(), edit, level, name, orgId, by, because })
    }
    for (const fact of facts) {
      this.#reweigh(fact)
      const isGone = fact.level === 'tenant' && fact.after === undefined && fact.before !== undefined
      if (isGone) this.#parts.onTenantRemoved(fact.before.id)
    }
  }

  #reweigh(fact: TreeFact): void {
    const { platform } = this.#parts
    if (fact.after === undefined || fact.before?.weight === fact.after.weight) return
    const { id, weight } = fact.after
    if (fact.level === 'org') changeWeight(platform, { kind: 'org', orgId: id, weight })
    else if (fact.level === 'key') changeWeight(platform, { kind: 'key', keyId: id, weight: fact.after.weight })
    else changeWeight(platform, { kind: 'tenant', tenantId: id, orgId: fact.orgId, weight: fact.after.weight })
  }

  /** The tightest promise counts, whoever has it. */
  #tellPromises(): void {
    const slos = this.#index.promises().flatMap((name) => this.#callers.slos.get(name) ?? [])
    changePromise(
      this.#parts.platform,
      slos.map((slo) => ({ slo })),
    )
  }

  #makeCallers(): TenancyCallers {
    const { settings, tenants } = this.#parts.owner.current
    return new TenancyCallers({
      slos: new Map(settings.slos.map((slo) => [slo.name, toSlo(slo)])),
      fileTenants: new Map(tenants.map((tenant) => [tenant.id, tenant])),
      queueUsMax: msToUs(settings.queue.waitMsMax),
    })
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

const whyNot = (code: KeyCode, because: string): ToldRefusal<KeyCode> => ({
  code,
  because,
  blame: 'request',
  retryAfterUs: undefined,
})

const NOT_READ: ToldRefusal<KeyCode> = {
  code: 'keys-unavailable',
  because: 'the store of keys has not been read yet, and this key is none of the configuration file',
  blame: 'platform',
  retryAfterUs: fixedRetryUs('keys-unavailable'),
}

const WHY_NOT = {
  'secret-ended': whyNot('key-expired', 'this secret was replaced by a newer one, and its grace is over'),
  expired: whyNot('key-expired', 'the time of this key is over'),
  'not-yet': whyNot('key-not-yet-valid', 'the time of this key has not begun'),
} as const
