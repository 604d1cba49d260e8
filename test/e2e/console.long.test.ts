import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { overflowOf, violations } from '../support/axe.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream, fails } from '../support/fake-upstream.ts'
import { missing, pathOf } from '../support/installed.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'

/** The console in a real browser: what it shows, what its buttons do, and how it looks at each size. */
const why = missing('chromium')
const ADMIN_KEY = 'sk-test-admin'
const HOSTILE = '<img src=x onerror=alert(1)>'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 })
afterAll(() => vi.resetConfig())

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

function ask(): Promise<Response> {
  return fetch(`${platform.baseURL}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ACME_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hello' }] }),
  })
}

describe.skipIf(why !== undefined)(`the console in a browser${why === undefined ? '' : `: ${why}`}`, () => {
  let browser: Browser
  let page: Page
  const problems: string[] = []
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'] })
    page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    page.on('pageerror', (error) => problems.push(error.message))
    page.on('dialog', () => problems.push('a dialog'))
    page.on('request', (request) => {
      if (!request.url().startsWith(platform.address)) problems.push(`asked ${request.url()}`)
    })
    await page.goto(at(''))
    await page.fill('input[type=password]', ADMIN_KEY)
    await page.keyboard.press('Enter')
    await page.getByText('live', { exact: true }).waitFor()
  })
  afterAll(() => browser.close())

  it('shows requests as the journal has them, and refusals with their reasons', async () => {
    for (let i = 0; i < 4; i++) expect((await ask()).status).toBe(200)
    upstream.next(fails(400, { error: { message: `no ${HOSTILE}`, type: 'x', param: null, code: null } }))
    await ask()
    await page.getByRole('cell', { name: 'acme' }).first().waitFor()
    const { entries } = platform
    const failed = entries.findLast((entry) => entry.kind === 'settled' && entry.outcome === 'failed')
    expect(failed).toBeDefined()
    const because = failed!.kind === 'settled' ? failed!.because : ''
    const told = page.locator('ol.events li').filter({ hasText: because }).first()
    await told.waitFor()
    await told.getByRole('link').click()
    const { ticketId } = failed as { ticketId: string }
    await eventually('the page has every entry of the journal about it', async () => {
      await page.getByText('Every entry of the journal').waitFor()
      const story = platform.entries.filter((entry) => 'ticketId' in entry && entry.ticketId === ticketId)
      if (story.length > 0 && (await page.locator('table tbody tr').count()) === story.length) return true
      // An entry may have come after the page.
      await page.reload()
      return false
    })
    await page.goto(at('#now'))
  })

  it('drains a replica with a reason, by keyboard, and says so', async () => {
    const button = page.getByRole('button', { name: /^Drain / }).first()
    await button.focus()
    await page.keyboard.press('Enter')
    await page.getByLabel('Why?').fill('a test of the console')
    await page.keyboard.press('Enter')
    await page.getByText(/: done\.$/).waitFor()
    const change = platform.entries.findLast((entry) => entry.kind === 'fleet-changed')
    expect(change).toMatchObject({ what: 'replica-draining', by: 'ada', because: 'a test of the console' })
    await page.getByRole('button', { name: /^Use / }).first().click()
    await page.getByLabel('Why?').fill('back again')
    await page.getByRole('button', { name: 'Use it' }).click()
    await page
      .getByRole('button', { name: /^Drain / })
      .first()
      .waitFor()
  })

  it('pauses a tenant and lets admission only observe, with confirmation, and takes both back', async () => {
    const press = async (button: string, verb: string, why: string): Promise<void> => {
      await page.getByRole('button', { name: button, exact: true }).first().click()
      await page.getByLabel('Why?').fill(why)
      await page.getByRole('button', { name: verb, exact: true }).last().click()
      await page.getByText(`${button}: done.`).waitFor()
    }
    await press('Pause acme', 'Pause it', `loops ${HOSTILE}`)
    expect((await ask()).status).toBe(429)
    await page.getByText('acme is paused', { exact: true }).waitFor()
    expect(await page.locator('section.orders').textContent()).toContain(`loops ${HOSTILE}`)
    await press('Let acme go on', 'Go on', 'mended')
    expect((await ask()).status).toBe(200)
    await press('Observe only', 'Observe only', 'refusals look wrong')
    // The list of events says the same in other words, sooner or later.
    const shown = page.locator('section.orders')
    await shown.getByText('Admission observes only').waitFor()
    await press('Enforce again', 'Enforce', 'they were right')
    await shown.getByText('Admission enforces its verdicts.').waitFor()
    const orders = platform.entries.filter(({ kind }) => kind === 'tenant-paused' || kind === 'mode-changed')
    expect(orders).toMatchObject([
      { tenantId: 'acme', isPaused: true, by: 'ada' },
      { tenantId: 'acme', isPaused: false, by: 'ada' },
      { mode: 'observe', by: 'ada', because: 'refusals look wrong' },
      { mode: 'enforce', by: 'ada', because: 'they were right' },
    ])
  })

  it.each([
    ['wide, light', 1440, 'light'],
    ['middle, dark', 820, 'dark'],
    ['narrow, light', 390, 'light'],
  ] as const)('is accessible and fits: %s', async (_what, width, colorScheme) => {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 900 })
    for (const name of ['now', 'request', 'rollouts', 'money', 'what-if']) {
      await page.goto(at(`#${name}`))
      await page.locator('section').first().waitFor()
      expect(await overflowOf(page), `${name} at ${width}`).toBeLessThanOrEqual(0)
      expect(await violations(page), `${name} at ${width}`).toEqual([])
    }
  })

  it('ran no script of others, asked nobody else and threw nothing', () => {
    expect(problems).toEqual([])
  })
})
