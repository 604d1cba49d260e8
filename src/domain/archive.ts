/**
 * The archive has the finished answers that clients asked to store (`store: true`), each tenant's apart, until their
 * time to live is over. An archived answer belongs to one tenant and never reaches another (law L13).
 */

/** OpenAI's `object` of the answer. */
export type ArchivedKind = 'response' | 'chat.completion'

export interface ArchivedAnswer {
  readonly tenantId: string
  /** As the client knows the answer: `chatcmpl-…`, `resp_…`. */
  readonly id: string
  readonly kind: ArchivedKind
  readonly createdAtMs: number
  /** The first instant at which the answer is not there any more. */
  readonly expiresAtMs: number
  /** The client's name for the model. */
  readonly model: string
  readonly metadata: Readonly<Record<string, string>>
  /** The answer that this one goes on from (`previous_response_id`). */
  readonly previousId?: string | undefined
  /** The answer in OpenAI's shape, as JSON text. Its metadata may be old: `metadata` counts. */
  readonly document: string
  /** The messages or input items of this answer alone, as the JSON text of a list. */
  readonly input: string
}

/** Terms on which a tenant's answers are archived. */
export interface StoringTerms {
  readonly ttlS: number
  /** Answers and bytes of the tenant at most: the oldest answers make room. */
  readonly countMax: number
  readonly bytesMax: number
  /** Answers of shadows are kept for operators, beside the client's; absent: they are not. */
  readonly shadows?: boolean
}

/** As OpenAI: thirty days. */
export const STORING_DEFAULTS: StoringTerms = { ttlS: 30 * 86_400, countMax: 10_000, bytesMax: 256 * 1024 * 1024 }

/** What an operator may grant: a year, a million answers, a terabyte. */
export const STORING_MAX: Omit<StoringTerms, 'shadows'> = { ttlS: 365 * 86_400, countMax: 1_000_000, bytesMax: 1e12 }

/**
 * Why an answer is not archived. `not-allowed`: the tenant has no terms of storing. `too-large`: the answer with its
 * input is larger than one answer may be. `queue-full`: too many answers wait to be written. `store-away`: the store
 * did not take the answer in time. `tenant-removed`: the tenant was removed while the answer was made.
 */
export type NotArchived = 'not-allowed' | 'too-large' | 'queue-full' | 'store-away' | 'tenant-removed'

/** Why answers were erased without a client's order. */
export type ArchiveErasure = 'expired' | 'made-room' | 'tenant-removed'

/** The archive cannot be asked now: worth trying later. */
export class ArchiveUnavailable extends Error {
  override readonly name = 'ArchiveUnavailable'
}

/** Bytes of an answer, its input and what stands beside them, about: counting letters costs nothing. Stores count bytes. */
export const archivedBytes = (answer: Pick<ArchivedAnswer, 'document' | 'input' | 'metadata'>): number =>
  answer.document.length + answer.input.length + JSON.stringify(answer.metadata).length + ROW_BYTES

/** What a row takes beside its texts, about. */
const ROW_BYTES = 256
