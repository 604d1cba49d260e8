import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { RawSocket } from '../support/raw-http.ts'
import { ACME_KEY, GLOBEX_KEY, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'
import { type Called, call } from '../support/store-calls.ts'

/** Corpora and files have the same allowances as chat. */

const tenant = (id: string, key: string, allowance: object = {}): object => ({
  id,
  slo: 'patient',
  allowance,
  keys: [{ id: `${id}-1`, hash: hashKey(key) }],
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
