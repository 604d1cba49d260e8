import { isDeepStrictEqual } from 'node:util'
import { type CancelTimer, type Clock, msToUs, secondsToUs } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import { wishProblem } from '../config/screening-wish.ts'
import { toRecords } from '../config/to-records.ts'
import type { Actor, OrgActor } from '../domain/actor.ts'
import type { AuthorityRefusal, TreeEdit, TreeFact } from '../domain/tenancy.ts'
import type { FactsAsk, StoredFact, TenancyStore } from '../domain/tenancy-store.ts'
import { PLATFORM_TENANT_ID } from '../domain/tenant.ts'
import type { AdminRefusal } from '../gateway/fleet-admin.ts'
import { applyEdit } from '../policy/authority/apply-edit.ts'
import { idRefusal } from '../policy/authority/edit-checks.ts'
import { type FoundKey, KeyFinder } from '../policy/authority/find-key.ts'
import { fileChanges, withFile, withStored } from '../policy/authority/join-tree.ts'
import { type LoadedTree, loadTree, type TreeRecords } from '../policy/authority/load-tree.ts'
import { emptyTree, type RecordChange, type TenancyTree } from '../policy/authority/tree.ts'
import { DatabaseUnavailable } from '../store/database.ts'
import { ChangePlaces } from './change-places.ts'
import { OneAtATime } from './one-at-a-time.ts'
import type { Wanted, WantedOwner } from './wanted.ts'

/**
 * The tenancy tree of a running gateway and its one owner: orgs, tenants and keys of the configuration file, and those
 * that were made at run time.
 *
 *   edit ─▶ decided on the tree ─▶ stored, with its facts, as one revision ─▶ in force
 *
 * Nothing is in force that is not stored, so a process that dies in between loses an answer and no change. While the
 * store is away, known keys go on and changes are refused. A reload of the file joins both sources again. Several
 * gateways on one PostgreSQL tell each other of facts, and look for them twice a second in case a notice was lost.
 *
 * Revisions only grow: a store that came back older has lost changes, revocations perhaps among them. What is in force
 * stays, changes are refused, and the operator is told.
 */
export interface TenancyParts {
  readonly clock: Clock
  readonly store: TenancyStore
  readonly isInUse: boolean
  readonly isShared: boolean
  readonly owner: WantedOwner
  readonly complain: (problem: string) => void
  /** Called when facts are in force. */
  readonly onFacts: (facts: readonly TreeFact[]) => void
  /** Called when the tree is another one: by these changes, or made anew from both sources. */
  readonly onTree: (tree: TenancyTree, changes?: readonly RecordChange[]) => void
  /** Called when other settings of the file are in force. */
  readonly onFile: () => void
}

export type TenancyAnswer =
  | { readonly kind: 'changed'; readonly revision: number; readonly facts: readonly TreeFact[] }
  | { readonly kind: 'forbidden'; readonly refusal: AuthorityRefusal }
  | { readonly kind: 'refused'; readonly refusal: AdminRefusal }

/** Between two looks for what other gateways have changed. */
export const LOOK_US = msToUs(500)
const RETRY_US = secondsToUs(5)
/** Tries of one edit while other gateways write at the same time. */
const TRIES = 3
/** Facts of others that are applied one by one; after more, everything is read again. */
const FACTS_MAX = 1_000

export class LiveTenancy {
  readonly #parts: TenancyParts
  readonly #queue = new OneAtATime()
  readonly #finder = new KeyFinder()
  readonly #places = new ChangePlaces()
  readonly #stored = { orgs: new Map(), tenants: new Map(), keys: new Map() } as StoredRecords
  #file: Config
  #fileRecords: TreeRecords
  #tree: TenancyTree = emptyTree()
  /** Stored records that are not in force. */
  #setAside: LoadedTree['setAside'] = []
  #revision = 0
  #isLoaded = false
  #hasTried = false
  #hasRead = false
  #isClosed = false
  #isLooking = false
  #hasNotice = false
  #cancelLook: CancelTimer | undefined

  constructor(parts: TenancyParts) {
    this.#parts = parts
    this.#file = parts.owner.current.settings
    this.#fileRecords = toRecords(this.#file)
    this.#join()
    parts.owner.onChange((wanted) => this.#follow(wanted))
  }

  get tree(): TenancyTree {
    return this.#tree
  }

  /** False until the first try to read an existing store has ended. */
  get isSettled(): boolean {
    return this.#hasTried || !this.#parts.isInUse
  }

  /** False while a store that exists has not been read: keys that are not known here may be known there. */
  get isComplete(): boolean {
    return this.#hasRead || !this.#parts.isInUse
  }

  /** Whether there is a store to write to: one that exists, or that a change has made. */
  get isStored(): boolean {
    return this.#isLoaded || this.#parts.isInUse
  }

  find(hash: string): FoundKey {
    return this.#finder.find(this.#tree, hash, this.#nowMs())
  }

  /** Reads the store, and tries again while it is away. Never throws. */
  async start(): Promise<void> {
    const { isInUse, isShared, complain } = this.#parts
    if (!isInUse || this.#isClosed) return
    try {
      await this.#queue.run(() => this.#read())
    } catch (error) {
      complain(`tenancy: ${messageOf(error)}. The keys that are known are served meanwhile.`)
      this.#again(RETRY_US, () => this.start())
      return
    } finally {
      this.#hasTried = true
    }
    if (isShared) this.#again(LOOK_US, () => this.#look())
  }

  async change(actor: Actor, edit: TreeEdit): Promise<TenancyAnswer> {
    const orgId = actor.kind === 'operator' ? undefined : actor.orgId
    if (!this.#places.take(orgId, this.#queue.count)) {
      return refused({ code: 'too-many-changes', because: 'too many changes wait already', param: null })
    }
    try {
      return await this.#queue.run(() => this.#tryChange(actor, edit))
    } catch (error) {
      if (error instanceof DatabaseUnavailable) return refused(unavailable(error))
      throw error
    } finally {
      this.#places.giveBack(orgId)
    }
  }

  async history(ask: FactsAsk): Promise<readonly StoredFact[] | AdminRefusal> {
    if (!this.#isLoaded && !this.#parts.isInUse) return []
    try {
      return await this.#parts.store.history(ask)
    } catch (error) {
      return unavailable(error)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelLook?.()
    await this.#queue.idle()
  }

  async #tryChange(actor: Actor, edit: TreeEdit): Promise<TenancyAnswer> {
    for (let i = 0; i < TRIES; i++) {
      // What another gateway has made just now may be what this change is about.
      if (!this.#isLoaded || i > 0 || this.#parts.isShared) await this.#read()
      // Promises are the operators' business: their names are told to nobody else.
      const problem = actor.kind === 'operator' ? settingsProblem(this.#file, edit) : undefined
      if (problem !== undefined) return { kind: 'forbidden', refusal: problem }
      const result = applyEdit(this.#tree, actor, edit, this.#nowMs())
      if (result.kind === 'refused') return { kind: 'forbidden', refusal: result.refusal }
      const taken = actor.kind === 'operator' ? undefined : await this.#idProblem(actor, edit)
      if (taken !== undefined) return { kind: 'forbidden', refusal: taken }
      const revision = await this.#write(result.facts)
      if (revision === 'stale') continue
      this.#revision = revision
      this.#store(result.facts)
      this.#takeUp(result.facts)
      this.#parts.onFacts(result.facts)
      return { kind: 'changed', revision, facts: result.facts }
    }
    const because = 'somebody else is changing orgs, tenants or keys at the same time. Try again'
    return refused({ code: 'changed-meanwhile', because, param: null })
  }

  /**
   * An id that another org has had is not given to an org's administrators: what was stored, counted or logged under a
   * tenant's id would be theirs. The words are those of an id that is taken.
   */
  async #idProblem({ orgId }: OrgActor, edit: TreeEdit): Promise<AuthorityRefusal | undefined> {
    const level = edit.kind === 'create-tenant' ? 'tenant' : edit.kind === 'create-key' ? 'key' : undefined
    if (level === undefined) return undefined
    const [last] = await this.#parts.store.history({ id: edit.id, level, limit: 1 })
    return last === undefined || last.orgId === orgId ? undefined : idRefusal(level, edit.id, true)
  }

  async #write(facts: readonly TreeFact[]): Promise<number | 'stale'> {
    try {
      return await this.#parts.store.write({ expectedRevision: this.#revision, facts })
    } catch (error) {
      // Whether it was stored is not known: what the store has is read before anything else is decided.
      this.#isLoaded = false
      this.#again(RETRY_US, () => this.#reread())
      throw error
    }
  }

  async #reread(): Promise<void> {
    try {
      await this.#queue.run(() => this.#read())
    } catch {
      this.#again(RETRY_US, () => this.#reread())
      return
    }
    if (this.#parts.isShared) this.#again(LOOK_US, () => this.#look())
  }

  /** Takes up what the store has and this process has not. */
  async #read(): Promise<void> {
    const { store, onFacts } = this.#parts
    const revision = await store.revision()
    if (revision < this.#revision) throw new DatabaseUnavailable(lostText(revision, this.#revision))
    const facts = this.#revision === 0 ? [] : await store.since(this.#revision, FACTS_MAX)
    if (this.#revision > 0 && facts.length < FACTS_MAX) {
      this.#revision = facts.at(-1)?.revision ?? this.#revision
      this.#store(facts)
      this.#takeUp(facts)
      this.#isLoaded = true
      onFacts(facts)
      return
    }
    const state = await store.load()
    this.#revision = state.revision
    fill(this.#stored.orgs, state.orgs)
    fill(this.#stored.tenants, state.tenants)
    fill(this.#stored.keys, state.keys)
    this.#isLoaded = true
    this.#hasRead = true
    this.#join()
  }

  /** Facts that are stored: each by itself where that gives the tree of both sources, else both are joined anew. */
  #takeUp(facts: readonly TreeFact[]): void {
    if (facts.length === 0) return
    const next = withStored({ tree: this.#tree, setAside: this.#setAside }, facts)
    if (next === undefined) this.#join()
    else this.#put(next, facts)
  }

  #put(tree: TenancyTree, changes: readonly RecordChange[]): void {
    this.#tree = tree
    this.#parts.onTree(tree, changes)
  }

  #store(facts: readonly TreeFact[]): void {
    for (const { level, before, after } of facts) {
      const records = this.#stored[`${level}s`] as Map<string, unknown>
      if (after !== undefined) records.set(after.id, after)
      else if (before !== undefined) records.delete(before.id)
    }
  }

  #follow({ settings }: Wanted): void {
    const isSame = isDeepStrictEqual(partsOf(this.#file), partsOf(settings))
    this.#file = settings
    if (isSame) return
    const before = this.#fileRecords
    this.#fileRecords = toRecords(settings)
    const changes = fileChanges(before, this.#fileRecords, isDeepStrictEqual)
    const next = withFile({ tree: this.#tree, setAside: this.#setAside }, changes)
    if (next === undefined) this.#join()
    else this.#put(next, changes)
    this.#parts.onFile()
  }

  #join(): void {
    const { orgs, tenants, keys } = this.#stored
    const stored = { orgs: [...orgs.values()], tenants: [...tenants.values()], keys: [...keys.values()] }
    const { tree, setAside } = loadTree(this.#fileRecords, stored)
    this.#tree = tree
    this.#setAside = setAside
    this.#parts.onTree(tree)
    const told = setAside.filter(({ id, level }) => this.#stored[`${level}s`].has(id)).slice(0, TOLD_MAX)
    for (const { level, id, because } of told) {
      this.#parts.complain(`tenancy: the stored ${level} ${id} is not in force: ${ASIDE_WORDS[because]}.`)
    }
  }

  /** Another gateway may have written: looks now. */
  notice(): void {
    if (!this.#parts.isShared || !this.#isLoaded || this.#isClosed) return
    this.#hasNotice = true
    if (this.#isLooking) return
    void this.#look()
  }

  async #look(): Promise<void> {
    const { store, complain } = this.#parts
    this.#isLooking = true
    this.#hasNotice = false
    this.#cancelLook?.()
    try {
      if ((await store.revision()) !== this.#revision) await this.#queue.run(() => this.#read())
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable)) complain(`tenancy: ${messageOf(error)}`)
    }
    this.#isLooking = false
    // What came during the look may not have been seen by it.
    this.#again(this.#hasNotice ? 0 : LOOK_US, () => this.#look())
  }

  #again(afterUs: number, fn: () => Promise<void>): void {
    if (this.#isClosed) return
    const { clock } = this.#parts
    this.#cancelLook?.()
    this.#cancelLook = clock.at(clock.now() + afterUs, () => void fn())
  }

  #nowMs(): number {
    return Math.floor(this.#parts.clock.now() / 1_000)
  }
}

interface StoredRecords {
  readonly orgs: Map<string, Parameters<typeof loadTree>[1]['orgs'][number]>
  readonly tenants: Map<string, Parameters<typeof loadTree>[1]['tenants'][number]>
  readonly keys: Map<string, Parameters<typeof loadTree>[1]['keys'][number]>
}

/** Records of the store that are told when they are set aside; more would fill the log. */
const TOLD_MAX = 10

const ASIDE_WORDS = {
  'in-file': 'the configuration file has one of this name, and wins',
  'no-parent': 'what it belongs to is gone',
  'secret-in-use': 'another key has its secret',
} as const

function fill<R extends { readonly id: string }>(map: Map<string, R>, records: readonly R[]): void {
  map.clear()
  for (const record of records) map.set(record.id, record)
}

/** The parts of the file that the tree is made of. */
const partsOf = ({ orgs, tenants, slos, queue, screening }: Config) => [orgs, tenants, slos, queue.waitMsMax, screening]

/** What only the settings know: which promises there are, and the name that the platform keeps for itself. */
function settingsProblem(settings: Config, edit: TreeEdit) {
  const { slos } = settings
  const asked = 'slos' in edit ? (edit.slos ?? []) : []
  const known = slos.map(({ name }) => name)
  const missing = asked.find((slo) => !known.includes(slo))
  const problem = (rule: AuthorityRefusal['rule'], param: string, because: string): AuthorityRefusal => ({
    rule,
    authority: { kind: 'platform' },
    param,
    because,
  })
  if (missing !== undefined) {
    return problem('value-is-valid', 'slos', `there is no promise ${missing}. Known: ${known.join(', ')}`)
  }
  const wish = 'screening' in edit ? (edit.screening ?? undefined) : undefined
  const wrong = wish === undefined ? undefined : wishProblem(settings, wish)
  if (wrong !== undefined) return problem('value-is-valid', wrong.param, wrong.because)
  if (edit.kind === 'create-tenant' && edit.id === PLATFORM_TENANT_ID) {
    return problem('id-is-free', 'id', `the tenant ${edit.id} is the platform itself. Choose another id`)
  }
  return undefined
}

const lostText = (found: number, known: number): string =>
  `the database came back at revision ${found} of orgs, tenants and keys instead of ${known}. What is in force stays; bring the database back, or restart to take it as it is`

const refused = (refusal: AdminRefusal): TenancyAnswer => ({ kind: 'refused', refusal })

const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')

const unavailable = (error: unknown): AdminRefusal => ({
  code: 'registry-unavailable',
  because: messageOf(error),
  param: null,
})
