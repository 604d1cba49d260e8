import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { missing, pathOf } from '../support/installed.ts'
import { MODEL, postJson, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** *What if* in a browser. A child of the lowest priority gets what a busy machine leaves, so this takes its time. */
const why = missing('chromium')
const ADMIN_KEY = 'sk-test-admin'
const REQUESTS = 12

vi.setConfig({ testTimeout: 400_000, hookTimeout: 120_000 })
afterAll(() => vi.resetConfig())

describe.skipIf(why !== undefined)(`what if${why === undefined ? '' : `: ${why}`}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-what-if-test-'))
  let platform: TestPlatform
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    platform = await startPlatform(
      testTree({
        admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
        record: { path: join(folder, 'recording.jsonl') },
      }),
    )
    for (let i = 0; i < REQUESTS; i++)
      await postJson(`${platform.baseURL}/chat/completions`, {
        model: MODEL,
        max_tokens: 4,
        messages: [{ role: 'user', content: `How high is weir ${i}?` }],
      }).then((response) => response.text())
    browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'] })
    page = await browser.newPage({ viewport: { width: 1_280, height: 900 } })
    await page.goto(`${platform.address}/console#what-if`)
    await page.fill('input[type=password]', ADMIN_KEY)
    await page.keyboard.press('Enter')
    await page.locator('form.what-if').waitFor()
  })
  afterAll(async () => {
    await browser.close()
    await platform.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function compared(): Promise<[number, number]> {
    await page.getByRole('button', { name: 'Compare' }).click()
    await page.getByRole('cell', { name: 'answered as promised' }).waitFor({ timeout: 300_000 })
    const asked = page.getByRole('row', { name: /^asked / })
    const [asIs = 0, changed = 0] = (await asked.getByRole('cell').allTextContents()).slice(1, 3).map(Number)
    return [asIs, changed]
  }

  it('compares a scenario with itself at half the rate, beside the server', async () => {
    await page.locator('form.what-if select').first().selectOption('unknown-engine-calm')
    await page.getByText('s of traffic.').waitFor()
    await page.getByLabel('Everybody’s rate').fill('0.5')
    const [asIs, changed] = await compared()
    expect(asIs).toBeGreaterThan(0)
    expect(changed / asIs).toBeLessThan(0.8)
    expect(await page.getByText('npx spillway simulate unknown-engine-calm --set load=0.5').count()).toBe(1)
  })

  it('plays what was recorded on the platform as it is, and with a tenant that asks twice as much', async () => {
    await page.locator('form.what-if select').first().selectOption('recorded-hour')
    await page.getByText('The last hour that was recorded').waitFor()
    await page.getByLabel('times', { exact: true }).fill('2')
    const [asIs, changed] = await compared()
    expect(asIs).toBe(REQUESTS)
    expect(changed).toBe(2 * REQUESTS)
  })
})
