import type { Document, DocumentFilter, StoredFile } from '../../domain/corpus.ts'
import type { DocumentDraft } from '../../lifecycle/retrieval-ports.ts'
import { type Checked, makeCheck } from '../../wire/check.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { readStorable } from '../../wire/read-body.ts'
import {
  AttributesBody,
  DocumentsBody,
  SearchBody,
  VectorStoreBody,
  VectorStoreFileBody,
  VectorStoreFilesBody,
  wireCorpus,
  wireDocument,
  wireFileBatch,
  wireHit,
  wireList,
} from '../../wire/vector-stores.ts'
import { collectBody } from '../collect-body.ts'
import { collectScreened } from '../collect-screened.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { screenedPassages } from '../screen-passages.ts'
import { answerCall, BodyFault, type CorporaDeps, type CorpusCall, pageAskOf, tokensOfBytes } from './corpora-answer.ts'

/**
 * Corpora over HTTP, as OpenAI's vector stores. The tenant is always the caller's, never taken from the path: another
 * tenant's id is as unknown as an invented one.
 */
interface Ask extends CorpusCall {
  readonly deps: CorporaDeps
  /** The path under /v1/vector_stores/, cut at its slashes. */
  readonly path: readonly string[]
}

type Handle = (ask: Ask) => Promise<unknown>

export function corporaRoutes(deps: CorporaDeps): Route[] {
  const route = (method: Route['method'], path: string): Route => ({
    method,
    path,
    handle: (exchange, rest) => answer(deps, exchange, method, rest),
  })
  const under = '/v1/vector_stores/*'
  return [
    route('GET', '/v1/vector_stores'),
    route('POST', '/v1/vector_stores'),
    route('DELETE', '/v1/vector_stores'),
    route('GET', under),
    route('POST', under),
    route('DELETE', under),
  ]
}

async function answer(deps: CorporaDeps, exchange: Exchange, method: string, rest: string): Promise<void> {
  const path = rest === '' ? [] : rest.split('/')
  const shape = `${method} ${shapeOf(path)}`
  const handle = HANDLERS[shape]
  await answerCall(deps, exchange, { route: 'vector-stores', hasText: shape === WITH_TEXT }, (call) => {
    if (handle !== undefined) return handle({ ...call, deps, path })
    const message = `Unknown request URL: ${method} /v1/vector_stores.`
    throw new BodyFault(invalidRequest(message, null, 'unknown-url'))
  })
}

/** The call whose body is text to be stored. */
const WITH_TEXT = 'POST */documents'

// vs_1/files/file-1/content has the shape */files/*/content: every other word is an id.
const shapeOf = (path: readonly string[]): string => path.map((word, i) => (i % 2 === 0 ? '*' : word)).join('/')

const checks = {
  store: makeCheck(VectorStoreBody),
  file: makeCheck(VectorStoreFileBody),
  files: makeCheck(VectorStoreFilesBody),
  attributes: makeCheck(AttributesBody),
  documents: makeCheck(DocumentsBody),
  search: makeCheck(SearchBody),
} satisfies Record<string, (body: unknown) => Checked<unknown>>

async function bodyOf<K extends keyof typeof checks>(
  { exchange, deps, tenant }: Ask,
  kind: K,
): Promise<Extract<ReturnType<(typeof checks)[K]>, { kind: 'ok' }>['value']> {
  // Questions are text that models see. What is stored rests as it was uploaded, and is screened when it is read.
  const body =
    kind === 'search'
      ? await collectScreened(exchange, deps, { tenant, dialect: 'search', isUnserved: true })
      : await collectBody(exchange, deps.bodyBytesMax)
  if (body.kind === 'gone') throw new BodyFault(invalidRequest('The client has gone.', null))
  const json = body.kind === 'fault' ? body : readStorable(body.bytes)
  const checked = json.kind === 'fault' ? json : checks[kind](json.value)
  if (checked.kind === 'fault') throw new BodyFault(checked.fault)
  return checked.value as never
}

const STATUSES: readonly Document['status'][] = ['in-progress', 'completed', 'failed', 'cancelled']

const HANDLERS: Readonly<Record<string, Handle>> = {
  async 'GET '({ deps, tenantId, exchange }) {
    const { items, hasMore } = await deps.corpora.listCorpora(tenantId, pageAskOf(exchange.req.url))
    return wireList(items.map(wireCorpus), hasMore)
  },
  async 'POST '(ask) {
    const { corpora } = ask.deps
    const { name, metadata, file_ids: fileIds } = await bodyOf(ask, 'store')
    const files = await filesOf(
      ask,
      (fileIds ?? []).map((id) => ({ file_id: id })),
    )
    const corpus = await corpora.createCorpus(ask.tenantId, { name: name ?? undefined, metadata: metadata ?? {} })
    if (files.length === 0) return wireCorpus(corpus)
    await join(ask, corpus.id, files)
    return wireCorpus(await corpora.getCorpus(ask.tenantId, corpus.id))
  },
  /** Deletes everything of the caller's tenant. The tenant must be named, so that a forgotten id cannot do this. */
  async 'DELETE '({ deps, tenantId, exchange }) {
    const { words } = pageAskOf(exchange.req.url)
    if (words.get('everything_of') !== tenantId) {
      const message =
        "This deletes everything that is kept of your tenant. Confirm it with '?everything_of=' and the tenant's id."
      throw new BodyFault(invalidRequest(message, 'everything_of', 'missing-required-parameter'))
    }
    await deps.corpora.forgetTenant(tenantId)
    return { id: tenantId, object: 'tenant_data.deleted', deleted: true }
  },
  async 'GET *'({ deps, tenantId, path }) {
    return wireCorpus(await deps.corpora.getCorpus(tenantId, path[0] ?? ''))
  },
  async 'POST *'(ask) {
    const { name, metadata } = await bodyOf(ask, 'store')
    const change = { name: name ?? undefined, metadata: metadata ?? undefined }
    return wireCorpus(await ask.deps.corpora.updateCorpus(ask.tenantId, ask.path[0] ?? '', change))
  },
  async 'DELETE *'({ deps, tenantId, path }) {
    const { id } = await deps.corpora.getCorpus(tenantId, path[0] ?? '')
    await deps.corpora.deleteCorpus(tenantId, id)
    return { id, object: 'vector_store.deleted', deleted: true }
  },
  async 'POST */search'(ask) {
    const { query, max_num_results: count, filters, ranking_options: ranking } = await bodyOf(ask, 'search')
    const queries = typeof query === 'string' ? [query] : query
    const text = queries.join('\n')
    ask.hold(tokensOfBytes(Buffer.byteLength(text)))
    const passages = await ask.deps.corpora.search(ask.tenantId, ask.path[0] ?? '', {
      query: text,
      passagesMax: count ?? 10,
      filter: (filters ?? undefined) as DocumentFilter | undefined,
      scoreMin: ranking?.score_threshold ?? undefined,
    })
    return {
      object: 'vector_store.search_results.page',
      search_query: queries,
      data: (await screenedPassages(ask.deps.rules, ask.tenant, passages)).map(wireHit),
      has_more: false,
      next_page: null,
    }
  },
  async 'POST */documents'(ask) {
    const { documents } = await bodyOf(ask, 'documents')
    const drafts = documents.map(({ name, text, attributes }) => ({ name, text, attributes: attributes ?? {} }))
    ask.hold(drafts.reduce((sum, { text }) => sum + tokensOfBytes(Buffer.byteLength(text)), 0))
    const added = await ask.deps.corpora.addDocuments(ask.tenantId, ask.path[0] ?? '', drafts)
    return wireList(added.map(wireDocument), false)
  },
  async 'GET */files'({ deps, tenantId, path, exchange }) {
    const { words, ...page } = pageAskOf(exchange.req.url)
    const status = STATUSES.find((one) => one === words.get('filter')?.replace('_', '-'))
    const { items, hasMore } = await deps.corpora.listDocuments(tenantId, path[0] ?? '', { ...page, status })
    return wireList(items.map(wireDocument), hasMore)
  },
  async 'POST */files'(ask) {
    const files = await filesOf(ask, [await bodyOf(ask, 'file')])
    const [document] = await join(ask, ask.path[0] ?? '', files)
    return wireDocument(document as Document)
  },
  async 'GET */files/*'({ deps, tenantId, path }) {
    return wireDocument(await deps.corpora.getDocument(tenantId, path[0] ?? '', path[2] ?? ''))
  },
  async 'POST */files/*'(ask) {
    const { attributes } = await bodyOf(ask, 'attributes')
    const [corpus = '', , documentId = ''] = ask.path
    return wireDocument(await ask.deps.corpora.updateDocument(ask.tenantId, corpus, documentId, attributes ?? {}))
  },
  async 'DELETE */files/*'({ deps, tenantId, path }) {
    const id = path[2] ?? ''
    await deps.corpora.deleteDocument(tenantId, path[0] ?? '', id)
    return { id, object: 'vector_store.file.deleted', deleted: true }
  },
  async 'GET */files/*/content'({ deps, tenantId, path }) {
    const text = await deps.corpora.documentText(tenantId, path[0] ?? '', path[2] ?? '')
    return {
      object: 'vector_store.file_content.page',
      data: [{ type: 'text', text }],
      has_more: false,
      next_page: null,
    }
  },
  async 'POST */file_batches'(ask) {
    const { corpora } = ask.deps
    const { file_ids: fileIds, files, attributes } = await bodyOf(ask, 'files')
    const { id } = await corpora.getCorpus(ask.tenantId, ask.path[0] ?? '')
    const wanted = await filesOf(ask, files ?? (fileIds ?? []).map((fileId) => ({ file_id: fileId, attributes })))
    const documents = await join(ask, id, wanted)
    return wireFileBatch(`vsfb_${documents.map((document) => document.id).join('.')}`, id, documents)
  },
  async 'GET */file_batches/*'({ deps, tenantId, path }) {
    const [corpus = '', , batchId = ''] = path
    const ids = batchId
      .replace(/^vsfb_/, '')
      .split('.')
      .slice(0, BATCH_FILES_MAX)
    const documents = await deps.corpora.getDocuments(tenantId, corpus, ids)
    return wireFileBatch(batchId, documents[0]?.corpusId ?? corpus, documents)
  },
}

/**
 * Most files of a set. The id of a set contains the ids of its files, so that no set has to be stored; this many fit
 * into an address.
 */
const BATCH_FILES_MAX = 500

type Attributed = { readonly attributes?: DocumentDraft['attributes'] | null | undefined }

interface WantedFile extends Attributed {
  readonly file: StoredFile
}

/** The files of a call, with the tokens of all of them held: joining a corpus embeds them. */
async function filesOf(
  ask: Ask,
  files: ReadonlyArray<Attributed & { readonly file_id: string }>,
): Promise<readonly WantedFile[]> {
  const ids = files.map(({ file_id: id }) => id)
  const found = await ask.deps.corpora.getFiles(ask.tenantId, ids)
  ask.hold(found.reduce((sum, { bytes }) => sum + tokensOfBytes(bytes), 0))
  return found.map((file, i) => ({ file, attributes: files[i]?.attributes }))
}

/** Texts that are in memory at once: 500 files of the largest size would be 16 GB. */
const JOINED_BYTES_MAX = 4 * 1024 * 1024

/** Adds files to a corpus, a few megabytes at a time. */
async function join({ deps, tenantId }: Ask, corpus: string, files: readonly WantedFile[]): Promise<Document[]> {
  const documents: Document[] = []
  let drafts: DocumentDraft[] = []
  let bytes = 0
  const flush = async (): Promise<void> => {
    if (drafts.length > 0) documents.push(...(await deps.corpora.addDocuments(tenantId, corpus, drafts)))
    drafts = []
    bytes = 0
  }
  for (const { file, attributes } of files) {
    if (bytes + file.bytes > JOINED_BYTES_MAX) await flush()
    const text = await deps.corpora.fileText(tenantId, file.id)
    drafts.push({ id: file.id, name: file.name, text, attributes: attributes ?? {} })
    bytes += file.bytes
  }
  await flush()
  return documents
}
