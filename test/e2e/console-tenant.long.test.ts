import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { overflowOf, violations } from '../support/axe.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream, fails } from '../support/fake-upstream.ts'
import { missing, pathOf } from '../support/installed.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  startPlatform,
  type TestPlatform,
  upstreamTree,
} from '../support/start-platform.ts'

/** The tenant's view of the console in every state that it has: accessible by axe, and as wide as its window. */
const why = missing('chromium')
const SIZES = [
  ['wide, light', 1440, 'light'],
  ['middle, dark', 820, 'dark'],
  ['narrow, light', 390, 'light'],
  ['narrow, dark', 390, 'dark'],
] as const

vi.setConfig({ testTimeout: 120_000, hookTimeout: 90_000 })
afterAll(() => vi.resetConfig())

describe.skipIf(why !== undefined)(`a tenant's view in a browser${why === undefined ? '' : `: ${why}`}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-console-tenant-'))
  let upstream: FakeUpstream
  let platform: TestPlatform
  let browser: Browser
  const pages: Page[] = []
  const problems: string[] = []

  beforeAll(async () => {
    upstream = await FakeUpstream.start()
    const budgets = [{ period: 'month', usd: 3, kind: 'soft' }]
    const tenants = [
      {
        id: 'acme',
        slo: 'patient',
        allowance: { requests: { perMinute: 1, burst: 4 }, concurrencyMax: 8, budgets },
        keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }],
      },
      // Nothing is ever asked with it.
      { id: 'globex', slo: 'patient', keys: [{ id: 'globex-1', hash: hashKey(GLOBEX_KEY) }] },
    ]
    platform = await startPlatform(
      upstreamTree([upstream.url], {
        tenants,
        prices: [{ version: 'v1', models: [{ model: MODEL, requestUsd: 1 }] }],
        store: { path: join(folder, 'db') },
        ledger: { enabled: true },
      }),
    )
    browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'] })
  })
  afterEach(async () => {
    for (const page of pages.splice(0)) await page.close()
  })
  afterAll(async () => {
    await browser?.close()
    await platform?.close()
    await upstream?.close()
    rmSync(folder, { recursive: true, force: true })
    expect(problems).toEqual([])
  })

  const at = (path = ''): string => `${platform.address}/console${path}`

  async function open(): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    pages.push(page)
    page.on('pageerror', (error) => problems.push(error.message))
    return page
  }

  async function enter(key: string): Promise<Page> {
    const page = await open()
    await page.goto(at())
    await page.fill('input[type=password]', key)
    await page.keyboard.press('Enter')
    await page.getByText('live', { exact: true }).waitFor()
    return page
  }

  /** What is wrong with the page as it is, in every size. */
  async function faultsOf(page: Page): Promise<string[]> {
    const faults: string[] = []
    for (const [size, width, colorScheme] of SIZES) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 900 })
      const overflow = await overflowOf(page)
      if (overflow > 0) faults.push(`${size}: ${overflow} px too wide`)
      for (const violation of await violations(page)) faults.push(`${size}: ${violation}`)
    }
    return faults
  }

  const ask = (): Promise<Response> =>
    fetch(`${platform.baseURL}/chat/completions`, {
      method: 'POST',
      headers: { ...authorization(ACME_KEY), 'content-type': 'application/json' },
      body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hello' }] }),
    })

  it('before a key, and after a wrong one', async () => {
    const page = await open()
    await page.goto(at())
    await page.getByRole('button', { name: 'Look' }).waitFor()
    expect(await faultsOf(page), 'a key is asked for').toEqual([])
    await page.fill('input[type=password]', 'sk-wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    expect(await faultsOf(page), 'a wrong key').toEqual([])
  })

  it('while it is asked who looks, and before the first second', async () => {
    const page = await open()
    await page.route('**/console/session', () => {})
    await page.goto(at())
    await page.getByText('One moment').waitFor()
    expect(await faultsOf(page), 'one moment').toEqual([])
    await page.unroute('**/console/session')
    await page.route('**/console/feed', () => {})
    await page.goto(at())
    await page.fill('input[type=password]', GLOBEX_KEY)
    await page.keyboard.press('Enter')
    await page.getByText('Waiting for the first second').waitFor()
    expect(await faultsOf(page), 'before the first second').toEqual([])
  })

  it('of a tenant that has asked nothing and has no limit', async () => {
    const page = await enter(GLOBEX_KEY)
    await page.getByText('Nothing was refused, and nothing changed.').waitFor()
    await page.getByText('First token within').waitFor()
    expect(await faultsOf(page), 'quiet').toEqual([])
    await page.goto(at('#money'))
    await page.getByText('The month ahead').waitFor()
    expect(await faultsOf(page), 'no money').toEqual([])
  })

  it('of a tenant that is answered, fails, and is refused', async () => {
    expect((await ask()).status).toBe(200)
    upstream.next(fails(400, { error: { message: 'no', type: 'x', param: null, code: null } }))
    await ask()
    const statuses = await Promise.all(Array.from({ length: 6 }, async () => (await ask()).status))
    expect(statuses).toContain(429)
    const page = await enter(ACME_KEY)
    await page.getByRole('link', { name: 'its story' }).first().waitFor()
    await page.locator('td', { hasText: /limit/ }).first().waitFor()
    expect(await faultsOf(page), 'refused').toEqual([])
    await page.getByRole('link', { name: 'its story' }).first().click()
    await page.getByText('Every entry of the journal').waitFor()
    expect(await faultsOf(page), 'the story of a refusal').toEqual([])
    const { entries } = platform
    const done = entries.findLast((entry) => entry.kind === 'settled' && entry.outcome === 'completed')
    await page.goto(at(`#request/${(done as { ticketId: string }).ticketId}`))
    await page.getByText('attempt 1').waitFor()
    expect(await faultsOf(page), 'the story of an answer').toEqual([])
    await page.getByLabel('Its id').fill('req_of_nobody')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    expect(await faultsOf(page), 'no such request').toEqual([])
  })

  it('of what it has spent', async () => {
    const page = await enter(ACME_KEY)
    await eventually(
      'the ledger has something',
      async () => {
        await page.goto(at('#now'))
        await page.goto(at('#money'))
        await page.getByText('The month ahead').waitFor()
        return (await page.getByRole('cell', { name: 'acme' }).count()) > 0
      },
      60_000,
    )
    await page.getByText('The soft budget of').waitFor()
    expect(await faultsOf(page), 'money').toEqual([])
    await page.getByLabel('By').selectOption('model')
    await page.getByRole('cell', { name: MODEL }).first().waitFor()
    expect(await faultsOf(page), 'money by model').toEqual([])
  })

  it('of a server that does not answer', async () => {
    const page = await enter(ACME_KEY)
    const fail = { status: 503, contentType: 'application/json', body: '{"error":{"message":"The store is away."}}' }
    await page.route('**/console/api/**', (route) => route.fulfill(fail))
    await page.route('**/console/feed', (route) => route.abort())
    await page.getByRole('alert').waitFor()
    expect(await faultsOf(page), 'a problem').toEqual([])
    await page.reload()
    await page.getByText('no connection').waitFor()
    expect(await faultsOf(page), 'no connection').toEqual([])
    await page.goto(at('#money'))
    await page.getByRole('alert').waitFor()
    expect(await faultsOf(page), 'no money to be had').toEqual([])
  })
})
