import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startEmbedder } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/**
 * Law L13: acme plants a secret in a corpus, a file, a stored answer and the caches; globex, who knows every id and name there is, tries
 * every endpoint. Nothing it gets may hold the secret, and nothing it does may change what acme has.
 */
const SECRET = 'the vault opens with 4711 turtles'

let platform: TestPlatform
let embedder: Awaited<ReturnType<typeof startEmbedder>>
let corpusId: string
let documentId: string
let fileId: string
let storedId: string

beforeAll(async () => {
  embedder = await startEmbedder()
  const retrieval = {
    budgetMs: 5_000,
    embedder: { url: embedder.url, model: 'letters', dimensions: 26 },
  }
  const tree = testTree({ retrieval, logging: { level: 'silent' } })
  const tenants = (tree['tenants'] as object[]).map((tenant) => ({ ...tenant, storing: {} }))
  platform = await startPlatform({ ...tree, tenants })
  corpusId = (await call(ACME_KEY, 'POST', '/vector_stores', { name: 'vault' })).json['id'] as string
  const added = await call(ACME_KEY, 'POST', '/vector_stores/vault/documents', {
    documents: [{ name: 'v', text: SECRET }],
  })
  documentId = (added.json['data'] as Array<{ id: string }>)[0]!.id
  const form = new FormData()
  form.set('file', new File([SECRET], 'secret.txt'))
  form.set('purpose', 'assistants')
  const uploaded = await fetch(`${platform.baseURL}/files`, {
    method: 'POST',
    headers: authorization(ACME_KEY),
    body: form,
  })
  fileId = ((await uploaded.json()) as { id: string }).id
  const kept = { model: MODEL, messages: [{ role: 'user', content: SECRET }], max_tokens: 60, store: true }
  storedId = (await call(ACME_KEY, 'POST', '/chat/completions', { ...kept, metadata: { vault: '4711' } })).json[
    'id'
  ] as string
  expect((await call(ACME_KEY, 'GET', `/chat/completions/${storedId}/messages`)).text).toContain(SECRET)
  await eventually(
    'indexed',
    async () => (await call(ACME_KEY, 'GET', '/vector_stores/vault')).json['status'] === 'completed',
    30_000,
  )
}, 60_000)
afterAll(async () => {
  await platform?.close()
  await embedder?.close()
})

async function call(key: string, method: string, path: string, body?: unknown) {
  const headers = { 'content-type': 'application/json', ...authorization(key) }
  const response = await fetch(platform.baseURL + path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    text,
    json: JSON.parse(text.startsWith('{') ? text : '{}') as Record<string, unknown>,
  }
}

const QUESTION = 'How many turtles does the vault open with?'

function chat(key: string, corpus: string) {
  return call(key, 'POST', '/chat/completions', {
    model: MODEL,
    messages: [{ role: 'user', content: QUESTION }],
    max_tokens: 60,
    spillway: { retrieval: { corpus, include_passages: true } },
  })
}

it('nothing that globex tries shows or changes what acme has', async () => {
  // Into the caches first, and out of them.
  expect((await chat(ACME_KEY, 'vault')).text).toContain('4711')
  expect((await chat(ACME_KEY, 'vault')).text).toContain('4711')
  const attempts: Array<readonly [string, string, unknown?]> = [
    ['GET', '/vector_stores?limit=100'],
    ['GET', `/vector_stores?after=${corpusId}`],
    ['GET', '/files?limit=100'],
    ['GET', `/files/${fileId}`],
    ['GET', `/files/${fileId}/content`],
    ['DELETE', `/files/${fileId}`],
    ['POST', '/vector_stores', { name: 'stolen', file_ids: [fileId] }],
    ['DELETE', '/vector_stores?everything_of=acme'],
  ]
  attempts.push(
    ['GET', '/chat/completions?limit=100'],
    ['GET', `/chat/completions?after=${storedId}&limit=-1&order=desc`],
    ['GET', "/chat/completions?metadata[vault]=4711&metadata[x'%20or%20true--]=%00&model=%00"],
  )
  for (const id of [storedId, `${storedId}%00`, `acme%2F${storedId}`, '%00', "'%20or%201=1--", '%', '..%2F..']) {
    attempts.push(
      ['GET', `/chat/completions/${id}`],
      ['GET', `/chat/completions/${id}/messages?after=${id}-0`],
      ['GET', `/chat/completions/${id}/messages`],
      ['POST', `/chat/completions/${id}`, { metadata: { owned: 'yes' } }],
      ['DELETE', `/chat/completions/${id}`],
    )
  }
  for (const name of [corpusId, 'vault', encodeURIComponent(`acme/${corpusId}`), '%00', "' or 1=1 --"]) {
    const at = `/vector_stores/${encodeURIComponent(decodeURIComponent(name))}`
    attempts.push(
      ['GET', at],
      ['POST', at, { name: 'mine now' }],
      ['POST', `${at}/search`, { query: QUESTION }],
      ['POST', `${at}/search`, { query: QUESTION, filters: { type: 'ne', key: "x' or true --", value: 'y' } }],
      ['POST', `${at}/documents`, { documents: [{ name: 'planted', text: 'planted' }] }],
      ['GET', `${at}/files`],
      ['POST', `${at}/files`, { file_id: fileId }],
      ['GET', `${at}/files/${documentId}`],
      ['POST', `${at}/files/${documentId}`, { attributes: { owned: true } }],
      ['GET', `${at}/files/${documentId}/content`],
      ['DELETE', `${at}/files/${documentId}`],
      ['POST', `${at}/file_batches`, { file_ids: [fileId] }],
      ['GET', `${at}/file_batches/vsfb_${documentId}`],
      ['DELETE', at],
    )
  }
  for (const [method, path, body] of attempts) {
    const { text, status } = await call(GLOBEX_KEY, method, path, body)
    expect(text, `${method} ${path}`).not.toContain('4711')
    expect(status, `${method} ${path}`).toBeLessThan(500)
  }
  for (const corpus of [corpusId, 'vault', `${corpusId}\n`, `acme\n${corpusId}`]) {
    const { text, status } = await chat(GLOBEX_KEY, corpus)
    expect(status).toBe(404)
    expect(text).not.toContain('4711')
  }
  // The same name and the same question, in a corpus of its own: another cache entry, another index.
  await call(GLOBEX_KEY, 'POST', '/vector_stores', { name: 'vault' })
  expect((await chat(GLOBEX_KEY, 'vault')).text).not.toContain('4711')
  expect((await call(GLOBEX_KEY, 'POST', '/vector_stores/vault/search', { query: QUESTION })).text).not.toContain(
    '4711',
  )

  const corpus = await call(ACME_KEY, 'GET', `/vector_stores/${corpusId}`)
  expect(corpus.json).toMatchObject({ name: 'vault', file_counts: { total: 1, completed: 1 } })
  expect((await call(ACME_KEY, 'GET', `/vector_stores/vault/files/${documentId}`)).json).toMatchObject({
    attributes: {},
  })
  expect((await call(ACME_KEY, 'GET', `/files/${fileId}/content`)).text).toBe(SECRET)
  const stored = await call(ACME_KEY, 'GET', '/chat/completions')
  expect(stored.json['data']).toMatchObject([{ id: storedId, metadata: { vault: '4711' } }])
}, 60_000)

it('nobody gets in without a key', async () => {
  for (const path of [
    '/vector_stores',
    `/vector_stores/${corpusId}/files`,
    '/files',
    `/files/${fileId}/content`,
    `/chat/completions/${storedId}`,
  ]) {
    expect((await fetch(platform.baseURL + path)).status).toBe(401)
    expect((await fetch(platform.baseURL + path, { headers: authorization('sk-wrong') })).status).toBe(401)
  }
})
