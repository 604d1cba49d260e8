import type { Static } from 'typebox'
import { Type } from '../base/schema.ts'
import type { Corpus, Document, Passage, StoredFile } from '../domain/corpus.ts'

/**
 * Corpora in OpenAI's terms: a corpus is a vector store, a document is a file of the store. Parameters without effect
 * here (chunking, expiry, ranker) are accepted and ignored, as on other endpoints.
 */
const Metadata = Type.Record(Type.String({ maxLength: 64 }), Type.String({ maxLength: 512 }), { maxProperties: 16 })

const AttributesSchema = Type.Record(
  Type.String({ maxLength: 64 }),
  Type.Union([Type.String({ maxLength: 512 }), Type.Number(), Type.Boolean()]),
  { maxProperties: 16 },
)

const orNull = <T extends Parameters<typeof Type.Optional>[0]>(schema: T) =>
  Type.Optional(Type.Union([schema, Type.Null()]))

/** Most files of one call, which bounds its cost in the store. */
const FILES_PER_CALL_MAX = 500

const name = Type.String({ minLength: 1, maxLength: 256 })

export const VectorStoreBody = Type.Object({
  name: orNull(name),
  metadata: orNull(Metadata),
  file_ids: orNull(Type.Array(Type.String(), { maxItems: FILES_PER_CALL_MAX })),
})

export const VectorStoreFileBody = Type.Object({
  file_id: Type.String({ minLength: 1 }),
  attributes: orNull(AttributesSchema),
})

export const VectorStoreFilesBody = Type.Object({
  file_ids: orNull(Type.Array(Type.String(), { minItems: 1, maxItems: FILES_PER_CALL_MAX })),
  files: orNull(Type.Array(VectorStoreFileBody, { minItems: 1, maxItems: FILES_PER_CALL_MAX })),
  attributes: orNull(AttributesSchema),
})

export const AttributesBody = Type.Object({ attributes: Type.Union([AttributesSchema, Type.Null()]) })

/** Spillway's own: many texts in one call, without uploading files. */
export const DocumentsBody = Type.Object({
  documents: Type.Array(
    Type.Object({
      name: Type.String({ minLength: 1, maxLength: 1_024 }),
      text: Type.String(),
      attributes: orNull(AttributesSchema),
    }),
    { minItems: 1, maxItems: FILES_PER_CALL_MAX },
  ),
})

const Comparison = Type.Object({
  type: Type.Union(['eq', 'ne', 'gt', 'gte', 'lt', 'lte', 'in', 'nin'].map((type) => Type.Literal(type))),
  key: Type.String({ maxLength: 64 }),
  value: Type.Union([
    Type.String(),
    Type.Number(),
    Type.Boolean(),
    Type.Array(Type.Union([Type.String(), Type.Number()]), { maxItems: 100 }),
  ]),
})

const both = Type.Union([Type.Literal('and'), Type.Literal('or')])
const Compound = Type.Object({ type: both, filters: Type.Array(Comparison, { maxItems: 20 }) })
const FilterSchema = Type.Union([
  Comparison,
  Type.Object({ type: both, filters: Type.Array(Type.Union([Comparison, Compound]), { maxItems: 20 }) }),
])

export const SearchBody = Type.Object({
  query: Type.Union([
    Type.String({ minLength: 1, maxLength: 10_000 }),
    Type.Array(Type.String({ minLength: 1, maxLength: 10_000 }), { minItems: 1, maxItems: 8 }),
  ]),
  max_num_results: orNull(Type.Integer({ minimum: 1, maximum: 50 })),
  filters: orNull(FilterSchema),
  ranking_options: orNull(Type.Object({ score_threshold: orNull(Type.Number({ minimum: 0, maximum: 1 })) })),
})
export type SearchBody = Static<typeof SearchBody>

export function wireCorpus(corpus: Corpus): Record<string, unknown> {
  const { counts } = corpus
  const total = counts['in-progress'] + counts.completed + counts.failed + counts.cancelled
  return {
    id: corpus.id,
    object: 'vector_store',
    created_at: corpus.createdAtS,
    name: corpus.name,
    usage_bytes: corpus.bytes,
    file_counts: {
      in_progress: counts['in-progress'],
      completed: counts.completed,
      failed: counts.failed,
      cancelled: counts.cancelled,
      total,
    },
    status: counts['in-progress'] > 0 ? 'in_progress' : 'completed',
    last_active_at: null,
    expires_at: null,
    metadata: corpus.metadata,
    spillway: {
      passages: corpus.passageCount,
      embedded: corpus.embeddedCount,
      version: corpus.version,
      embedder: corpus.embedder,
    },
  }
}

export function wireDocument(document: Document): Record<string, unknown> {
  const { because } = document
  return {
    id: document.id,
    object: 'vector_store.file',
    created_at: document.createdAtS,
    vector_store_id: document.corpusId,
    usage_bytes: document.bytes,
    status: document.status.replace('-', '_'),
    last_error: document.status === 'failed' ? { code: 'server_error', message: because ?? 'unknown' } : null,
    attributes: document.attributes,
    chunking_strategy: { type: 'other' },
    spillway: {
      filename: document.name,
      passages: document.passageCount,
      embedded: document.embeddedCount,
    },
  }
}

export function wireFile(file: StoredFile): Record<string, unknown> {
  return {
    id: file.id,
    object: 'file',
    bytes: file.bytes,
    created_at: file.createdAtS,
    filename: file.name,
    purpose: file.purpose,
    status: 'processed',
  }
}

/**
 * A set of files that joined a store together; its id contains the store and the time, and there is no record of it.
 */
export function wireFileBatch(id: string, corpusId: string, documents: readonly Document[]): Record<string, unknown> {
  const count = (status: Document['status']): number => documents.filter((one) => one.status === status).length
  const inProgress = count('in-progress')
  return {
    id,
    object: 'vector_store.files_batch',
    created_at: documents[0]?.createdAtS ?? 0,
    vector_store_id: corpusId,
    status: inProgress > 0 ? 'in_progress' : 'completed',
    file_counts: {
      in_progress: inProgress,
      completed: count('completed'),
      failed: count('failed'),
      cancelled: count('cancelled'),
      total: documents.length,
    },
  }
}

export function wireHit(passage: Passage): Record<string, unknown> {
  const { documentId, source, score, attributes, text } = passage
  const content = [{ type: 'text', text }]
  return { file_id: documentId, filename: source, score, attributes, content }
}

export function wireList(rows: ReadonlyArray<Record<string, unknown>>, hasMore: boolean): Record<string, unknown> {
  const ends = { first_id: rows[0]?.['id'] ?? '', last_id: rows.at(-1)?.['id'] ?? '' }
  return { object: 'list', data: rows, ...ends, has_more: hasMore }
}
