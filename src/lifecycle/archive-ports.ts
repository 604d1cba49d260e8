import type { ArchivedAnswer, ArchivedKind, NotArchived } from '../domain/archive.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { Page, PageAsk } from './retrieval-ports.ts'

/**
 * How are answers stored for their clients, and found again? `Archive` is what the gateway's routes use; `ArchiveStore`
 * is the table behind it. Types only.
 *
 * The walk of a stored answer:
 *
 *   1. Before the answer begins, a route asks `whyNot(tenant, inputBytes)`. Undefined: the answer says `store: true`.
 *      Otherwise it is served all the same and says `store: false`.
 *   2. When the answer has finished, the route calls `keep(tenant, answer)`, once. `keep` returns at once; the write
 *      happens off the request's path. An answer that was cancelled or failed is not kept.
 *   3. Reads, changes and removals wait until the tenant's answers that were kept before are written, so that a client
 *      finds its answer with the first request after it. (Of two gateways on one store, the other one may be behind for
 *      the time of one write.)
 *
 * A kept answer may still be lost: the store can be away for longer than the queue waits, or the process can die first.
 * A stream has then said `store: true` already. Losses are counted in the journal, and the id is unknown afterwards.
 *
 * For `/v1/responses`: the kind is `response`, `input` has the input items of this turn alone, and `previousId` is its
 * `previous_response_id`. `chain` reads the turns before, so that no turn has to repeat them. A running response of
 * `background: true` may be kept several times: the same id replaces what was there.
 */
export interface Archive {
  /** Bytes of one answer with its input at most. */
  readonly answerBytesMax: number
  /** Why an answer with this much input would not be stored now; undefined when it would. */
  whyNot(tenant: Tenant, inputBytes: number): NotArchived | undefined
  /** Returns at once and never throws. */
  keep(tenant: Tenant, answer: AnswerDraft): void
  /** Counts an answer that was to be stored and cannot be, because it grew too large to be collected. */
  lose(why: NotArchived): void
  find(tenantId: string, kind: ArchivedKind, id: string): Promise<ArchivedAnswer | undefined>
  /** The answer and those that it goes on from, the oldest first; undefined when the answer itself is unknown. */
  chain(tenantId: string, kind: ArchivedKind, id: string): Promise<AnswerChain | undefined>
  list(tenantId: string, ask: ArchiveAsk): Promise<ArchivePage>
  changeMetadata(
    tenantId: string,
    kind: ArchivedKind,
    id: string,
    metadata: ArchivedAnswer['metadata'],
  ): Promise<ArchivedAnswer | undefined>
  /** Whether there was such an answer. */
  remove(tenantId: string, kind: ArchivedKind, id: string): Promise<boolean>
}

/** An answer as a route keeps it; tenant and expiry come from the tenant's terms. */
export type AnswerDraft = Omit<ArchivedAnswer, 'tenantId' | 'expiresAtMs'>

export interface ArchiveAsk extends PageAsk {
  readonly kind: ArchivedKind
  readonly model?: string | undefined
  /** All of these pairs must be among the answer's own. */
  readonly metadata?: ArchivedAnswer['metadata'] | undefined
}

/** A page may have fewer answers than its limit, because its bytes are bounded too. */
export type ArchivePage = Page<ListedAnswer> | 'no-such-after'

/** A listed answer has no input. */
export type ListedAnswer = Omit<ArchivedAnswer, 'input'>

export interface AnswerChain {
  readonly answers: readonly ArchivedAnswer[]
  /**
   * `whole`: the oldest answer goes on from none. `broken`: an answer before it is gone. `too-long`: more answers or
   * bytes than one chain may have.
   */
  readonly state: 'whole' | 'broken' | 'too-long'
}

/**
 * The table of archived answers. Every statement is bounded, also in what it returns, and sees one tenant's answers
 * only; answers whose time is over are not there, swept or not. Rejects when the store is away.
 */
export interface ArchiveStore {
  /** Writes all answers or none; the same id replaces. Says how much the tenant has now. */
  put(tenantId: string, answers: readonly ArchivedAnswer[]): Promise<ArchiveTotal>
  find(tenantId: string, kind: ArchivedKind, id: string, nowMs: number): Promise<ArchivedAnswer | undefined>
  chain(ask: ChainAsk): Promise<AnswerChain | undefined>
  list(tenantId: string, ask: ArchiveAsk & { readonly nowMs: number; readonly bytesMax: number }): Promise<ArchivePage>
  changeMetadata(change: MetadataChange): Promise<ArchivedAnswer | undefined>
  remove(tenantId: string, kind: ArchivedKind, id: string, nowMs: number): Promise<boolean>
  /** Erases the tenant's oldest answers while it has more than its bound, `limit` at most. Says how many. */
  makeRoom(tenantId: string, bound: ArchiveTotal, limit: number): Promise<number>
  /** Erases answers of any tenant whose time is over, `limit` at most. Says how many. */
  sweep(nowMs: number, limit: number): Promise<number>
  /** Erases answers of the tenant that were begun before this instant, `limit` at most. Says how many. */
  eraseTenant(tenantId: string, beforeMs: number, limit: number): Promise<number>
  /** Tenants that have answers, in order of their ids, after this one. */
  tenants(after: string, limit: number): Promise<readonly ArchiveTenant[]>
}

export interface ArchiveTotal {
  readonly answers: number
  readonly bytes: number
}

export interface ArchiveTenant extends ArchiveTotal {
  readonly tenantId: string
  readonly lastWrittenAtMs: number
}

export interface ChainAsk {
  readonly tenantId: string
  readonly kind: ArchivedKind
  readonly id: string
  readonly nowMs: number
  readonly answersMax: number
  readonly bytesMax: number
}

export interface MetadataChange {
  readonly tenantId: string
  readonly kind: ArchivedKind
  readonly id: string
  readonly metadata: ArchivedAnswer['metadata']
  readonly nowMs: number
}
