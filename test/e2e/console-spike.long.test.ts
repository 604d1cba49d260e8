import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { missing, pathOf } from '../support/installed.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** The console in a browser during a live spike of one tenant, 20 times its usual rate: what it shows is the journal's. */
const why = missing('chromium')
const ADMIN_KEY = 'sk-test-admin'
const CALM_PER_S = 2
const SPIKE = 20

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })
afterAll(() => vi.resetConfig())

describe.skipIf(why !== undefined)(`the console in a spike${why === undefined ? '' : `: ${why}`}`, () => {
  let platform: TestPlatform
  let browser: Browser
  let page: Page
  beforeAll(async () => {
    const tenant = (id: string, key: string) => ({
      id,
      slo: 'fast',
      contract: 'reject',
      keys: [{ id: `${id}-1`, hash: hashKey(key) }],
    })
    platform = await startPlatform(
      testTree({
        admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
        pools: [
          {
            model: MODEL,
            backend: { kind: 'simulated', profile: 'h100-llama-8b' },
            limit: { kind: 'fixed', concurrencyMax: 1 },
          },
        ],
        tenants: [tenant('acme', ACME_KEY), tenant('globex', GLOBEX_KEY)],
      }),
    )
    browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'] })
    page = await browser.newPage({ viewport: { width: 1_440, height: 900 } })
    await page.goto(`${platform.address}/console`)
    await page.fill('input[type=password]', ADMIN_KEY)
    await page.keyboard.press('Enter')
    await page.getByText('live', { exact: true }).waitFor()
  })
  afterAll(async () => {
    await browser.close()
    await platform.close()
  })

  const ask = (key: string): Promise<number> =>
    postJson(
      `${platform.baseURL}/chat/completions`,
      { model: MODEL, messages: [{ role: 'user', content: 'a weir' }], max_tokens: 400 },
      authorization(key),
    ).then(async (response) => {
      await response.text()
      return response.status
    })

  const ofJournal = (tenantId: string, isCounted: (outcome: string) => boolean): number =>
    platform.entries.filter(
      (entry) => entry.kind === 'settled' && entry.tenantId === tenantId && isCounted(entry.outcome),
    ).length
  const isShed = (outcome: string): boolean => ['rejected', 'expired', 'evicted'].includes(outcome)

  it('shows who floods, what waits and what is refused, as the journal has it', async () => {
    const sent: Promise<number>[] = []
    for (let second = 0; second < 6; second++) {
      const rate = second < 2 ? CALM_PER_S : CALM_PER_S * SPIKE
      for (let i = 0; i < rate; i++) sent.push(ask(GLOBEX_KEY))
      for (let i = 0; i < CALM_PER_S; i++) sent.push(ask(ACME_KEY))
      await page.waitForTimeout(1_000)
    }
    const statuses = await Promise.all(sent)
    expect(statuses).toContain(200)
    await eventually('the spike is refused in part', () => ofJournal('globex', isShed) > 0)
    const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name} .*Pause`) })
    await eventually(
      'the page counts what the journal has',
      async () => {
        const cells = await row('globex').getByRole('cell').allTextContents()
        return Number(cells[4]) === ofJournal('globex', isShed)
      },
      30_000,
    )
    // The quiet tenant is not the one who pays.
    expect(ofJournal('acme', (outcome) => outcome === 'completed')).toBeGreaterThan(0)
    expect(ofJournal('acme', isShed)).toBeLessThan(ofJournal('globex', isShed))
    const told = await page.locator('ol.events li').allTextContents()
    const reasons = platform.entries.flatMap((entry) =>
      entry.kind === 'settled' && isShed(entry.outcome) ? [entry.because] : [],
    )
    const refusals = told.filter((text) => text.includes('its story'))
    expect(refusals.length).toBeGreaterThan(0)
    for (const text of refusals)
      expect(
        reasons.some((because) => text.includes(because)),
        text,
      ).toBe(true)
  })
})
