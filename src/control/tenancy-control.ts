import { type Clock, msToUs, usToMs } from '../base/clock.ts'
import { wishReader } from '../config/screening-wish.ts'
import { toSlo } from '../config/to-domain.ts'
import type { OrgActor } from '../domain/actor.ts'
import type { TreeFact } from '../domain/tenancy.ts'
import type { TenancyStore } from '../domain/tenancy-store.ts'
import { administratorName } from '../gateway/admin-directory.ts'
import type { Caller } from '../gateway/authenticate.ts'
import { fixedRetryUs, type KeyCode, type ToldRefusal } from '../gateway/error-table.ts'
import type {
  AskedEdit,
  TenancyAdmin,
  TenancyDesk,
  TenancyReply,
  TenantCredential,
  TreeStanding,
} from '../gateway/tenancy-admin.ts'
import type { RunTimeKeys, RunTimeTenant } from '../gateway/tenant-directory.ts'
import { changePromise, changeWeight } from '../lifecycle/change-terms.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { actorOfSecret } from '../policy/authority/find-key.ts'
import { mayDo } from '../policy/authority/may-do.ts'
import { actorOfToken, orgRoleOf } from '../policy/authority/token-actor.ts'
import { emptyTree, tenantTerms } from '../policy/authority/tree.ts'
import { LiveTenancy } from './live-tenancy.ts'
import { SecretUseKeeper } from './secret-use-keeper.ts'
import { TenancyCallers } from './tenancy-callers.ts'
import { ActorDesk, type DeskParts, withUses } from './tenancy-desk.ts'
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
  readonly #uses: SecretUseKeeper
  readonly #index = new TenancyIndex(emptyTree())
  #callers: TenancyCallers

  constructor(parts: TenancyControlParts) {
    this.#parts = parts
    this.#uses = new SecretUseKeeper({ ...parts, isStored: () => this.tenancy.isStored })
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

  noteUse(digest: string): void {
    this.#uses.note(digest)
  }

  tenantOf(tenantId: string): RunTimeTenant | undefined {
    const { tree } = this.tenancy
    const record = tree.tenants.get(tenantId)
    const org = record?.source === 'registry' ? tree.orgs.get(record.orgId) : undefined
    if (record === undefined || org === undefined) return undefined
    return this.#callers.runTimeTenantOf(org, record, this.#nowMs())
  }

  whyNoTenant(): ToldRefusal<KeyCode> | undefined {
    return this.tenancy.isComplete ? undefined : TENANTS_NOT_READ
  }

  asOperator(name: string): TenancyDesk {
    return new ActorDesk(this.#deskParts(), { kind: 'operator', name, role: 'platform-admin' })
  }

  asTenant(credential: TenantCredential): TenancyDesk | undefined {
    const actor = this.#actorOf(credential)
    return actor === undefined ? undefined : new ActorDesk(this.#deskParts(), actor)
  }

  async standingOf(credential: TenantCredential): Promise<TreeStanding | undefined> {
    const standing = this.#standingOf(credential)
    if (standing?.key === undefined) return standing
    const [key = standing.key] = await withUses(this.#uses, [standing.key])
    return { ...standing, key }
  }

  costOrgOf(credential: TenantCredential): string | undefined {
    const actor = this.#actorOf(credential)
    if (actor === undefined) return undefined
    const { orgId } = actor
    return mayDo(actor, 'read-cost', { orgId }).kind === 'allowed' ? orgId : undefined
  }

  historyReaderOf(credential: TenantCredential): { readonly name: string; readonly orgId: string } | undefined {
    const actor = this.#actorOf(credential)
    if (actor === undefined) return undefined
    const { name, orgId } = actor
    return mayDo(actor, 'read-history', { orgId }).kind === 'allowed' ? { name, orgId } : undefined
  }

  async close(): Promise<void> {
    await this.tenancy.close()
    await this.#uses.close()
  }

  #standingOf(credential: TenantCredential): TreeStanding | undefined {
    const role = this.#actorOf(credential)?.role
    if ('digest' in credential) {
      const found = this.tenancy.find(credential.digest)
      if (found.kind !== 'found') return undefined
      const { org, tenant, key, terms } = found.found
      return { org, tenant, key, terms, role }
    }
    const { tree } = this.tenancy
    const tenant = tree.tenants.get(credential.identity.tenantId ?? '')
    const org = tree.orgs.get(tenant?.orgId ?? '')
    return tenant === undefined || org === undefined
      ? undefined
      : { org, tenant, terms: tenantTerms(tree, tenant), role }
  }

  /** A change by an operator. */
  change(operator: string, asked: AskedEdit): Promise<TenancyReply> {
    return this.asOperator(operator).change(asked)
  }

  #actorOf(credential: TenantCredential): OrgActor | undefined {
    const { tree } = this.tenancy
    if ('digest' in credential) return actorOfSecret(tree, credential.digest, this.#nowMs())
    const { roles, tenantId, orgIds, expiresAtMs } = credential.identity
    const role = orgRoleOf(roles)
    if (role === undefined || tenantId === undefined) return undefined
    const terms = expiresAtMs === undefined ? {} : { expiresAtMs }
    const name = administratorName(credential.identity)
    const actor = actorOfToken(tree, { name, tenantId, role, terms }, this.#nowMs())
    return actor === undefined || orgIds?.includes(actor.orgId) === false ? undefined : actor
  }

  #deskParts(): DeskParts {
    const { clock, isShared } = this.#parts
    return { clock, isShared, tenancy: this.tenancy, index: this.#index, uses: this.#uses }
  }

  #nowMs(): number {
    return Math.floor(usToMs(this.#parts.clock.now()))
  }

  #takeUp(facts: readonly TreeFact[]): void {
    for (const hash of facts.flatMap(goneSecrets)) this.#uses.forget(hash)
    const { platform, clock } = this.#parts
    for (const fact of facts) {
      const { level, before, after, orgId, by, because, edit } = fact
      const record = after ?? before
      const name = record?.id ?? ''
      const tenantId = record !== undefined && 'tenantId' in record ? record.tenantId : undefined
      const told = { edit, level, name, orgId, tenantId, changed: changedParts(fact), by, because }
      platform.world.journal.record({ kind: 'tenancy-changed', at: clock.now(), ...told })
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
      screeningOf: wishReader(settings),
    })
  }
}

/** Names of the parts that a change made others; all of a new or removed record, so none is named. */
function changedParts({ before, after }: TreeFact): string[] {
  if (before === undefined || after === undefined) return []
  const differing = (was: object, is: object, prefix: string): string[] =>
    [...new Set([...Object.keys(was), ...Object.keys(is)])].flatMap((name) => {
      const [old, next] = [was, is].map((one) => (one as Record<string, unknown>)[name])
      if (JSON.stringify(old) === JSON.stringify(next)) return []
      return name === 'terms' ? differing(old ?? {}, next ?? {}, 'terms.') : [prefix + name]
    })
  return differing(before, after, '')
}

/** Hashes of the secrets that a change ended. */
function goneSecrets({ level, before, after }: TreeFact): readonly string[] {
  if (level !== 'key' || before === undefined) return []
  const kept = new Set(after?.secrets.map(({ hash }) => hash))
  return before.secrets.flatMap(({ hash }) => (kept.has(hash) ? [] : [hash]))
}

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

const TENANTS_NOT_READ: ToldRefusal<KeyCode> = {
  ...NOT_READ,
  because: 'the store of tenants has not been read yet, and this tenant is none of the configuration file',
}

const WHY_NOT = {
  'secret-ended': whyNot('key-expired', 'this secret was replaced by a newer one, and its grace is over'),
  expired: whyNot('key-expired', 'the time of this key is over'),
  'not-yet': whyNot('key-not-yet-valid', 'the time of this key has not begun'),
} as const
