/**
 * What a tenant lets us look things up in. A corpus holds documents, a document is split into passages, and passages
 * are what a search finds and a prompt gets. All of them belong to one tenant and never reach another (law L13).
 */
export type Attributes = Readonly<Record<string, string | number | boolean>>

/** What a search must know of a corpus. */
export interface CorpusFacts {
  readonly id: string
  readonly tenantId: string
  /** Unique inside its tenant; a request may name a corpus by it. */
  readonly name: string
  /** Counts up with every change of what a search could find: part of every cache's key. */
  readonly version: number
  /** Counts up when something was taken away: nothing cached before that may be shown again, however late we are. */
  readonly deletions: number
  /** Who made its vectors, and how long they are: questions must be embedded by the same one. */
  readonly embedder: string
  readonly dimensions: number
  readonly passageCount: number
}

export interface Corpus extends CorpusFacts {
  readonly createdAtS: number
  readonly metadata: Readonly<Record<string, string>>
  readonly counts: DocumentCounts
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
  /** Passages whose vector is stored; the rest is found by its words alone until it is. */
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
  /** Its place in the document, from 0. */
  readonly position: number
  readonly text: string
  /** Estimated. */
  readonly tokens: number
  /** 0 … 1, higher is better; comparable inside one answer only. */
  readonly score: number
  readonly attributes: Attributes
}

/** What a document must have to be searched; OpenAI's shape of it. */
export type Filter =
  | {
      readonly type: 'eq' | 'ne' | 'gt' | 'gte' | 'lt' | 'lte' | 'in' | 'nin'
      readonly key: string
      readonly value: string | number | boolean | readonly (string | number)[]
    }
  | { readonly type: 'and' | 'or'; readonly filters: readonly Filter[] }

/**
 * How a retrieval ended. `fresh`: searched in time. `cached`: found in a cache and still good. `stale`: from a cache,
 * past its time. `reduced`: only a part of the search came in time. `skipped`: nothing came in time, or nothing was
 * asked. `failed`: what it needs is broken.
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

/** What can be expected to go wrong when corpora are managed. */
export type CorpusRefusal =
  | 'no-such-corpus'
  | 'no-such-document'
  | 'no-such-file'
  | 'name-taken'
  | 'too-much'
  | 'unavailable'

export class CorpusError extends Error {
  override readonly name = 'CorpusError'
  readonly code: CorpusRefusal

  constructor(code: CorpusRefusal, message: string) {
    super(message)
    this.code = code
  }
}
