/**
 * A corpus is a tenant's searchable documents. A corpus has documents, a document is split into passages, and a search
 * finds passages for a prompt. All of them belong to one tenant and never reach another (law L13).
 */
export type Attributes = Readonly<Record<string, string | number | boolean>>

/** The facts about a corpus that a search needs. */
export interface CorpusFacts {
  readonly id: string
  readonly tenantId: string
  /** Unique inside its tenant; a request may name the corpus by its name instead of its id. */
  readonly name: string
  /** Incremented with every change of what a search could find; part of every cache key. */
  readonly version: number
  /** Incremented with every deletion: passages cached before the deletion must never be shown again. */
  readonly deletions: number
  /** The embedder of the corpus's vectors, and their length: questions must be embedded by the same embedder. */
  readonly embedder: string
  readonly dimensions: number
  readonly passageCount: number
}

export interface Corpus extends CorpusFacts {
  readonly createdAtS: number
  readonly metadata: Readonly<Record<string, string>>
  readonly counts: DocumentCounts
  /** Passages whose vector is stored: the progress of indexing. */
  readonly embeddedCount: number
  readonly bytes: number
}

export interface DocumentCounts {
  readonly 'in-progress': number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
}

export type DocumentStatus = keyof DocumentCounts

export interface Document {
  readonly id: string
  readonly corpusId: string
  readonly name: string
  readonly status: DocumentStatus
  readonly because: string | undefined
  readonly bytes: number
  readonly passageCount: number
  /** Passages whose vector is stored; the other passages are found by their words alone. */
  readonly embeddedCount: number
  readonly createdAtS: number
  readonly attributes: Attributes
}

/** A text as it was uploaded, before it joins any corpus. */
export interface StoredFile {
  readonly id: string
  readonly name: string
  readonly purpose: string
  readonly bytes: number
  readonly createdAtS: number
}

/** A piece of a document that a search found. */
export interface Passage {
  readonly id: string
  readonly documentId: string
  /** The document's name: what a person would call the source. */
  readonly source: string
  /** Position of the passage in the document, from 0. */
  readonly position: number
  readonly text: string
  /** Estimated. */
  readonly tokens: number
  /** 0 … 1, higher is better; comparable within one search only. */
  readonly score: number
  readonly attributes: Attributes
}

/** A condition on a document's attributes, in OpenAI's shape. */
export type DocumentFilter =
  | {
      readonly type: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte' | 'in' | 'nin'
      readonly key: string
      readonly value: string | number | boolean | readonly (string | number)[]
    }
  | { readonly type: 'and' | 'or'; readonly filters: readonly DocumentFilter[] }

/**
 * How a retrieval ended. `fresh`: searched in time. `cached`: found in a cache and still valid. `stale`: from a cache,
 * past its time. `reduced`: only a part of the search came in time. `skipped`: nothing came in time, or there was
 * nothing to search for. `failed`: a part of retrieval is broken.
 */
export type RetrievalOutcome = 'fresh' | 'cached' | 'stale' | 'reduced' | 'skipped' | 'failed'

export const RETRIEVAL_OUTCOMES: readonly RetrievalOutcome[] = [
  'fresh',
  'cached',
  'stale',
  'reduced',
  'skipped',
  'failed',
]

/** The expected failures of managing corpora. */
export type CorpusRefusal =
  /** Too many statements of the tenant wait for the store. */
  'lane-full' | 'no-such-corpus' | 'no-such-document' | 'no-such-file' | 'name-taken' | 'too-much' | 'unavailable'

export class CorpusError extends Error {
  override readonly name = 'CorpusError'
  readonly code: CorpusRefusal
  /** When it is worth coming back, where that is known. */
  readonly retryAfterUs: number | undefined

  constructor(code: CorpusRefusal, message: string, retryAfterUs?: number) {
    super(message)
    this.code = code
    this.retryAfterUs = retryAfterUs
  }
}

/** A shared part (the store, the embedder) has too much waiting of one tenant; of other tenants it still takes work. */
export class LaneFull extends Error {
  override readonly name = 'LaneFull'
  readonly retryAfterUs: number

  constructor(message: string, retryAfterUs: number) {
    super(message)
    this.retryAfterUs = retryAfterUs
  }
}
