import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { missing, pathOf } from '../support/installed.ts'
import { sendRaw } from '../support/raw-http.ts'
import {
  ACME_KEY,
  authorization,
  MODEL,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** Pages of other origins: what a browser asks, and what it lets a page read. */
const why = missing('chromium')
const ADMIN_KEY = 'sk-test-admin'
const CHAT = '/v1/chat/completions'
const ORIGIN = 'https://app.example'

// A browser on a busy machine is slow to start; nothing here is about how fast it is.
vi.setConfig({ testTimeout: 90_000 })
afterAll(() => vi.resetConfig())

const platforms: TestPlatform[] = []
afterEach(async () => {
  for (const platform of platforms.splice(0)) await platform.close()
})

async function start(origins: readonly string[]): Promise<TestPlatform> {
  const admin = { keys: [{ id: 'root', hash: hashKey(ADMIN_KEY) }] }
  const platform = await startPlatform(testTree({ server: { cors: { origins } }, admin }))
  platforms.push(platform)
  return platform
}

const preflightOf = (path: string, origin = ORIGIN) => ({
  method: 'OPTIONS',
  path,
  headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
})

describe('cross-origin requests', () => {
  it('are answered for named origins: preflights, answers, errors and streams', async () => {
    const { address } = await start([ORIGIN])
    const preflight = await sendRaw(address, preflightOf(CHAT))
    expect(preflight).toMatchObject({ status: 204, text: '' })
    expect(preflight.headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': expect.stringContaining('POST') as string,
      'access-control-allow-headers': 'authorization',
      'access-control-max-age': '7200',
      vary: 'origin',
    })
    const ask = (body: object, key = ACME_KEY) =>
      sendRaw(address, {
        path: CHAT,
        headers: { origin: ORIGIN, 'content-type': 'application/json', ...authorization(key) },
        body: JSON.stringify(body),
      })
    const messages = [{ role: 'user', content: 'Hi' }]
    const answers = [
      await ask({ model: MODEL, messages, max_tokens: 3 }),
      await ask({ model: MODEL, messages, max_tokens: 3, stream: true }),
      await ask({ model: 'nothing', messages }),
      await ask({ model: MODEL, messages }, 'sk-wrong'),
      await sendRaw(address, { method: 'GET', path: '/nowhere', headers: { origin: ORIGIN } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 404, 401, 404])
    for (const { headers } of answers) {
      expect(headers['access-control-allow-origin']).toBe(ORIGIN)
      expect(headers['access-control-expose-headers']).toContain('x-request-id')
      expect(headers['x-request-id']).toMatch(/^req_/)
    }
  })

  it('are not answered for other origins, for the administration, or where no origin is named', async () => {
    const { address } = await start([ORIGIN])
    const other = await sendRaw(address, preflightOf(CHAT, 'https://evil.example'))
    expect(other.status).toBe(405)
    expect(other.headers).not.toHaveProperty('access-control-allow-origin')
    for (const path of ['/admin/v1/tenants', '/admin/v1/reload', '/metrics', '/admin/v1/nothing']) {
      const preflight = await sendRaw(address, preflightOf(path))
      expect([404, 405]).toContain(preflight.status)
      const headers = { origin: ORIGIN, ...authorization(ADMIN_KEY) }
      const asked = await sendRaw(address, { method: 'GET', path, headers })
      for (const answer of [preflight, asked])
        expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
    }
    const off = await start([])
    const unanswered = await sendRaw(off.address, preflightOf(CHAT))
    expect(unanswered.status).toBe(405)
    expect(unanswered.headers).not.toHaveProperty('vary')
  })
})

describe.skipIf(why !== undefined)(`a page in Chromium${why === undefined ? '' : ` (${why})`}`, () => {
  let browser: Browser
  let page: Page
  let site: Server
  let origin: string
  beforeAll(async () => {
    site = createServer((_req, res) => res.end('<!doctype html><title>app</title>'))
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
    browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'], timeout: 120_000 })
    page = await browser.newPage()
    await page.goto(origin)
  }, 150_000)
  afterAll(async () => {
    await browser?.close()
    site?.close()
  })

  /** What the page gets: the status, a header of ours and the text; or why there is none. */
  const ask = (url: string, key: string, body?: object) =>
    page.evaluate(
      async ({ url, key, body }) => {
        const headers = {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'x-stainless-os': 'Linux',
        }
        try {
          const init = body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) }
          const answer = await fetch(url, init)
          const text = await answer.text()
          return `${answer.status} ${answer.headers.get('x-request-id')?.slice(0, 4)} ${text}`
        } catch (error) {
          return String(error)
        }
      },
      { url, key, body },
    )

  it('streams an answer from the gateway, and gets nothing of the administration', async () => {
    const { address } = await start([origin])
    const body = { model: MODEL, stream: true, max_tokens: 3, messages: [{ role: 'user', content: 'Hi' }] }
    expect(await ask(address + CHAT, ACME_KEY, body)).toMatch(/^200 req_ data: .*\[DONE\]\s*$/s)
    expect(await ask(`${address}/v1/models`, ACME_KEY)).toMatch(/^200 req_ .*"sim"/s)
    expect(await ask(`${address}/admin/v1/tenants`, ADMIN_KEY)).toMatch(/Failed to fetch/)
    const off = await start([])
    expect(await ask(off.address + CHAT, ACME_KEY, body)).toMatch(/Failed to fetch/)
  })
})
