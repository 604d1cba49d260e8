import { assert } from '../base/assert.ts'
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
  StoreOptions,
  TermFacts,
  TermSearch,
  UnfinishedDocument,
  VectorSearch,
} from '../lifecycle/retrieval-ports.ts'
import {
  listCorporaSql,
  listDocumentsSql,
  listFilesSql,
  REFRESH_STATISTICS,
  SQL,
  searchTermsSql,
  searchVectorsSql,
  setVectorsSql,
  vectorIndexSql,
} from './corpus-sql.ts'
import { type Database, type Parameter, type QueryOptions, type Row, tenantLane } from './database.ts'
import { filterSql } from './filter-sql.ts'
import { withoutNuls } from './without-nuls.ts'

/** Corpora in SQL. `corpus-sql.ts` explains the statements. */

/** The term space of `analyse-text.ts`, as written in the text of a sparse vector. */
const TERM_SPACE = 1_000_000_000

/** Most dimensions that pgvector can index as halves. */
const DIMENSIONS_MAX = 4_000

/** PostgreSQL's error code. */
const UNIQUE_VIOLATION = '23505'

export interface SqlCorpusStoreOptions {
  /** The lane of all statements; if absent, each waits in its tenant's. */
  readonly lane?: string
  /** The database is the embedded one: its index is built with less work. */
  readonly isEmbedded?: boolean
}

export class SqlCorpusStore implements CorpusStore {
  readonly #database: Database
  readonly #options: SqlCorpusStoreOptions

  constructor(database: Database, options: SqlCorpusStoreOptions = {}) {
    this.#database = withoutNuls(database)
    this.#options = options
  }

  async createCorpus(corpus: NewCorpus): Promise<Corpus> {
    await this.#database.run(vectorIndexSql(checkedDimensions(corpus.dimensions), this.#options.isEmbedded ?? false))
    const { tenantId, id, name, embedder, dimensions, metadata, createdAtS } = corpus
    const row = await this.#one(SQL.createCorpus, [
      tenantId,
      id,
      name,
      embedder,
      dimensions,
      JSON.stringify(metadata),
      createdAtS,
    ])
    if (row === undefined) throw new CorpusError('name-taken', `You have a corpus named '${name}' already.`)
    return toCorpus(row)
  }

  async findCorpus(tenantId: string, corpus: string): Promise<Corpus | undefined> {
    const row = await this.#one(SQL.findCorpus, [tenantId, corpus])
    return row && toCorpus(row)
  }

  async resolveCorpus(tenantId: string, corpus: string, options?: StoreOptions): Promise<CorpusFacts | undefined> {
    const row = await this.#one(SQL.resolveCorpus, [tenantId, corpus], urgent(options))
    return row && (row as unknown as CorpusFacts)
  }

  async listCorpora(tenantId: string, { limit, order, after }: PageAsk): Promise<Page<Corpus>> {
    const rows = await this.#query(listCorporaSql(order), [tenantId, after ?? null, limit + 1])
    return pageOf(rows.map(toCorpus), limit)
  }

  async updateCorpus(
    tenantId: string,
    corpusId: string,
    change: Parameters<CorpusStore['updateCorpus']>[2],
  ): Promise<Corpus | undefined> {
    const metadata = change.metadata === undefined ? null : JSON.stringify(change.metadata)
    try {
      const row = await this.#one(SQL.updateCorpus, [tenantId, corpusId, change.name ?? null, metadata])
      return row && toCorpus(row)
    } catch (error) {
      if ((error as { code?: unknown }).code !== UNIQUE_VIOLATION) throw error
      throw new CorpusError('name-taken', `You have a corpus named '${change.name}' already.`)
    }
  }

  async deleteCorpus(tenantId: string, corpusId: string): Promise<boolean> {
    return (await this.#one(SQL.deleteCorpus, [tenantId, corpusId])) !== undefined
  }

  async addDocument(tenantId: string, corpusId: string, document: NewDocument): Promise<Document> {
    const { id, name, hash, text, attributes, createdAtS } = document
    const json = JSON.stringify(attributes)
    const row = await this.#one(SQL.addDocument, [tenantId, corpusId, id, name, hash, text, json, createdAtS])
    if (row === undefined) throw new CorpusError('no-such-corpus', 'The corpus is gone.')
    return toDocument(row)
  }

  async listDocuments(
    tenantId: string,
    corpusId: string,
    { limit, order, after, status }: Parameters<CorpusStore['listDocuments']>[2],
  ): Promise<Page<Document>> {
    const parameters = [tenantId, corpusId, after ?? null, limit + 1, status ?? null]
    const rows = await this.#query(listDocumentsSql(order), parameters)
    return pageOf(rows.map(toDocument), limit)
  }

  async findDocuments(
    tenantId: string,
    corpusId: string,
    documentIds: readonly string[],
  ): Promise<readonly Document[]> {
    const rows = await this.#query(SQL.findDocuments, [tenantId, corpusId, JSON.stringify(documentIds)])
    return rows.map(toDocument)
  }

  async documentText(tenantId: string, corpusId: string, documentId: string): Promise<string | undefined> {
    const row = await this.#one(SQL.documentText, [tenantId, corpusId, documentId])
    return row && String(row['body'])
  }

  async updateDocument(
    tenantId: string,
    corpusId: string,
    documentId: string,
    attributes: Document['attributes'],
  ): Promise<Document | undefined> {
    const row = await this.#one(SQL.updateDocument, [tenantId, corpusId, documentId, JSON.stringify(attributes)])
    return row && toDocument(row)
  }

  async deleteDocument(tenantId: string, corpusId: string, documentId: string): Promise<boolean> {
    return (await this.#one(SQL.deleteDocument, [tenantId, corpusId, documentId]))?.['n'] === 1
  }

  async finishDocument(
    tenantId: string,
    corpusId: string,
    documentId: string,
    { status, because }: Parameters<CorpusStore['finishDocument']>[3],
  ): Promise<void> {
    await this.#query(SQL.finishDocument, [tenantId, corpusId, documentId, status, because ?? null])
  }

  async unfinished(limit: number): Promise<readonly UnfinishedDocument[]> {
    return (await this.#query(SQL.unfinished, [limit])) as unknown as UnfinishedDocument[]
  }

  async addPassages(
    tenantId: string,
    corpusId: string,
    documentId: string,
    drafts: readonly PassageDraft[],
  ): Promise<void> {
    const json = drafts.map(({ position, text, tokens, termIds, termWeights }) => ({
      position,
      body: text,
      tokens,
      terms: `{${termIds.join()}}`,
      weights: sparseText(termIds, termWeights),
    }))
    await this.#query(SQL.addPassages, [tenantId, corpusId, documentId, JSON.stringify(json)])
  }

  async finishSplit(tenantId: string, corpusId: string, documentId: string): Promise<void> {
    await this.#query(SQL.finishSplit, [tenantId, corpusId, documentId])
  }

  async unembedded(tenantId: string, corpusId: string, documentId: string, limit: number) {
    const rows = await this.#query(SQL.unembedded, [tenantId, corpusId, documentId, limit])
    return rows as unknown as readonly { passageId: string; text: string }[]
  }

  async setVectors(
    tenantId: string,
    corpusId: string,
    vectors: readonly { readonly passageId: string; readonly vector: Float32Array }[],
  ): Promise<void> {
    if (vectors.length === 0) return
    const pairs = vectors.flatMap(({ passageId, vector }): Parameter[] => [passageId, halfBytes(vector)])
    await this.#query(setVectorsSql(vectors.length), [tenantId, corpusId, ...pairs])
  }

  async refreshStatistics(): Promise<void> {
    await this.#database.run(REFRESH_STATISTICS)
  }

  async termFacts(
    tenantId: string,
    corpusId: string,
    termIds: readonly number[],
    options?: StoreOptions,
  ): Promise<TermFacts> {
    const row = await this.#one(SQL.termFacts, [tenantId, corpusId, `{${termIds.join()}}`], urgent(options))
    const pairs = (row?.['terms'] ?? []) as ReadonlyArray<readonly [number, number]>
    return { passageCount: Number(row?.['passageCount'] ?? 0), passagesWith: new Map(pairs) }
  }

  async searchTerms(
    tenantId: string,
    corpusId: string,
    { weights, oneOf, limit, filter }: TermSearch,
    options?: StoreOptions,
  ): Promise<readonly Hit[]> {
    const query = sparseText(
      weights.map(({ termId }) => termId),
      weights.map(({ weight }) => weight),
    )
    const parameters: Parameter[] = [tenantId, corpusId, query, `{${oneOf.join()}}`, limit]
    const sql = searchTermsSql(filterSql(filter, parameters))
    return (await this.#query(sql, parameters, urgent(options))) as unknown as Hit[]
  }

  async searchVectors(
    tenantId: string,
    corpusId: string,
    { vector, limit, filter }: VectorSearch,
    options?: StoreOptions,
  ): Promise<readonly Hit[]> {
    const parameters: Parameter[] = [tenantId, corpusId, halfBytes(vector), limit]
    const sql = searchVectorsSql(checkedDimensions(vector.length), filterSql(filter, parameters))
    return (await this.#query(sql, parameters, urgent(options))) as unknown as Hit[]
  }

  async readPassages(
    tenantId: string,
    corpusId: string,
    passageIds: readonly string[],
    options?: StoreOptions,
  ): Promise<readonly Passage[]> {
    const parameters = [tenantId, corpusId, `{${passageIds.join()}}`]
    const rows = await this.#query(SQL.readPassages, parameters, urgent(options))
    return rows.map((row) => ({ ...(row as unknown as Passage), score: 0 }))
  }

  async addFile(tenantId: string, file: StoredFile, text: string): Promise<void> {
    const { id, name, purpose, bytes, createdAtS } = file
    await this.#query(SQL.addFile, [tenantId, id, name, purpose, text, bytes, createdAtS])
  }

  async findFiles(tenantId: string, fileIds: readonly string[]): Promise<readonly StoredFile[]> {
    return (await this.#query(SQL.findFiles, [tenantId, JSON.stringify(fileIds)])) as unknown as StoredFile[]
  }

  async fileText(tenantId: string, fileId: string): Promise<string | undefined> {
    const row = await this.#one(SQL.fileText, [tenantId, fileId])
    return row && String(row['body'])
  }

  async listFiles(
    tenantId: string,
    { limit, order, after, purpose }: Parameters<CorpusStore['listFiles']>[1],
  ): Promise<Page<StoredFile>> {
    const parameters = [tenantId, after ?? null, limit + 1, purpose ?? null]
    return pageOf((await this.#query(listFilesSql(order), parameters)) as unknown as StoredFile[], limit)
  }

  async deleteFile(tenantId: string, fileId: string): Promise<boolean> {
    return (await this.#one(SQL.deleteFile, [tenantId, fileId])) !== undefined
  }

  async deleteTenant(tenantId: string): Promise<void> {
    await this.#query(SQL.deleteTenant, [tenantId])
  }

  close(): Promise<void> {
    return this.#database.close()
  }

  async #one(sql: string, parameters: readonly Parameter[], options?: QueryOptions): Promise<Row | undefined> {
    return (await this.#query(sql, parameters, options))[0]
  }

  /** The tenant is the first parameter of every statement but `unfinished`, whose first parameter is a number. */
  #query(sql: string, parameters: readonly Parameter[], options?: QueryOptions): Promise<readonly Row[]> {
    const [tenantId] = parameters
    const lane = this.#options.lane ?? (typeof tenantId === 'string' ? tenantLane(tenantId) : undefined)
    return this.#database.query(sql, parameters, { ...options, lane })
  }
}

const urgent = (options: StoreOptions | undefined): QueryOptions => ({ ...options, isUrgent: true })

/** The number becomes part of a statement, so it must be a small whole number. */
function checkedDimensions(dimensions: number): number {
  assert(Number.isInteger(dimensions) && dimensions > 0 && dimensions <= DIMENSIONS_MAX, 'vectors have 1 to 4000 parts')
  return dimensions
}

function pageOf<T>(items: readonly T[], limit: number): Page<T> {
  return { items: items.slice(0, limit), hasMore: items.length > limit }
}

function toCorpus(row: Row): Corpus {
  const { documents, ...corpus } = row
  const { counts, embedded } = (documents ?? {}) as { counts?: object | null; embedded?: number | null }
  return {
    ...(corpus as unknown as Corpus),
    counts: { 'in-progress': 0, completed: 0, failed: 0, cancelled: 0, ...counts },
    embeddedCount: embedded ?? 0,
  }
}

function toDocument(row: Row): Document {
  const { isNew: _, ...document } = row
  return { ...(document as unknown as Document), because: (row['because'] as string | null) ?? undefined }
}

function sparseText(ids: readonly number[], weights: readonly number[]): string {
  return `{${ids.map((id, i) => `${id}:${(weights[i] ?? 0).toFixed(4)}`).join()}}/${TERM_SPACE}`
}

/**
 * A vector in pgvector's binary format of halves: their number (16 bits), 16 zero bits, then each, the high byte first.
 * As text it would take longer to read than to search for.
 */
function halfBytes(vector: Float32Array): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(4 + 2 * vector.length))
  bytes.setInt16(0, vector.length)
  for (let i = 0; i < vector.length; i++) bytes.setFloat16(4 + 2 * i, vector[i] ?? 0)
  return new Uint8Array(bytes.buffer)
}
