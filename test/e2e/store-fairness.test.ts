import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { RawSocket } from '../support/raw-http.ts'
import { startEmbedder } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** Corpora and files have the same allowances as chat, and one tenant's calls do not hold up another's. */

const tenant = (id: string, key: string, allowance: object = {}): object => ({
  id,
  slo: 'patient',
  allowance,
  keys: [{ id: `${id}-1`, hash: hashKey(key) }],
})

interface Called {
  readonly status: number
  readonly headers: Headers
  readonly body: { readonly error?: { readonly code: string; readonly message: string }; readonly id?: string }
}

async function call(
  platform: TestPlatform,
  method: string,
  path: string,
  body?: unknown,
  key = ACME_KEY,
): Promise<Called> {
  const response = await fetch(platform.baseURL + path, {
    method,
    headers: { 'content-type': 'application/json', ...authorization(key) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Called['body'] }
}

describe('a tenant that does nothing but search and join files', () => {
  let platform: TestPlatform
  let embedder: Awaited<ReturnType<typeof startEmbedder>>
  beforeAll(async () => {
    embedder = await startEmbedder()
    const retrieval = { embedder: { url: embedder.url, model: 'letters', dimensions: 26, batchWaitMs: 0 } }
    platform = await startPlatform(testTree({ retrieval }))
    expect((await call(platform, 'POST', '/vector_stores', { name: 'pumps' })).status).toBe(200)
    const documents = Array.from({ length: 20 }, (_, i) => ({ name: `d${i}`, text: `Pump ${i} runs at ${i}0 bar.` }))
    await call(platform, 'POST', '/vector_stores/pumps/documents', { documents })
    const form = new FormData()
    form.append('file', new File(['A text of its own.'], 'own.txt'))
    const uploaded = await fetch(`${platform.baseURL}/files`, { method: 'POST', headers: authorization(), body: form })
    const { id } = (await uploaded.json()) as { id: string }
    sameFile = Array.from({ length: 500 }, () => id)
    expect((await call(platform, 'POST', '/vector_stores', { name: 'theirs' }, GLOBEX_KEY)).status).toBe(200)
  }, 60_000)
  afterAll(async () => {
    await platform?.close()
    await embedder?.close()
  })

  /** A file 500 times: as many as one call may name. */
  let sameFile: readonly string[]

  it('holds up another tenant’s list call by a few of its answers at most', async () => {
    let isOver = false
    let answered = 0
    const attacker = async (n: number): Promise<void> => {
      for (let i = 0; !isOver; i++) {
        const { status } =
          n % 2 === 0
            ? await call(platform, 'POST', '/vector_stores/pumps/search', { query: `pump ${n} ${i} bar` })
            : await call(platform, 'POST', '/vector_stores/pumps/file_batches', { file_ids: sameFile })
        expect([200, 429]).toContain(status)
        answered++
      }
    }
    const attack = Promise.all(Array.from({ length: 8 }, (_, n) => attacker(n)))
    await eventually('the attack runs', () => answered >= 24, 30_000)
    const delays: number[] = []
    for (let i = 0; i < 9; i++) {
      const before = answered
      // A list call that is starved must not keep the attack going for ever.
      const patience = setTimeout(() => {
        isOver = true
      }, 10_000)
      const listed = await call(platform, 'GET', '/vector_stores', undefined, GLOBEX_KEY)
      clearTimeout(patience)
      expect(listed.status).toBe(200)
      delays.push(answered - before)
    }
    expect(isOver).toBe(false)
    isOver = true
    await attack
    // Each connection may be answered twice meanwhile: its present search, and the machine's own delays. A machine that
    // stands still for a moment holds up one call or two, an unfair queue all of them.
    expect(delays.toSorted((a, b) => a - b)[4], delays.join(' ')).toBeLessThanOrEqual(16)
  }, 60_000)
})

describe('allowances of corpora and files', () => {
  let platform: TestPlatform
  beforeAll(async () => {
    const tenants = [
      // One more request and one more token every minute: longer than any of this takes.
      tenant('acme', ACME_KEY, { requests: { perMinute: 1, burst: 6 }, tokens: { perMinute: 1, burst: 1_000 } }),
      tenant('globex', GLOBEX_KEY, { concurrencyMax: 1, tokens: { perMinute: 1, burst: 1_000 } }),
    ]
    platform = await startPlatform(testTree({ tenants }))
  }, 60_000)
  afterAll(() => platform?.close())

  it('are those of chat: requests and tokens, told in the same headers, and not moved by refusals', async () => {
    const left = ({ headers }: Called, kind: string): number => Number(headers.get(`x-ratelimit-remaining-${kind}`))
    const made = await call(platform, 'POST', '/vector_stores', { name: 'notes' })
    expect(made.status).toBe(200)
    expect(left(made, 'requests')).toBe(5)
    expect(left(made, 'tokens')).toBe(1_000)
    const text = 'word '.repeat(400)
    const added = await call(platform, 'POST', '/vector_stores/notes/documents', { documents: [{ name: 'a', text }] })
    expect(added.status).toBe(200)
    expect(left(added, 'tokens')).toBe(500)

    const more = await call(platform, 'POST', '/vector_stores/notes/documents', {
      documents: [{ name: 'b', text: 'other '.repeat(400) }],
    })
    expect(more).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_tokens' } } })
    expect(Number(more.headers.get('retry-after'))).toBeGreaterThan(0)
    const never = await call(platform, 'POST', '/vector_stores/notes/documents', {
      documents: [{ name: 'c', text: 'x'.repeat(8_000) }],
    })
    expect(never).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_tokens' } } })
    expect(never.headers.get('x-should-retry')).toBe('false')
    const broken = await call(platform, 'POST', '/vector_stores/notes/search', { quarry: 'x' })
    expect(broken.status).toBe(400)
    expect(left(broken, 'requests')).toBe(4)

    const unknown = await call(platform, 'GET', '/vector_stores/none')
    expect(unknown.status).toBe(404)
    expect(left(unknown, 'requests')).toBe(3)
    for (let i = 0; i < 3; i++) expect((await call(platform, 'GET', '/files')).status).toBe(200)
    const over = await call(platform, 'GET', '/vector_stores')
    expect(over).toMatchObject({ status: 429, body: { error: { code: 'rate_limit_requests' } } })
  })

  const upload = (bytes: number): RawSocket => {
    const socket = new RawSocket(platform.address)
    const head = [
      'POST /v1/files HTTP/1.1',
      'host: x',
      `authorization: Bearer ${GLOBEX_KEY}`,
      'content-type: multipart/form-data; boundary=b',
      `content-length: ${bytes}`,
      'expect: 100-continue',
    ]
    socket.send(`${head.join('\r\n')}\r\n\r\n`)
    return socket
  }

  it('refuse an upload that does not fit as soon as its purpose is known, before its file is read', async () => {
    const socket = upload(1_000_000)
    await socket.until('the server reads', (received) => received.includes('100 Continue'))
    const field = '--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nassistants\r\n'
    socket.send(`${field}--b\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n`)
    await socket.until('the refusal', (received) => received.includes('rate_limit_tokens'))
    expect(socket.received).toContain('HTTP/1.1 429')
    socket.destroy()
  })

  it('bound calls at once: a call that is still being read holds its place', async () => {
    const socket = upload(100)
    await socket.until('the server reads', (received) => received.includes('100 Continue'))
    const list = () => call(platform, 'GET', '/files', undefined, GLOBEX_KEY)
    expect(await list()).toMatchObject({ status: 429, body: { error: { code: 'concurrency_limit' } } })
    socket.destroy()
    await eventually('the place is free again', async () => (await list()).status === 200)
  })
})
