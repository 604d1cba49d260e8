import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import {
  ACME_KEY,
  GLOBEX_KEY,
  MODEL,
  startPlatform,
  type TestPlatform,
  upstreamTree,
} from '../support/start-platform.ts'

/** The console over HTTP, as its pages and an attacker ask it; `console.long.test.ts` opens it in a browser. */
const ADMIN_KEY = 'sk-test-admin'

let upstream: FakeUpstream
let platform: TestPlatform
beforeAll(async () => {
  upstream = await FakeUpstream.start()
  platform = await startPlatform(
    upstreamTree([upstream.url], { admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] } }),
  )
})
afterAll(async () => {
  await platform.close()
  await upstream.close()
})

const at = (path: string): string => `${platform.address}/console${path}`
const write = (path: string, body: object, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(at(path), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })

async function cookieOf(key: string): Promise<string> {
  const response = await write('/session', { key })
  expect(response.status).toBe(200)
  return (response.headers.get('set-cookie') ?? '').split(';')[0] ?? ''
}

function ask(key: string): Promise<Response> {
  return fetch(`${platform.baseURL}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hello' }] }),
  })
}

describe('the console', () => {
  it('opens for keys that there are, with a cookie that no script and no other site can use', async () => {
    const good = await write('/session', { key: ADMIN_KEY })
    const cookie = good.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^spillway_console=[\w-]{40,}; Path=\/console; Max-Age=43200; HttpOnly; SameSite=Strict$/)
    expect(await good.json()).toEqual({ name: 'ada', role: 'operator', tenant: null })
    expect(cookie).not.toContain(ADMIN_KEY)
    expect(await (await write('/session', { key: ACME_KEY })).json()).toMatchObject({ role: 'tenant', tenant: 'acme' })
    const wrong = await write('/session', { key: 'sk-wrong' })
    expect(wrong.status).toBe(401)
    expect(wrong.headers.get('set-cookie')).toBeNull()
    expect((await write('/session', { key: 3 })).status).toBe(400)
  })

  it('shows nothing without a session, and ends one that is left', async () => {
    for (const path of ['/session', '/feed', '/history', '/whatif', '/whatif/burst', '/api/admin/v1/pools'])
      expect((await fetch(at(path))).status, path).toBe(401)
    const cookie = await cookieOf(ADMIN_KEY)
    expect((await fetch(at('/session'), { headers: { cookie } })).status).toBe(200)
    expect((await fetch(at('/session'), { method: 'DELETE', headers: { cookie } })).status).toBe(200)
    expect((await fetch(at('/session'), { headers: { cookie } })).status).toBe(401)
  })

  it('takes writes from its own pages only, and answers to names of loopback only', async () => {
    const cookie = await cookieOf(ADMIN_KEY)
    const drain = { state: 'draining', because: 'a page of somebody else' }
    const path = `/api/admin/v1/replicas/${encodeURIComponent(`${MODEL}-local-0`)}`
    for (const origin of ['http://evil.test', 'null', 'garbage']) {
      const forged = await write(path, drain, { cookie, origin })
      expect(forged.status, origin).toBe(400)
      expect((await write('/session', { key: ADMIN_KEY }, { origin })).status, origin).toBe(400)
    }
    expect(forgedHost(await rawGet('rebound.test'))).toBe(400)
    expect(forgedHost(await rawGet('localhost'))).toBe(200)
    const page = await fetch(at(''))
    expect(page.headers.get('access-control-allow-origin')).toBeNull()
    expect(page.headers.get('x-frame-options')).toBe('DENY')
    const policy = page.headers.get('content-security-policy') ?? ''
    expect(policy).toContain("script-src 'self'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
  })

  it('lets a tenant see itself and administer nothing', async () => {
    await ask(GLOBEX_KEY)
    const cookie = await cookieOf(ACME_KEY)
    for (const path of ['/api/admin/v1/pools', '/whatif', '/whatif/burst'])
      expect((await fetch(at(path), { headers: { cookie } })).status, path).toBe(403)
    expect((await write('/whatif', { scenario: 'burst', load: 2 }, { cookie })).status).toBe(403)
    expect(await (await fetch(at('/history'), { headers: { cookie } })).json()).toEqual([])
    const me = (await (await fetch(at('/api/v1/spillway/me'), { headers: { cookie } })).json()) as { tenant: string }
    expect(me.tenant).toBe('acme')
    const feed = await fetch(at('/feed'), { headers: { cookie } })
    const reader = feed.body!.getReader()
    const first = Buffer.from((await reader.read()).value!).toString()
    expect(first).toContain('event: snapshot')
    expect(first).toContain('"acme"')
    expect(first).not.toContain('globex')
    await reader.cancel()
  })

  it('has a place for operators however many feeds a tenant holds open', async () => {
    const cookie = await cookieOf(ACME_KEY)
    const leave = new AbortController()
    const open = (headers: Record<string, string>): Promise<Response> =>
      fetch(at('/feed'), { headers, signal: leave.signal })
    const statuses = (await Promise.all(Array.from({ length: 100 }, () => open({ cookie })))).map(
      ({ status }) => status,
    )
    expect(statuses.filter((status) => status === 200)).toHaveLength(10)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    expect((await open({ cookie: await cookieOf(GLOBEX_KEY) })).status).toBe(200)
    expect((await open({ cookie: await cookieOf(ADMIN_KEY) })).status).toBe(200)
    leave.abort()
    await eventually('the places are free again', async () => {
      const again = await fetch(at('/feed'), { headers: { cookie } })
      await again.body?.cancel()
      return again.status === 200
    })
  })

  it('compares a scenario only as far as it is asked to, and only for its own pages', async () => {
    const cookie = await cookieOf(ADMIN_KEY)
    expect(
      (await write('/whatif', { scenario: 'burst', load: 2 }, { cookie, origin: 'http://evil.test' })).status,
    ).toBe(400)
    for (const body of [
      {},
      { scenario: 'burst', replicas: 1_000 },
      { scenario: 'burst', load: -1 },
      { scenario: 'x', y: 1 },
    ])
      expect((await write('/whatif', body, { cookie })).status, JSON.stringify(body)).toBe(400)
    const unknown = await write('/whatif', { scenario: '../package', load: 2 }, { cookie })
    expect(await unknown.json()).toEqual({ kind: 'failed', problem: 'No shipped scenario has this name.' })
    expect((await fetch(at('/whatif/none'), { headers: { cookie } })).status).toBe(404)
  })

  it('serves the files of its list and nothing beside them', async () => {
    for (const name of ['/app.js', '/vendor/preact.js', '/vendor/uplot.js', '/console.css'])
      expect((await fetch(at(name))).status, name).toBe(200)
    for (const name of ['/../package.json', '/%2e%2e/package.json', '/vendor/../../package.json', '/nothing.js'])
      expect((await fetch(at(name))).status, name).toBe(404)
    const { headers } = await fetch(at('/app.js'))
    const again = await fetch(at('/app.js'), { headers: { 'if-none-match': headers.get('etag') ?? '' } })
    expect(again.status).toBe(304)
  })
})

const forgedHost = (answer: string): number => Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1])

/** `fetch` does not send a Host of one's choice. */
async function rawGet(host: string): Promise<string> {
  const { connect } = await import('node:net')
  const { port } = new URL(platform.address)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(`GET /console HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`)
    })
    let text = ''
    socket.on('data', (bytes) => (text += bytes.toString()))
    socket.on('end', () => resolve(text))
    socket.on('error', reject)
  })
}
