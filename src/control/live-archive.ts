import { type CancelTimer, type Clock, secondsToUs, usToMs } from '../base/clock.ts'
import {
  type ArchivedAnswer,
  type ArchivedKind,
  type ArchiveErasure,
  ArchiveUnavailable,
  type NotArchived,
  type StoringTerms,
} from '../domain/archive.ts'
import { LaneFull } from '../domain/corpus.ts'
import type { Tenant } from '../domain/tenant.ts'
import type {
  AnswerChain,
  AnswerDraft,
  Archive,
  ArchiveAsk,
  ArchivePage,
  ArchiveStore,
} from '../lifecycle/archive-ports.ts'
import type { Journal } from '../lifecycle/ports.ts'
import { DatabaseUnavailable, QueryCancelled } from '../store/database.ts'
import { ArchiveWriter } from './archive-writer.ts'

/**
 * The archive of a running gateway: writes behind the request's path (`archive-writer.ts`), bounds for each tenant, and
 * erasure, when an answer's time is over and when its tenant is removed.
 *
 * A tenant is removed by an event, and its answers are erased at once. A process that was not there, or that died in
 * between, finds the rest later: answers of a tenant that nobody knows are erased when none was written for
 * `ORPHAN_US`. (At once would be wrong where several gateways share a store: one may know a new tenant sooner.)
 */
export interface LiveArchiveParts {
  readonly clock: Clock
  readonly store: ArchiveStore
  readonly journal: Journal
  readonly complain: (problem: string) => void
  readonly census: TenantCensus
  /** The store has been used before: otherwise nothing is swept before something was written. */
  readonly isInUse: boolean
}

/** Who is a tenant? */
export interface TenantCensus {
  /** False while tenants may exist that are not known here yet. */
  isComplete(): boolean
  has(tenantId: string): boolean
}

/** Bytes of one answer with its input. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024
/** Bytes of a page: a client with larger answers gets fewer at a time. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024
/** The longest conversation that one request goes on from. */
const CHAIN = { answersMax: 1_000, bytesMax: 16 * 1024 * 1024 } as const

const SWEEP_US = secondsToUs(60)
/** Answers that one statement erases, and statements in a row: 10,000 answers a minute. */
const ERASED_MAX = 200
const ROUNDS_MAX = 50
const ORPHAN_US = secondsToUs(3_600)
/** Tenants that one sweep looks at; the next one goes on from there. */
const TENANTS_MAX = 500
/** Removed tenants whose answers could not be erased yet; those beyond are found as orphans. */
const REMOVED_MAX = 1_000
const FLUSH_US_MAX = secondsToUs(2)
const COMPLAIN_EVERY_US = secondsToUs(60)

export class LiveArchive implements Archive {
  readonly answerBytesMax = ANSWER_BYTES_MAX
  readonly #parts: LiveArchiveParts
  readonly #writer: ArchiveWriter
  /** Bounds of tenants with answers that wait. */
  readonly #terms = new Map<string, StoringTerms>()
  /** Removed tenants that may have answers left, with the millisecond of their removal. */
  readonly #removed = new Map<string, number>()
  #hasWritten = false
  #sweptUpTo = ''
  #cancelSweep: CancelTimer | undefined
  #sweeping: Promise<void> | undefined
  #isClosed = false
  #complainedAt: number | undefined

  constructor(parts: LiveArchiveParts) {
    this.#parts = parts
    const { clock, journal } = parts
    this.#writer = new ArchiveWriter({
      clock,
      write: (tenantId, answers) => this.#write(tenantId, answers),
      onEnd: (outcome, count) => journal.record({ kind: 'archive-written', at: clock.now(), outcome, count }),
      onFailure: (error) => this.#complain(error),
      isHopeless: (error) => !isAway(error),
    })
    this.#sweepLater()
  }

  whyNot({ id, storing }: Tenant, inputBytes: number): NotArchived | undefined {
    if (storing === undefined) return 'not-allowed'
    if (inputBytes > Math.min(ANSWER_BYTES_MAX, storing.bytesMax)) return 'too-large'
    return this.#writer.whyNot(id, inputBytes)
  }

  keep({ id: tenantId, storing }: Tenant, draft: AnswerDraft): void {
    if (storing === undefined) {
      this.lose('not-allowed')
      return
    }
    const bytes = draft.document.length + draft.input.length
    if (bytes > Math.min(ANSWER_BYTES_MAX, storing.bytesMax)) {
      this.lose('too-large')
      return
    }
    this.#terms.set(tenantId, storing)
    this.#writer.take({ ...draft, tenantId, expiresAtMs: draft.createdAtMs + storing.ttlS * 1_000 })
  }

  lose(why: NotArchived): void {
    const { clock, journal } = this.#parts
    journal.record({ kind: 'archive-written', at: clock.now(), outcome: why, count: 1 })
  }

  find(tenantId: string, kind: ArchivedKind, id: string): Promise<ArchivedAnswer | undefined> {
    return this.#ask(tenantId, (store, nowMs) => store.find(tenantId, kind, id, nowMs))
  }

  chain(tenantId: string, kind: ArchivedKind, id: string): Promise<AnswerChain | undefined> {
    return this.#ask(tenantId, (store, nowMs) => store.chain({ tenantId, kind, id, nowMs, ...CHAIN }))
  }

  list(tenantId: string, ask: ArchiveAsk): Promise<ArchivePage> {
    return this.#ask(tenantId, (store, nowMs) => store.list(tenantId, { ...ask, nowMs, bytesMax: PAGE_BYTES_MAX }))
  }

  changeMetadata(
    tenantId: string,
    kind: ArchivedKind,
    id: string,
    metadata: ArchivedAnswer['metadata'],
  ): Promise<ArchivedAnswer | undefined> {
    return this.#ask(tenantId, (store, nowMs) => store.changeMetadata({ tenantId, kind, id, metadata, nowMs }))
  }

  remove(tenantId: string, kind: ArchivedKind, id: string): Promise<boolean> {
    return this.#ask(tenantId, (store, nowMs) => store.remove(tenantId, kind, id, nowMs))
  }

  /** Erases everything of a tenant that was removed. Never throws; what cannot be erased now is tried again. */
  async eraseTenant(tenantId: string): Promise<void> {
    this.#writer.drop(tenantId, 'tenant-removed')
    this.#terms.delete(tenantId)
    if (this.#removed.size < REMOVED_MAX) this.#removed.set(tenantId, this.#nowMs() + 1)
    try {
      if (this.#isUsed) await this.#eraseRemoved(tenantId)
    } catch (error) {
      this.#complain(error)
    }
  }

  /** For tests: answers that wait or are being written. */
  get waitingCount(): number {
    return this.#writer.count
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelSweep?.()
    await this.#writer.close(FLUSH_US_MAX)
    await this.#sweeping
  }

  get #isUsed(): boolean {
    return this.#parts.isInUse || this.#hasWritten
  }

  #nowMs(): number {
    return Math.floor(usToMs(this.#parts.clock.now()))
  }

  async #ask<T>(tenantId: string, question: (store: ArchiveStore, nowMs: number) => Promise<T>): Promise<T> {
    await this.#writer.written(tenantId)
    try {
      // A new tenant by the name of one that was removed must not find the other's answers.
      if (this.#removed.has(tenantId)) await this.#eraseRemoved(tenantId)
      return await question(this.#parts.store, this.#nowMs())
    } catch (error) {
      if (!(error instanceof DatabaseUnavailable || error instanceof QueryCancelled)) throw error
      throw new ArchiveUnavailable(error.message)
    }
  }

  async #write(tenantId: string, answers: readonly ArchivedAnswer[]): Promise<'kept' | NotArchived> {
    const { store, census } = this.#parts
    if (census.isComplete() && !census.has(tenantId)) return 'tenant-removed'
    this.#hasWritten = true
    const total = await store.put(tenantId, answers)
    const { countMax = Infinity, bytesMax = Infinity } = this.#terms.get(tenantId) ?? {}
    if (total.answers <= countMax && total.bytes <= bytesMax) return 'kept'
    const bound = { answers: countMax, bytes: bytesMax }
    const erased = await inRounds(() => store.makeRoom(tenantId, bound, ERASED_MAX))
    this.#tellErased('made-room', erased)
    return 'kept'
  }

  #sweepLater(): void {
    const { clock } = this.#parts
    if (this.#isClosed) return
    this.#cancelSweep = clock.at(clock.now() + SWEEP_US, () => {
      this.#sweeping = this.#sweep().finally(() => this.#sweepLater())
    })
  }

  async #sweep(): Promise<void> {
    if (!this.#isUsed) return
    const { store } = this.#parts
    try {
      this.#tellErased('expired', await inRounds(() => store.sweep(this.#nowMs(), ERASED_MAX)))
      for (const tenantId of this.#removed.keys()) await this.#eraseRemoved(tenantId)
      await this.#sweepOrphans()
    } catch (error) {
      this.#complain(error)
    }
  }

  async #sweepOrphans(): Promise<void> {
    const { store, census } = this.#parts
    if (!census.isComplete()) return
    const tenants = await store.tenants(this.#sweptUpTo, TENANTS_MAX)
    this.#sweptUpTo = tenants.length < TENANTS_MAX ? '' : (tenants.at(-1)?.tenantId ?? '')
    const oldMs = this.#nowMs() - usToMs(ORPHAN_US)
    for (const { tenantId, lastWrittenAtMs } of tenants) {
      if (!census.has(tenantId) && lastWrittenAtMs < oldMs) await this.eraseTenant(tenantId)
    }
  }

  async #eraseRemoved(tenantId: string): Promise<void> {
    const removedAtMs = this.#removed.get(tenantId)
    if (removedAtMs === undefined) return
    await this.#writer.written(tenantId)
    const erased = await inRounds(() => this.#parts.store.eraseTenant(tenantId, removedAtMs, ERASED_MAX))
    this.#tellErased('tenant-removed', erased)
    if (erased === ERASED_MAX * ROUNDS_MAX) throw new DatabaseUnavailable('A removed tenant is still being erased.')
    this.#removed.delete(tenantId)
  }

  #tellErased(because: ArchiveErasure, count: number): void {
    const { clock, journal } = this.#parts
    if (count > 0) journal.record({ kind: 'archive-erased', at: clock.now(), because, count })
  }

  #complain(error: unknown): void {
    const { clock, complain } = this.#parts
    const now = clock.now()
    if (this.#complainedAt !== undefined && now - this.#complainedAt < COMPLAIN_EVERY_US) return
    this.#complainedAt = now
    complain(`archive: ${messageOf(error)} Answers are served, and are not stored meanwhile.`)
  }
}

/** A message of the database may quote an answer: only its own words for being away are told. */
function messageOf(error: unknown): string {
  if (error instanceof DatabaseUnavailable || error instanceof ArchiveUnavailable) return error.message
  return `a statement failed (code ${(error as { code?: string }).code ?? 'unknown'}).`
}

const isAway = (error: unknown): boolean =>
  error instanceof DatabaseUnavailable || error instanceof QueryCancelled || error instanceof LaneFull

/** Repeats a statement while it erases as much as it may. */
async function inRounds(erase: () => Promise<number>): Promise<number> {
  let erased = 0
  for (let i = 0; i < ROUNDS_MAX; i++) {
    const count = await erase()
    erased += count
    if (count < ERASED_MAX) break
  }
  return erased
}
