import type { Cancellation } from '../base/cancellation.ts'
import type {
  Attributes,
  Corpus,
  CorpusFacts,
  Document,
  DocumentFilter,
  Passage,
  RetrievalOutcome,
  StoredFile,
} from '../domain/corpus.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { Key, Tenant } from '../domain/tenant.ts'
import type { RateLimitView } from '../policy/budgets/budgets.ts'

/**
 * The world of corpora, as the request's story and the front door see it (`Retriever`, `Corpora`), and as retrieval
 * itself sees its parts (`CorpusStore`, `Embedder`). Types only: the parts may not know each other.
 */

/**
 * Which passages belong to this question?
 *
 * Obligations: it never throws, and never takes longer than `budgetUs`; what is late is left out, and work that nobody
 * waits for is called off where it runs. It sees one tenant's data only.
 */
export interface Retriever {
  retrieve(ask: RetrievalAsk): Promise<Retrieved>
  /** Is there such a corpus, and which version of it? At once when that is known. */
  lookUp(ask: CorpusAsk): CorpusLook | Promise<CorpusLook>
}

export type CorpusAsk = Pick<RetrievalAsk, 'tenantId' | 'corpus' | 'budgetUs' | 'cancellation'>

export type CorpusLook =
  | { readonly kind: 'found'; readonly corpus: CorpusFacts }
  | { readonly kind: 'none' }
  /** It could not be asked in time. */
  | { readonly kind: 'unknown' }

export interface RetrievalAsk {
  readonly tenantId: string
  /** A corpus's id or name. */
  readonly corpus: string
  readonly query: string
  readonly passagesMax: number
  /** All passages together may be no longer than this. */
  readonly tokensMax: number
  readonly budgetUs: number
  readonly cancellation: Cancellation
}

export interface Retrieved {
  readonly outcome: RetrievalOutcome
  readonly because: string
  /** In the order in which a prompt should have them. */
  readonly passages: readonly Passage[]
}

export interface DocumentDraft {
  /** Given when it was uploaded as a file first; made otherwise. */
  readonly id?: string | undefined
  readonly name: string
  readonly text: string
  readonly attributes: Attributes
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly hasMore: boolean
}

export interface PageAsk {
  readonly limit: number
  readonly order: 'asc' | 'desc'
  /** Start after the thing with this id. */
  readonly after?: string | undefined
}

export interface SearchAsk {
  readonly query: string
  readonly passagesMax: number
  readonly filter?: DocumentFilter | undefined
  readonly scoreMin?: number | undefined
}

/**
 * May this caller spend this on its corpora and files now? The budgets are those of chat: requests a minute, requests
 * at once, tokens a minute and per period, of the tenant and of the key. Texts to store and to embed count as tokens.
 */
export interface WorkBudgets {
  /** Takes one request and this many tokens, or says why not. */
  reserve(payer: WorkPayer, tokens: number): WorkHold | Refusal
  /** What the payer has left. */
  view(payer: WorkPayer): RateLimitView
}

export interface WorkPayer {
  readonly tenant: Tenant
  readonly key: Key
}

/** Held while the work runs; ends once, by `settle` or `refund`. */
export interface WorkHold {
  readonly kind: 'held'
  /** The work proves to take this many tokens in all. A refusal ends the hold: everything has gone back. */
  resize(tokens: number): Refusal | undefined
  /** The work was done. */
  settle(): void
  /** The work was never begun: everything goes back, the request included. */
  refund(): void
}

/** Managing corpora. Every method is bounded in time and throws `CorpusError` for what can be expected to go wrong. */
export interface Corpora {
  createCorpus(
    tenantId: string,
    draft: { readonly name?: string | undefined; readonly metadata: Readonly<Record<string, string>> },
  ): Promise<Corpus>
  listCorpora(tenantId: string, page: PageAsk): Promise<Page<Corpus>>
  /** By id or name. */
  getCorpus(tenantId: string, corpus: string): Promise<Corpus>
  updateCorpus(
    tenantId: string,
    corpus: string,
    change: {
      readonly name?: string | undefined
      readonly metadata?: Readonly<Record<string, string>> | undefined
    },
  ): Promise<Corpus>
  deleteCorpus(tenantId: string, corpus: string): Promise<void>
  /** Stores them and returns at once; indexing follows. A text that is there already is not stored twice. */
  addDocuments(tenantId: string, corpus: string, drafts: readonly DocumentDraft[]): Promise<readonly Document[]>
  listDocuments(
    tenantId: string,
    corpus: string,
    page: PageAsk & { readonly status?: Document['status'] | undefined },
  ): Promise<Page<Document>>
  getDocument(tenantId: string, corpus: string, documentId: string): Promise<Document>
  /** In the order of the ids; refused if one is not there. */
  getDocuments(tenantId: string, corpus: string, documentIds: readonly string[]): Promise<readonly Document[]>
  documentText(tenantId: string, corpus: string, documentId: string): Promise<string>
  updateDocument(tenantId: string, corpus: string, documentId: string, attributes: Attributes): Promise<Document>
  deleteDocument(tenantId: string, corpus: string, documentId: string): Promise<void>
  search(tenantId: string, corpus: string, ask: SearchAsk): Promise<readonly Passage[]>
  addFile(
    tenantId: string,
    draft: { readonly name: string; readonly purpose: string; readonly text: string },
  ): Promise<StoredFile>
  getFile(tenantId: string, fileId: string): Promise<StoredFile>
  /** In the order of the ids; refused if one is not there. */
  getFiles(tenantId: string, fileIds: readonly string[]): Promise<readonly StoredFile[]>
  fileText(tenantId: string, fileId: string): Promise<string>
  listFiles(tenantId: string, page: PageAsk & { readonly purpose?: string | undefined }): Promise<Page<StoredFile>>
  deleteFile(tenantId: string, fileId: string): Promise<void>
  /** Corpora, files, cached passages and cached answers: everything that is kept of a tenant here. */
  forgetTenant(tenantId: string): Promise<void>
}

/** How do texts become vectors? One per way of making them. Throws when it cannot; the caller bounds the wait. */
export interface Embedder {
  /** Names the vector space: vectors of different names cannot be compared. */
  readonly name: string
  readonly dimensions: number
  /** Unit vectors, one per text. A question goes before passages that wait to be indexed. */
  embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]>
  close(): Promise<void>
}

export interface EmbedOptions {
  readonly kind: 'question' | 'passage'
  readonly cancellation?: Cancellation | undefined
  /** The tenant whose question it is: tenants take turns. */
  readonly tenantId?: string | undefined
  readonly wait?: LaneWait | undefined
}

/**
 * Why an answer is not there yet. A part with lanes (the store, the embedder) replaces the function when it takes the
 * work: a wait behind the tenant's own work is no failure of the part.
 */
export interface LaneWait {
  isOwnQueue: () => boolean
}

/** A passage on its way into the index. */
export interface PassageDraft {
  readonly position: number
  readonly text: string
  readonly tokens: number
  /** Ascending. */
  readonly termIds: readonly number[]
  /** How much each term says about this passage: BM25's saturated, length-normalised frequency. */
  readonly termWeights: readonly number[]
}

/** What a question needs to know of a corpus's terms. */
export interface TermFacts {
  readonly passageCount: number
  /** In how many passages each asked term is; a term that is in none is absent. */
  readonly passagesWith: ReadonlyMap<number, number>
}

export interface Hit {
  readonly passageId: string
  readonly score: number
}

export interface StoreOptions {
  readonly cancellation?: Cancellation | undefined
  readonly wait?: LaneWait | undefined
}

/**
 * Where corpora live. Every method takes the tenant first, and sees nothing of others. Reads that a request waits for
 * take a cancellation, and stop in the store when it comes.
 */
export interface CorpusStore {
  createCorpus(corpus: NewCorpus): Promise<Corpus>
  /** By id or name. */
  findCorpus(tenantId: string, corpus: string): Promise<Corpus | undefined>
  /** The same, with only what a search needs. */
  resolveCorpus(tenantId: string, corpus: string, options?: StoreOptions): Promise<CorpusFacts | undefined>
  listCorpora(tenantId: string, page: PageAsk): Promise<Page<Corpus>>
  updateCorpus(
    tenantId: string,
    corpusId: string,
    change: { readonly name?: string | undefined; readonly metadata?: Readonly<Record<string, string>> | undefined },
  ): Promise<Corpus | undefined>
  deleteCorpus(tenantId: string, corpusId: string): Promise<boolean>

  /** Idempotent by (corpus, hash): the document that is there already comes back. */
  addDocument(tenantId: string, corpusId: string, document: NewDocument): Promise<Document>
  listDocuments(
    tenantId: string,
    corpusId: string,
    page: PageAsk & { readonly status?: Document['status'] | undefined },
  ): Promise<Page<Document>>
  /** In no particular order; documents that are not there are left out. */
  findDocuments(tenantId: string, corpusId: string, documentIds: readonly string[]): Promise<readonly Document[]>
  documentText(tenantId: string, corpusId: string, documentId: string): Promise<string | undefined>
  updateDocument(
    tenantId: string,
    corpusId: string,
    documentId: string,
    attributes: Attributes,
  ): Promise<Document | undefined>
  deleteDocument(tenantId: string, corpusId: string, documentId: string): Promise<boolean>
  finishDocument(
    tenantId: string,
    corpusId: string,
    documentId: string,
    end: { readonly status: 'completed' | 'failed'; readonly because?: string | undefined },
  ): Promise<void>
  /** Documents of all tenants whose indexing is not finished: unsplit ones first, tenants in turns, oldest first. */
  unfinished(limit: number): Promise<readonly UnfinishedDocument[]>

  /** Passages of one document, searchable by their words from here on. Idempotent by position. */
  addPassages(tenantId: string, corpusId: string, documentId: string, drafts: readonly PassageDraft[]): Promise<void>
  /** All passages of this document are stored. */
  finishSplit(tenantId: string, corpusId: string, documentId: string): Promise<void>
  /** Passages of one document that have no vector yet, by position. */
  unembedded(
    tenantId: string,
    corpusId: string,
    documentId: string,
    limit: number,
  ): Promise<readonly { readonly passageId: string; readonly text: string }[]>
  setVectors(
    tenantId: string,
    corpusId: string,
    vectors: readonly { readonly passageId: string; readonly vector: Float32Array }[],
  ): Promise<void>

  /** Much has been written: whoever plans searches should look at the tables again. */
  refreshStatistics(): Promise<void>

  termFacts(tenantId: string, corpusId: string, termIds: readonly number[], options?: StoreOptions): Promise<TermFacts>
  searchTerms(tenantId: string, corpusId: string, ask: TermSearch, options?: StoreOptions): Promise<readonly Hit[]>
  searchVectors(tenantId: string, corpusId: string, ask: VectorSearch, options?: StoreOptions): Promise<readonly Hit[]>
  /** In no particular order, scores 0; passages that are gone are left out. */
  readPassages(
    tenantId: string,
    corpusId: string,
    passageIds: readonly string[],
    options?: StoreOptions,
  ): Promise<readonly Passage[]>

  addFile(tenantId: string, file: StoredFile, text: string): Promise<void>
  /** In no particular order; files that are not there are left out. */
  findFiles(tenantId: string, fileIds: readonly string[]): Promise<readonly StoredFile[]>
  fileText(tenantId: string, fileId: string): Promise<string | undefined>
  listFiles(tenantId: string, page: PageAsk & { readonly purpose?: string | undefined }): Promise<Page<StoredFile>>
  deleteFile(tenantId: string, fileId: string): Promise<boolean>
  /** Corpora and files. */
  deleteTenant(tenantId: string): Promise<void>
  close(): Promise<void>
}

export interface NewCorpus {
  readonly id: string
  readonly tenantId: string
  readonly name: string
  readonly embedder: string
  readonly dimensions: number
  readonly metadata: Readonly<Record<string, string>>
  readonly createdAtS: number
}

export interface NewDocument {
  readonly id: string
  readonly name: string
  readonly hash: string
  readonly text: string
  readonly attributes: Attributes
  readonly createdAtS: number
}

export interface UnfinishedDocument {
  readonly tenantId: string
  readonly corpusId: string
  readonly documentId: string
  readonly dimensions: number
  /** All its passages are stored; what is left is to embed them. */
  readonly isSplit: boolean
}

export interface TermSearch {
  /** Inverse document frequency of each asked term. */
  readonly weights: ReadonlyArray<{ readonly termId: number; readonly weight: number }>
  /** A passage must have one of these to be scored: the rarer ones, so that the work is bounded. */
  readonly oneOf: readonly number[]
  readonly limit: number
  readonly filter?: DocumentFilter | undefined
}

export interface VectorSearch {
  readonly vector: Float32Array
  readonly limit: number
  readonly filter?: DocumentFilter | undefined
}
