import type { LiveStore } from '../assembly/live-store.ts'
import { type CancelTimer, type Clock, msToUs, secondsToUs } from '../base/clock.ts'
import { upstreamKeyProblems } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { withRegistry } from '../config/with-registry.ts'
import type { HistoryAsk, RegistryChange, RegistryEdit, RegistryEntry, RegistryKind } from '../domain/registry.ts'
import type { AdminAnswer, AdminReason, AdminRefusal } from '../gateway/fleet-admin.ts'
import { DatabaseUnavailable } from '../store/database.ts'
import { SqlRegistryStore } from '../store/sql-registry-store.ts'
import type { FleetDiff } from './fleet-diff.ts'
import { editEntries, removalOf } from './registry-edits.ts'

/**
 * The registry of a running gateway: what it added to the configuration file, kept in the store and carried out at once.
 *
 *   edit ─▶ does it make sense? ─▶ could it run here? ─▶ written, as one revision ─▶ carried out
 *
 * Written before it is carried out: whatever dies in between, a restart finds the store and does the rest. Nothing is
 * opened until somebody writes, or a store is there already. Several gateways on one PostgreSQL look for each other's
 * revisions every two seconds.
 */
export interface RegistryParts {
  readonly config: Config
  readonly clock: Clock
  readonly store: LiveStore
  readonly diff: FleetDiff
  readonly complain: (problem: string) => void
  /** What was read is in force: how far rollouts had got comes after the releases that they are about. */
  readonly onRead: (entries: readonly RegistryEntry[]) => void
}

const LOOK_US = msToUs(2_000)
/** A database that is not there at the start is asked again. */
const RETRY_US = secondsToUs(5)
/** Edits at once: people and a pipeline or two. More is a mistake. */
const WAITING_MAX = 100
/** Somebody else was faster: look again, and then say so. */
const TRIES = 3

export class LiveRegistry {
  readonly #parts: RegistryParts
  readonly #store: SqlRegistryStore
  #entries: readonly RegistryEntry[] = []
  #revision = 0
  #isLoaded = false
  #hasTried = false
  #isClosed = false
  #waiting = 0
  #last: Promise<unknown> = Promise.resolve()
  #cancelLook: CancelTimer | undefined

  constructor(parts: RegistryParts) {
    this.#parts = parts
    this.#store = new SqlRegistryStore(parts.store.database)
  }

  /** False while a registry that is there is being read: the platform is not ready yet. */
  get isSettled(): boolean {
    return this.#hasTried || !this.#parts.store.isInUse
  }

  get entries(): readonly RegistryEntry[] {
    return this.#entries
  }

  /** Reads what was there before, and goes on trying while the database is away. Never throws. */
  async start(): Promise<void> {
    if (!this.#parts.store.isInUse || this.#isClosed) return
    try {
      await this.#alone(() => this.#load())
    } catch (error) {
      this.#parts.complain(`registry: ${messageOf(error)}. The configuration file is served meanwhile.`)
      this.#isLoaded = false
      this.#again(RETRY_US, () => this.start())
      return
    } finally {
      this.#hasTried = true
    }
    if (this.#parts.store.isShared) this.#again(LOOK_US, () => this.#look())
  }

  edit(edits: readonly RegistryEdit[], reason: AdminReason): Promise<AdminAnswer> {
    return this.#change(() => edits, reason)
  }

  remove(kind: RegistryKind, name: string, reason: AdminReason): Promise<AdminAnswer> {
    return this.#change(() => removalOf(this.#entries, kind, name), reason)
  }

  async history(ask: HistoryAsk): Promise<readonly RegistryChange[] | AdminRefusal> {
    if (!this.#isLoaded && !this.#parts.store.isInUse) return []
    try {
      return await this.#store.history(ask)
    } catch (error) {
      return unavailable(error)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelLook?.()
    await this.#last.catch(() => {})
  }

  async #change(editsOf: () => readonly RegistryEdit[], reason: AdminReason): Promise<AdminAnswer> {
    if (this.#waiting >= WAITING_MAX) {
      return refused({ code: 'too-many-changes', because: 'too many changes wait already', param: null })
    }
    try {
      return await this.#alone(() => this.#tryChange(editsOf, reason))
    } catch (error) {
      if (error instanceof DatabaseUnavailable) return refused(unavailable(error))
      throw error
    }
  }

  async #tryChange(editsOf: () => readonly RegistryEdit[], reason: AdminReason): Promise<AdminAnswer> {
    for (let i = 0; i < TRIES; i++) {
      if (!this.#isLoaded || i > 0) await this.#load()
      const edits = editsOf()
      const edited = editEntries(this.#parts.config, this.#entries, edits)
      if (edited.kind === 'refused') return edited
      const { settings, problems } = this.#together(edited.entries)
      const refusal = problems[0] === undefined ? await this.#parts.diff.refusalOf(settings) : problems[0]
      if (refusal !== undefined) return refused(refusal)
      const atMs = Math.round(this.#parts.clock.now() / 1_000)
      const revision = await this.#store.write({ expectedRevision: this.#revision, atMs, ...reason, edits })
      if (revision === 'stale') continue
      this.#entries = edited.entries
      this.#revision = revision
      await this.#apply(settings, reason)
      return { kind: 'changed', revision }
    }
    const because = 'somebody else is changing the registry at the same time. Try again'
    return refused({ code: 'changed-meanwhile', because, param: null })
  }

  async #load(): Promise<void> {
    const isFirst = !this.#isLoaded
    const { revision, entries } = await this.#store.load()
    this.#isLoaded = true
    if (revision === this.#revision) return
    const [newest] = await this.#store.history({ limit: 1 })
    this.#entries = entries
    this.#revision = revision
    const { settings, problems } = this.#together(entries)
    for (const { because } of problems) this.#parts.complain(`registry: ${because}`)
    const reason = isFirst
      ? { by: 'registry', because: `it was there at revision ${revision}` }
      : { by: newest?.by ?? 'registry', because: newest?.because ?? 'another gateway changed it' }
    await this.#apply(settings, reason, isFirst)
    this.#parts.onRead(entries)
  }

  async #apply(settings: Config, reason: AdminReason, isFounding = false): Promise<void> {
    const problems = await this.#parts.diff.apply(settings, reason, isFounding)
    for (const problem of problems) this.#parts.complain(`registry: ${problem}`)
  }

  #together(entries: readonly RegistryEntry[]): { settings: Config; problems: AdminRefusal[] } {
    const { settings, problems } = upstreamKeyProblems(withRegistry(this.#parts.config, entries))
    const told = problems.map(({ path, text }): AdminRefusal => {
      const pool = settings.pools[Number(path[1])]
      const because = `pool ${pool?.id ?? ''}: ${path.slice(2).join('.')} ${text}`
      return { code: 'invalid-value', because, param: `pool.${path.slice(2).join('.')}` }
    })
    return { settings, problems: told }
  }

  async #look(): Promise<void> {
    try {
      if ((await this.#store.revision()) !== this.#revision) await this.#alone(() => this.#load())
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable)) this.#parts.complain(`registry: ${messageOf(error)}`)
    }
    this.#again(LOOK_US, () => this.#look())
  }

  #again(afterUs: number, fn: () => Promise<void>): void {
    if (this.#isClosed) return
    const { clock } = this.#parts
    this.#cancelLook = clock.at(clock.now() + afterUs, () => void fn())
  }

  /** One change after the other: each is checked against what the one before it left. */
  async #alone<T>(work: () => Promise<T>): Promise<T> {
    this.#waiting++
    const before = this.#last
    const mine = before.catch(() => {}).then(work)
    this.#last = mine
    try {
      return await mine
    } finally {
      this.#waiting--
    }
  }
}

const refused = (refusal: AdminRefusal): AdminAnswer => ({ kind: 'refused', refusal })

const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')

function unavailable(error: unknown): AdminRefusal {
  return { code: 'registry-unavailable', because: messageOf(error), param: null }
}
