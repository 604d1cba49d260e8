import { hash } from 'node:crypto'
import { Cancellation } from '../base/cancellation.ts'
import { type Clock, secondsToUs, usToSeconds } from '../base/clock.ts'
import {
  type Attributes,
  type Corpus,
  CorpusError,
  type Document,
  LaneFull,
  type Passage,
  type StoredFile,
} from '../domain/corpus.ts'
import type { Corpora, CorpusStore, DocumentDraft, Page, PageAsk, SearchAsk } from '../lifecycle/retrieval-ports.ts'
import type { CorpusDirectory } from './corpus-directory.ts'
import type { Indexer } from './indexer.ts'
import { PartUnavailable, type SearchParts, searchCorpus } from './indexes/hybrid-search.ts'

/** Management of corpora: everything outside a request's path. Errors that a client can mend are values. */
export interface CorporaOptions {
  readonly clock: Clock
  readonly store: CorpusStore
  readonly parts: SearchParts
  readonly directory: CorpusDirectory
  readonly indexer: Indexer
  /** Caches that remember something of a tenant beside the store. */
  readonly caches: ReadonlyArray<Forgetful>
  readonly makeId: () => string
}

/** A cache that can be told to forget a tenant. */
export interface Forgetful {
  forgetTenant(tenantId: string): Promise<void>
}

/** Longer than any search: a client of the search endpoint waits for an answer, not for a first token. */
const SEARCH_US = secondsToUs(10)

/** Longest document: 25,000 passages, which take most of an hour to embed with the built-in embedder. */
export const DOCUMENT_CHARACTERS_MAX = 16 * 1024 * 1024

export class StoreCorpora implements Corpora {
  readonly #options: CorporaOptions

  constructor(options: CorporaOptions) {
    this.#options = options
  }

  createCorpus(tenantId: string, draft: Parameters<Corpora['createCorpus']>[1]): Promise<Corpus> {
    const { store, parts, makeId } = this.#options
    const id = `vs_${makeId()}`
    const { name: embedder, dimensions } = parts.embedder
    const { name = id, metadata } = draft
    return this.#reach(() =>
      store.createCorpus({ id, tenantId, name, embedder, dimensions, metadata, createdAtS: this.#nowS() }),
    )
  }

  listCorpora(tenantId: string, page: PageAsk): Promise<Page<Corpus>> {
    return this.#reach(() => this.#options.store.listCorpora(tenantId, page))
  }

  async getCorpus(tenantId: string, corpus: string): Promise<Corpus> {
    return found(await this.#reach(() => this.#options.store.findCorpus(tenantId, corpus)), 'no-such-corpus', corpus)
  }

  async updateCorpus(
    tenantId: string,
    corpus: string,
    change: Parameters<Corpora['updateCorpus']>[2],
  ): Promise<Corpus> {
    const { id } = await this.getCorpus(tenantId, corpus)
    const updated = await this.#reach(() => this.#options.store.updateCorpus(tenantId, id, change))
    return found(updated, 'no-such-corpus', corpus)
  }

  async deleteCorpus(tenantId: string, corpus: string): Promise<void> {
    const { store, directory } = this.#options
    const { id } = await this.getCorpus(tenantId, corpus)
    await this.#reach(() => store.deleteCorpus(tenantId, id))
    directory.remove(tenantId, id)
  }

  async addDocuments(tenantId: string, corpus: string, drafts: readonly DocumentDraft[]): Promise<readonly Document[]> {
    const { store, directory, indexer } = this.#options
    const tooLong = drafts.find((draft) => draft.text.length > DOCUMENT_CHARACTERS_MAX)
    if (tooLong !== undefined) {
      const most = DOCUMENT_CHARACTERS_MAX
      throw new CorpusError('too-much', `'${tooLong.name}' is longer than ${most} characters; cut it into several.`)
    }
    const { id } = await this.getCorpus(tenantId, corpus)
    const documents: Document[] = []
    for (const draft of drafts) {
      // PostgreSQL's texts cannot contain NUL.
      const text = draft.text.replaceAll('\0', '')
      const digest = hash('sha256', text, 'hex')
      const documentId = draft.id ?? `file-${hash('sha256', `${id}\n${digest}`, 'hex').slice(0, 24)}`
      const { name, attributes } = draft
      const document = { id: documentId, name, hash: digest, text, attributes, createdAtS: this.#nowS() }
      documents.push(await this.#reach(() => store.addDocument(tenantId, id, document)))
    }
    directory.forget(tenantId, id)
    indexer.wake()
    return documents
  }

  async listDocuments(
    tenantId: string,
    corpus: string,
    page: Parameters<Corpora['listDocuments']>[2],
  ): Promise<Page<Document>> {
    const { id } = await this.getCorpus(tenantId, corpus)
    return this.#reach(() => this.#options.store.listDocuments(tenantId, id, page))
  }

  async getDocument(tenantId: string, corpus: string, documentId: string): Promise<Document> {
    const [document] = await this.getDocuments(tenantId, corpus, [documentId])
    return found(document, 'no-such-document', documentId)
  }

  async getDocuments(tenantId: string, corpus: string, documentIds: readonly string[]): Promise<readonly Document[]> {
    const { id } = await this.getCorpus(tenantId, corpus)
    const documents = await this.#reach(() => this.#options.store.findDocuments(tenantId, id, documentIds))
    const byId = new Map(documents.map((document) => [document.id, document]))
    return documentIds.map((documentId) => found(byId.get(documentId), 'no-such-document', documentId))
  }

  async documentText(tenantId: string, corpus: string, documentId: string): Promise<string> {
    const { id } = await this.getCorpus(tenantId, corpus)
    const text = await this.#reach(() => this.#options.store.documentText(tenantId, id, documentId))
    return found(text, 'no-such-document', documentId)
  }

  async updateDocument(
    tenantId: string,
    corpus: string,
    documentId: string,
    attributes: Attributes,
  ): Promise<Document> {
    const { store, directory } = this.#options
    const { id } = await this.getCorpus(tenantId, corpus)
    const document = await this.#reach(() => store.updateDocument(tenantId, id, documentId, attributes))
    directory.forget(tenantId, id)
    return found(document, 'no-such-document', documentId)
  }

  async deleteDocument(tenantId: string, corpus: string, documentId: string): Promise<void> {
    const { store, directory } = this.#options
    const { id } = await this.getCorpus(tenantId, corpus)
    const isGone = await this.#reach(() => store.deleteDocument(tenantId, id, documentId))
    directory.forget(tenantId, id)
    if (!isGone) found(undefined, 'no-such-document', documentId)
  }

  async search(tenantId: string, corpus: string, ask: SearchAsk): Promise<readonly Passage[]> {
    const { clock, parts } = this.#options
    const facts = await this.getCorpus(tenantId, corpus)
    const deadlineAt = clock.now() + SEARCH_US
    const cancellation = new Cancellation()
    const forget = clock.at(deadlineAt, () => cancellation.cancel('out of time'))
    try {
      const { passages } = await searchCorpus(parts, facts, {
        query: ask.query,
        limit: ask.passagesMax,
        filter: ask.filter,
        joinAt: deadlineAt,
        deadlineAt,
        cancellation,
      })
      return passages.filter((passage) => passage.score >= (ask.scoreMin ?? 0))
    } catch (error) {
      if (error instanceof PartUnavailable) throw new CorpusError('unavailable', error.message)
      throw error
    } finally {
      forget()
    }
  }

  async addFile(tenantId: string, draft: Parameters<Corpora['addFile']>[1]): Promise<StoredFile> {
    const { store, makeId } = this.#options
    const text = draft.text.replaceAll('\0', '')
    if (text.length > DOCUMENT_CHARACTERS_MAX) {
      throw new CorpusError('too-much', `A file may have ${DOCUMENT_CHARACTERS_MAX} characters at most.`)
    }
    const { name, purpose } = draft
    const bytes = Buffer.byteLength(text)
    const file = { id: `file-${makeId()}`, name, purpose, bytes, createdAtS: this.#nowS() }
    await this.#reach(() => store.addFile(tenantId, file, text))
    return file
  }

  async getFile(tenantId: string, fileId: string): Promise<StoredFile> {
    const [file] = await this.getFiles(tenantId, [fileId])
    return found(file, 'no-such-file', fileId)
  }

  async getFiles(tenantId: string, fileIds: readonly string[]): Promise<readonly StoredFile[]> {
    if (fileIds.length === 0) return []
    const files = await this.#reach(() => this.#options.store.findFiles(tenantId, fileIds))
    const byId = new Map(files.map((file) => [file.id, file]))
    return fileIds.map((id) => found(byId.get(id), 'no-such-file', id))
  }

  async fileText(tenantId: string, fileId: string): Promise<string> {
    return found(await this.#reach(() => this.#options.store.fileText(tenantId, fileId)), 'no-such-file', fileId)
  }

  listFiles(tenantId: string, page: Parameters<Corpora['listFiles']>[1]): Promise<Page<StoredFile>> {
    return this.#reach(() => this.#options.store.listFiles(tenantId, page))
  }

  async deleteFile(tenantId: string, fileId: string): Promise<void> {
    const isGone = await this.#reach(() => this.#options.store.deleteFile(tenantId, fileId))
    if (!isGone) found(undefined, 'no-such-file', fileId)
  }

  async forgetTenant(tenantId: string): Promise<void> {
    const { store, directory, caches } = this.#options
    await this.#reach(() => store.deleteTenant(tenantId))
    directory.removeTenant(tenantId)
    await Promise.all(caches.map((cache) => cache.forgetTenant(tenantId)))
  }

  #nowS(): number {
    return Math.floor(usToSeconds(this.#options.clock.now()))
  }

  /** An unreachable store is an expected condition, with a refusal of its own. */
  async #reach<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      if (error instanceof LaneFull) throw new CorpusError('lane-full', error.message, error.retryAfterUs)
      if (error instanceof Error && error.name === 'DatabaseUnavailable') {
        throw new CorpusError('unavailable', error.message)
      }
      throw error
    }
  }
}

const WHAT = { 'no-such-corpus': 'corpus', 'no-such-document': 'document', 'no-such-file': 'file' } as const

function found<T>(thing: T | undefined, code: keyof typeof WHAT, name: string): T {
  if (thing !== undefined) return thing
  throw new CorpusError(code, `No ${WHAT[code]} '${name.slice(0, 100)}' was found.`)
}
