import type { Corpus, CorpusFacts, Document } from '../domain/corpus.ts'
import type { Hit, Page, PageAsk, PassageDraft, TermSearch, UnfinishedDocument } from '../lifecycle/retrieval-ports.ts'
import { matchesFilter } from './memory-filter.ts'

/** The rows of `memory-corpus-store.ts`, and how they are counted, ranked and paged. */
export interface StoredPassage extends PassageDraft {
  readonly id: string
  vector?: Float32Array
}

export interface StoredDocument {
  readonly row: Document
  readonly hash: string
  readonly text: string
  readonly passages: StoredPassage[]
  readonly isSplit: boolean
}

export interface StoredCorpus {
  readonly row: Omit<CorpusFacts, 'passageCount'> & Pick<Corpus, 'createdAtS' | 'metadata'>
  readonly documents: Map<string, StoredDocument>
}

/** Documents that are not split come first; tenants take turns. */
export function unfinishedOf(corpora: ReadonlyMap<string, ReadonlyMap<string, StoredCorpus>>): UnfinishedDocument[] {
  const waiting = [...corpora].flatMap(([tenantId, own]) => {
    const documents = [...own.values()].flatMap(({ row, documents }) =>
      [...documents.values()]
        .filter((document) => document.row.status === 'in-progress')
        .map(({ row: { id: documentId }, isSplit }) => {
          return { tenantId, corpusId: row.id, documentId, dimensions: row.dimensions, isSplit }
        }),
    )
    return documents.map((document, turn) => ({ document, turn }))
  })
  const sorted = waiting.sort((a, b) => Number(a.document.isSplit) - Number(b.document.isSplit) || a.turn - b.turn)
  return sorted.map(({ document }) => document)
}

/** The best by score, ties by age; a passage without a score is left out. */
export function bestHits(
  documents: Iterable<StoredDocument>,
  { limit, filter }: Pick<TermSearch, 'limit' | 'filter'>,
  scoreOf: (passage: StoredPassage) => number | undefined,
): Hit[] {
  const hits = [...documents]
    .filter(({ row }) => matchesFilter(row.attributes, filter))
    .flatMap(({ passages }) => passages)
    .flatMap((passage) => {
      const score = scoreOf(passage)
      return score === undefined ? [] : [{ passageId: passage.id, score }]
    })
  return hits.sort((a, b) => b.score - a.score || Number(a.passageId) - Number(b.passageId)).slice(0, limit)
}

export function toCorpus({ row, documents }: StoredCorpus): Corpus {
  const all = [...documents.values()]
  const count = (status: Document['status']): number => all.filter((document) => document.row.status === status).length
  return {
    ...row,
    passageCount: all.reduce((sum, { passages }) => sum + passages.length, 0),
    embeddedCount: all.reduce((sum, document) => sum + document.row.embeddedCount, 0),
    bytes: all.reduce((sum, document) => sum + document.row.bytes, 0),
    counts: {
      'in-progress': count('in-progress'),
      completed: count('completed'),
      failed: count('failed'),
      cancelled: count('cancelled'),
    },
  }
}

/** Rows in order of insertion; `after` may name a row that the filter leaves out. */
export function pageOf<T extends { readonly id: string }>(
  rows: readonly T[],
  { limit, order, after }: PageAsk,
  all: readonly T[] = rows,
): Page<T> {
  const place = new Map(all.map(({ id }, i) => [id, i]))
  const from = after === undefined ? undefined : (place.get(after) ?? Number.NaN)
  const ordered = order === 'asc' ? [...rows] : rows.toReversed()
  const isBeyond = ({ id }: T): boolean => {
    if (from === undefined) return true
    const at = place.get(id) as number
    return order === 'asc' ? at > from : at < from
  }
  const rest = ordered.filter(isBeyond)
  return { items: rest.slice(0, limit), hasMore: rest.length > limit }
}
