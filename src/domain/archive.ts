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
}

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

/** Bytes that count against the tenant's bound: the answer, its input, and what stands beside them. */
export const archivedBytes = ({ document, input, metadata }: Pick<ArchivedAnswer, 'document' | 'input' | 'metadata'>) =>
  utf8Length(document) + utf8Length(input) + utf8Length(JSON.stringify(metadata)) + ROW_BYTES

/** What a row takes beside its texts, about. */
const ROW_BYTES = 256

function utf8Length(text: string): number {
  let bytes = text.length
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x80) continue
    // Half of a pair has two of the four bytes.
    bytes += code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 1 : 2
  }
  return bytes
}
