import { type CancelTimer, type Clock, msToUs, secondsToUs } from '../base/clock.ts'
import type { Fence } from '../domain/leader.ts'
import type {
  HistoryAsk,
  RegistryChange,
  RegistryEdit,
  RegistryEntry,
  RegistryKind,
  RegistryState,
  RegistryStore,
} from '../domain/registry.ts'
import type { AdminAnswer, AdminReason, AdminRefusal } from '../gateway/fleet-admin.ts'
import { DatabaseUnavailable } from '../store/database.ts'
import { combineSources } from './combine-sources.ts'
import type { OneAtATime } from './one-at-a-time.ts'
import { editEntries, removalOf } from './registry-edits.ts'
import type { SettingsChanger } from './settings-changer.ts'
import type { WantedOwner } from './wanted.ts'

/**
 * The registry of a running gateway: entries that add to the configuration file, kept in the store and carried out at
 * once.
 *
 *   edit ─▶ does it make sense? ─▶ could it run here? ─▶ written, as one revision ─▶ carried out
 *
 * An edit is written before it is carried out: if the process dies in between, the next one reads the store and does the
 * rest. No database is opened until the first edit, unless a store exists already. Several gateways on one PostgreSQL
 * tell each other of revisions, and look for them every second in case a notice was lost.
 *
 * A database that comes back empty, or older than it was, takes nothing out of service: revisions only grow, so a lower
 * one is a loss and no change. What is in force here and missing there is written back, and the operator is told.
 */
export interface RegistryParts {
  readonly clock: Clock
  readonly store: RegistryStore
  /** True when the store exists and is read at the start; otherwise the first edit opens it. */
  readonly isInUse: boolean
  /** True when other processes may write to the store too. */
  readonly isShared: boolean
  readonly owner: WantedOwner
  readonly changer: SettingsChanger
  readonly queue: OneAtATime
  readonly complain: (problem: string) => void
  /** Called when the entries that were read are in force: a rollout's memory needs the releases that it names. */
  readonly onRead: (read: RegistryRead) => void
}

export interface RegistryRead {
  readonly entries: readonly RegistryEntry[]
  /** The entries that were in force before. */
  readonly before: readonly RegistryEntry[]
  readonly isFirst: boolean
}

/** Who changes the registry, and why; with a leader's fence where the platform decided. */
export interface RegistryReason extends AdminReason {
  readonly fence?: Fence | undefined
}

/** The leader's term was over when its change came to be written: nothing was. */
export class LeadershipLost extends Error {
  override readonly name = 'LeadershipLost'
}

/** Between two looks for what other gateways have changed; notices come sooner, where there are any. */
const LOOK_US = msToUs(1_000)
/** Time between two tries to read a database that is away at the start. */
const RETRY_US = secondsToUs(5)
/** Changes that run or wait at once: enough for people and a few pipelines. */
const WAITING_MAX = 100
/** Tries of one edit while other gateways write at the same time; then the edit is refused. */
const TRIES = 3

export class LiveRegistry {
  readonly #parts: RegistryParts
  #revision = 0
  #isLoaded = false
  #hasTried = false
  #isClosed = false
  #isLooking = false
  #hasNotice = false
  #cancelLook: CancelTimer | undefined

  constructor(parts: RegistryParts) {
    this.#parts = parts
  }

  /** False until the first try to read an existing registry has ended: the platform is not ready before. */
  get isSettled(): boolean {
    return this.#hasTried || !this.#parts.isInUse
  }

  /** Reads the registry, and tries again while the database is away. Never throws. */
  async start(): Promise<void> {
    const { isInUse, isShared, queue, complain } = this.#parts
    if (!isInUse || this.#isClosed) return
    try {
      await queue.run(() => this.#load())
    } catch (error) {
      complain(`registry: ${messageOf(error)}. The configuration file is served meanwhile.`)
      this.#isLoaded = false
      this.#again(RETRY_US, () => this.start())
      return
    } finally {
      this.#hasTried = true
    }
    if (isShared) this.#again(LOOK_US, () => this.#look())
  }

  edit(edits: readonly RegistryEdit[], reason: AdminReason): Promise<AdminAnswer> {
    return this.change(() => edits, reason)
  }

  remove(kind: RegistryKind, name: string, reason: AdminReason): Promise<AdminAnswer> {
    return this.change(() => removalOf(this.#parts.owner.current.entries, kind, name), reason)
  }

  /** Calls `editsOf` when it is this change's turn and the store has been read. An empty list writes nothing. */
  async change(editsOf: () => readonly RegistryEdit[], reason: RegistryReason): Promise<AdminAnswer> {
    if (this.#parts.queue.count >= WAITING_MAX) {
      return refused({ code: 'too-many-changes', because: 'too many changes wait already', param: null })
    }
    try {
      return await this.#parts.queue.run(() => this.#tryChange(editsOf, reason))
    } catch (error) {
      if (error instanceof DatabaseUnavailable) return refused(unavailable(error))
      throw error
    }
  }

  async history(ask: HistoryAsk): Promise<readonly RegistryChange[] | AdminRefusal> {
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
    await this.#parts.queue.idle()
  }

  async #tryChange(editsOf: () => readonly RegistryEdit[], reason: RegistryReason): Promise<AdminAnswer> {
    const { owner, changer, clock, store, isShared } = this.#parts
    for (let i = 0; i < TRIES; i++) {
      // What another gateway has added just now may be what this change is about.
      if (!this.#isLoaded || i > 0 || (isShared && (await store.revision()) !== this.#revision)) await this.#load()
      const edits = editsOf()
      if (edits.length === 0) return { kind: 'changed', revision: undefined }
      const { file, entries } = owner.current
      const edited = editEntries(file, entries, edits)
      if (edited.kind === 'refused') return edited
      const { wanted, problems } = combineSources(file, edited.entries)
      const [problem] = problems
      if (problem !== undefined) return refused(problem)
      const planned = await changer.plan(wanted)
      if (planned.kind === 'refused') return refused(planned.refusals[0] as AdminRefusal)
      const atMs = Math.round(clock.now() / 1_000)
      const revision = await store.write({ expectedRevision: this.#revision, atMs, ...reason, edits })
      if (revision === 'stale') continue
      if (revision === 'deposed') throw new LeadershipLost('another gateway leads')
      this.#revision = revision
      this.#complain(changer.carryOut(planned.changes, wanted, reason))
      return { kind: 'changed', revision }
    }
    const because = 'somebody else is changing the registry at the same time. Try again'
    return refused({ code: 'changed-meanwhile', because, param: null })
  }

  async #load(): Promise<void> {
    const { store, owner, changer, onRead } = this.#parts
    const isFirst = !this.#isLoaded
    const before = owner.current.entries
    const { revision, entries } = await this.#readWhole()
    this.#isLoaded = true
    if (revision === this.#revision) return
    const [newest] = await store.history({ limit: 1 })
    this.#revision = revision
    const { wanted, problems } = combineSources(owner.current.file, entries)
    this.#complain(problems.map(({ because }) => because))
    const reason = isFirst
      ? { by: 'registry', because: `it was there at revision ${revision}` }
      : { by: newest?.by ?? 'registry', because: newest?.because ?? 'another gateway changed it' }
    this.#complain(await changer.follow(wanted, reason, isFirst))
    onRead({ entries, before, isFirst })
  }

  /** What the store has. Where it has lost revisions, the entries in force that it lacks are written to it first. */
  async #readWhole(): Promise<RegistryState> {
    const { store, owner, clock } = this.#parts
    for (let i = 0; i < TRIES; i++) {
      const state = await store.load()
      if (state.revision >= this.#revision) return state
      const known = new Set(state.entries.map((entry) => nameOf(entry)))
      const missing = owner.current.entries.filter((entry) => !known.has(nameOf(entry)))
      const atMs = Math.round(clock.now() / 1_000)
      const because = `the database lost its revisions and came back at ${state.revision} instead of ${this.#revision}`
      const write = { expectedRevision: state.revision, atMs, by: 'registry', because, edits: missing }
      const revision = missing.length === 0 ? state.revision : await store.write(write)
      if (typeof revision === 'string') continue
      const count = missing.length === 1 ? '1 entry' : `${missing.length} entries`
      this.#complain([
        `${because}. What was added here stays in force, and the ${count} that the database lacked were written to it again`,
      ])
      return { revision, entries: [...state.entries, ...missing] }
    }
    throw new DatabaseUnavailable('Other gateways are writing to the registry.')
  }

  #complain(problems: readonly string[]): void {
    for (const problem of problems) this.#parts.complain(`registry: ${problem}`)
  }

  /** Another gateway may have written: looks now. */
  notice(): void {
    if (!this.#parts.isShared || !this.#isLoaded || this.#isClosed) return
    this.#hasNotice = true
    if (this.#isLooking) return
    this.#cancelLook?.()
    void this.#look()
  }

  async #look(): Promise<void> {
    const { store, queue, complain } = this.#parts
    this.#isLooking = true
    this.#hasNotice = false
    try {
      if ((await store.revision()) !== this.#revision) await queue.run(() => this.#load())
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable)) complain(`registry: ${messageOf(error)}`)
    }
    this.#isLooking = false
    // What came during the look may not have been seen by it.
    this.#again(this.#hasNotice ? 0 : LOOK_US, () => this.#look())
  }

  #again(afterUs: number, fn: () => Promise<void>): void {
    if (this.#isClosed) return
    const { clock } = this.#parts
    this.#cancelLook = clock.at(clock.now() + afterUs, () => void fn())
  }
}

const nameOf = ({ kind, name }: RegistryEntry): string => `${kind} ${name}`

const refused = (refusal: AdminRefusal): AdminAnswer => ({ kind: 'refused', refusal })

const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')

function unavailable(error: unknown): AdminRefusal {
  return { code: 'registry-unavailable', because: messageOf(error), param: null }
}
