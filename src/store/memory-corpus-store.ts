import {
  type Corpus,
  CorpusError,
  type CorpusFacts,
  type Document,
  type Passage,
  type StoredFile,
} from '../domain/corpus.ts'
import type {
  CorpusStore,
  Hit,
  NewCorpus,
  NewDocument,
  Page,
  PageAsk,
  PassageDraft,
  TermFacts,
  TermSearch,
  UnfinishedDocument,
  VectorSearch,
} from '../lifecycle/retrieval-ports.ts'
import {
  bestHits,
  pageOf,
  type StoredCorpus,
  type StoredDocument,
  type StoredPassage,
  toCorpus,
  unfinishedOf,
} from './memory-rows.ts'

/**
 * Corpora in plain maps: the naive twin that the SQL store is compared with, and the store of simulations. It scans
 * everything and keeps nothing past its process.
 */
export class MemoryCorpusStore implements CorpusStore {
  readonly #corpora = new Map<string, Map<string, StoredCorpus>>()
  readonly #files = new Map<string, Map<string, { readonly row: StoredFile; readonly text: string }>>()
  #lastPassage = 0

  createCorpus({ id, tenantId, ...rest }: NewCorpus): Promise<Corpus> {
    const corpora = this.#of(this.#corpora, tenantId)
    if ([...corpora.values()].some(({ row }) => row.name === rest.name)) {
      return Promise.reject(new CorpusError('name-taken', `You have a corpus named '${rest.name}' already.`))
    }
    const corpus: StoredCorpus = { row: { id, tenantId, ...rest, version: 1, deletions: 0 }, documents: new Map() }
    corpora.set(id, corpus)
    return Promise.resolve(toCorpus(corpus))
  }

  findCorpus(tenantId: string, name: string): Promise<Corpus | undefined> {
    const corpora = this.#of(this.#corpora, tenantId)
    const corpus = corpora.get(name) ?? [...corpora.values()].find(({ row }) => row.name === name)
    return Promise.resolve(corpus && toCorpus(corpus))
  }

  async resolveCorpus(tenantId: string, name: string): Promise<CorpusFacts | undefined> {
    const corpus = await this.findCorpus(tenantId, name)
    if (corpus === undefined) return undefined
    const { createdAtS: _, metadata: _m, counts: _c, embeddedCount: _e, bytes: _b, ...facts } = corpus
    return facts
  }

  listCorpora(tenantId: string, page: PageAsk): Promise<Page<Corpus>> {
    return Promise.resolve(pageOf([...this.#of(this.#corpora, tenantId).values()].map(toCorpus), page))
  }

  updateCorpus(
    tenantId: string,
    corpusId: string,
    change: Parameters<CorpusStore['updateCorpus']>[2],
  ): Promise<Corpus | undefined> {
    const corpora = this.#of(this.#corpora, tenantId)
    const corpus = corpora.get(corpusId)
    if (corpus === undefined) return Promise.resolve(undefined)
    const { name = corpus.row.name, metadata = corpus.row.metadata } = change
    if ([...corpora.values()].some(({ row }) => row.id !== corpusId && row.name === name)) {
      return Promise.reject(new CorpusError('name-taken', `You have a corpus named '${name}' already.`))
    }
    const changed = { ...corpus, row: { ...corpus.row, name, metadata } }
    corpora.set(corpusId, changed)
    return Promise.resolve(toCorpus(changed))
  }

  deleteCorpus(tenantId: string, corpusId: string): Promise<boolean> {
    return Promise.resolve(this.#of(this.#corpora, tenantId).delete(corpusId))
  }

  addDocument(tenantId: string, corpusId: string, document: NewDocument): Promise<Document> {
    const corpus = this.#of(this.#corpora, tenantId).get(corpusId)
    if (corpus === undefined) return Promise.reject(new CorpusError('no-such-corpus', 'The corpus is gone.'))
    const { id, name, hash, text, attributes, createdAtS } = document
    const same = [...corpus.documents.values()].find((one) => one.hash === hash)
    const status = same === undefined || /failed|cancelled/.test(same.row.status) ? 'in-progress' : same.row.status
    const fresh = { id, corpusId, bytes: Buffer.byteLength(text), passageCount: 0, embeddedCount: 0, createdAtS }
    const row: Document = { ...fresh, because: undefined, ...same?.row, name, attributes, status }
    corpus.documents.set(row.id, { hash, text, passages: [], isSplit: false, ...same, row })
    return Promise.resolve(row)
  }

  listDocuments(
    tenantId: string,
    corpusId: string,
    page: Parameters<CorpusStore['listDocuments']>[2],
  ): Promise<Page<Document>> {
    const rows = [...this.#documents(tenantId, corpusId).values()].map(({ row }) => row)
    return Promise.resolve(
      pageOf(
        rows.filter(({ status }) => page.status === undefined || status === page.status),
        page,
        rows,
      ),
    )
  }

  findDocuments(tenantId: string, corpusId: string, documentIds: readonly string[]): Promise<readonly Document[]> {
    const documents = this.#documents(tenantId, corpusId)
    return Promise.resolve([...new Set(documentIds)].flatMap((id) => documents.get(id)?.row ?? []))
  }

  documentText(tenantId: string, corpusId: string, documentId: string): Promise<string | undefined> {
    return Promise.resolve(this.#documents(tenantId, corpusId).get(documentId)?.text)
  }

  updateDocument(
    tenantId: string,
    corpusId: string,
    documentId: string,
    attributes: Document['attributes'],
  ): Promise<Document | undefined> {
    const row = this.#change(tenantId, corpusId, documentId, { attributes })
    if (row !== undefined) this.#newer(tenantId, corpusId)
    return Promise.resolve(row)
  }

  deleteDocument(tenantId: string, corpusId: string, documentId: string): Promise<boolean> {
    const isGone = this.#documents(tenantId, corpusId).delete(documentId)
    if (isGone) this.#newer(tenantId, corpusId, 1)
    return Promise.resolve(isGone)
  }

  finishDocument(
    tenantId: string,
    corpusId: string,
    documentId: string,
    { status, because }: Parameters<CorpusStore['finishDocument']>[3],
  ): Promise<void> {
    if (this.#change(tenantId, corpusId, documentId, { status, because })) this.#newer(tenantId, corpusId)
    return Promise.resolve()
  }

  unfinished(limit: number): Promise<readonly UnfinishedDocument[]> {
    return Promise.resolve(unfinishedOf(this.#corpora).slice(0, limit))
  }

  addPassages(tenantId: string, corpusId: string, documentId: string, drafts: readonly PassageDraft[]): Promise<void> {
    const document = this.#documents(tenantId, corpusId).get(documentId)
    if (document === undefined) return Promise.resolve()
    for (const draft of drafts) {
      if (document.passages.some(({ position }) => position === draft.position)) continue
      document.passages.push({ ...draft, id: String(++this.#lastPassage) })
    }
    this.#change(tenantId, corpusId, documentId, { passageCount: document.passages.length })
    this.#newer(tenantId, corpusId)
    return Promise.resolve()
  }

  finishSplit(tenantId: string, corpusId: string, documentId: string): Promise<void> {
    const documents = this.#documents(tenantId, corpusId)
    const document = documents.get(documentId)
    if (document !== undefined) documents.set(documentId, { ...document, isSplit: true })
    return Promise.resolve()
  }

  unembedded(tenantId: string, corpusId: string, documentId: string, limit: number) {
    const passages = this.#documents(tenantId, corpusId).get(documentId)?.passages ?? []
    const missing = passages.filter(({ vector }) => vector === undefined).sort((a, b) => a.position - b.position)
    return Promise.resolve(missing.slice(0, limit).map(({ id, text }) => ({ passageId: id, text })))
  }

  setVectors(
    tenantId: string,
    corpusId: string,
    vectors: readonly { readonly passageId: string; readonly vector: Float32Array }[],
  ): Promise<void> {
    for (const { row, passages } of this.#documents(tenantId, corpusId).values()) {
      for (const { passageId, vector } of vectors) {
        const passage = passages.find(({ id }) => id === passageId)
        if (passage !== undefined) passage.vector ??= vector
      }
      const embeddedCount = passages.filter(({ vector }) => vector !== undefined).length
      this.#change(tenantId, corpusId, row.id, { embeddedCount })
    }
    return Promise.resolve()
  }

  refreshStatistics(): Promise<void> {
    return Promise.resolve()
  }

  termFacts(tenantId: string, corpusId: string, termIds: readonly number[]): Promise<TermFacts> {
    const passages = [...this.#documents(tenantId, corpusId).values()].flatMap((document) => document.passages)
    const passagesWith = new Map<number, number>()
    for (const id of termIds) {
      const count = passages.filter((passage) => passage.termIds.includes(id)).length
      if (count > 0) passagesWith.set(id, count)
    }
    return Promise.resolve({ passageCount: passages.length, passagesWith })
  }

  searchTerms(
    tenantId: string,
    corpusId: string,
    { weights, oneOf, limit, filter }: TermSearch,
  ): Promise<readonly Hit[]> {
    const idf = new Map(weights.map(({ termId, weight }) => [termId, weight]))
    const score = ({ termIds, termWeights }: StoredPassage): number | undefined => {
      if (!oneOf.some((id) => termIds.includes(id))) return undefined
      return termIds.reduce((sum, id, i) => sum + (idf.get(id) ?? 0) * (termWeights[i] ?? 0), 0)
    }
    return Promise.resolve(bestHits(this.#documents(tenantId, corpusId).values(), { limit, filter }, score))
  }

  searchVectors(tenantId: string, corpusId: string, { vector, limit, filter }: VectorSearch): Promise<readonly Hit[]> {
    const score = (passage: StoredPassage): number | undefined => {
      if (passage.vector?.length !== vector.length) return undefined
      return passage.vector.reduce((sum, part, i) => sum + part * (vector[i] ?? 0), 0)
    }
    return Promise.resolve(bestHits(this.#documents(tenantId, corpusId).values(), { limit, filter }, score))
  }

  readPassages(tenantId: string, corpusId: string, passageIds: readonly string[]): Promise<readonly Passage[]> {
    const found = [...this.#documents(tenantId, corpusId).values()].flatMap(({ row, passages }) =>
      passages
        .filter(({ id }) => passageIds.includes(id))
        .map(({ id, position, text, tokens }) => {
          const { id: documentId, name: source, attributes } = row
          return { id, documentId, source, position, text, tokens, attributes, score: 0 }
        }),
    )
    return Promise.resolve(found)
  }

  addFile(tenantId: string, row: StoredFile, text: string): Promise<void> {
    this.#of(this.#files, tenantId).set(row.id, { row, text })
    return Promise.resolve()
  }

  findFiles(tenantId: string, fileIds: readonly string[]): Promise<readonly StoredFile[]> {
    const files = this.#of(this.#files, tenantId)
    return Promise.resolve([...new Set(fileIds)].flatMap((id) => files.get(id)?.row ?? []))
  }

  fileText(tenantId: string, fileId: string): Promise<string | undefined> {
    return Promise.resolve(this.#of(this.#files, tenantId).get(fileId)?.text)
  }

  listFiles(tenantId: string, page: Parameters<CorpusStore['listFiles']>[1]): Promise<Page<StoredFile>> {
    const rows = [...this.#of(this.#files, tenantId).values()].map(({ row }) => row)
    return Promise.resolve(
      pageOf(
        rows.filter((row) => page.purpose === undefined || row.purpose === page.purpose),
        page,
        rows,
      ),
    )
  }

  deleteFile(tenantId: string, fileId: string): Promise<boolean> {
    return Promise.resolve(this.#of(this.#files, tenantId).delete(fileId))
  }

  deleteTenant(tenantId: string): Promise<void> {
    this.#corpora.delete(tenantId)
    this.#files.delete(tenantId)
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #of<T>(all: Map<string, Map<string, T>>, tenantId: string): Map<string, T> {
    const own = all.get(tenantId) ?? new Map<string, T>()
    all.set(tenantId, own)
    return own
  }

  #documents(tenantId: string, corpusId: string): Map<string, StoredDocument> {
    return this.#of(this.#corpora, tenantId).get(corpusId)?.documents ?? new Map()
  }

  #change(tenantId: string, corpusId: string, documentId: string, change: Partial<Document>): Document | undefined {
    const documents = this.#documents(tenantId, corpusId)
    const document = documents.get(documentId)
    if (document === undefined) return undefined
    const row = { ...document.row, ...change }
    documents.set(documentId, { ...document, row })
    return row
  }

  #newer(tenantId: string, corpusId: string, deletions = 0): void {
    const corpora = this.#of(this.#corpora, tenantId)
    const corpus = corpora.get(corpusId)
    if (corpus === undefined) return
    const { row } = corpus
    const newer = { ...row, version: row.version + 1, deletions: row.deletions + deletions }
    corpora.set(corpusId, { ...corpus, row: newer })
  }
}
