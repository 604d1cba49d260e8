import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { missing, pathOf } from '../support/installed.ts'
import { ACME_KEY, authorization, MODEL, postJson, startPlatform, testTree } from '../support/start-platform.ts'

/** Money on the console: what it shows of budgets is what the ledger and the file say. */
const why = missing('chromium')
const ADMIN_KEY = 'sk-test-admin'

describe.skipIf(why !== undefined)(`money on the console${why === undefined ? '' : `: ${why}`}`, () => {
  it('holds budgets of orgs and tenants against the forecast, and saves them', { timeout: 180_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-console-money-'))
    const platform = await startPlatform(
      testTree({
        admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
        prices: [{ version: 'v1', models: [{ model: MODEL, requestUsd: 1 }] }],
        store: { path: join(folder, 'db') },
        ledger: { enabled: true },
        orgs: [{ id: 'holding', allowance: { budgets: [{ period: 'month', usd: 4_000_000 }] } }],
        tenants: [
          {
            id: 'acme',
            org: 'holding',
            slo: 'patient',
            allowance: { budgets: [{ period: 'month', usd: 3, kind: 'soft' }] },
            keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }],
          },
        ],
      }),
    )
    const usage = async (): Promise<number> => {
      const response = await fetch(`${platform.address}/admin/v1/usage?by=tenant`, {
        headers: authorization(ADMIN_KEY),
      })
      const { data } = (await response.json()) as { data?: ReadonlyArray<{ requests: number }> }
      return data?.[0]?.requests ?? 0
    }
    await eventually(
      'the ledger has two requests',
      async () => {
        if ((await usage()) >= 2) return true
        await postJson(`${platform.baseURL}/chat/completions`, {
          model: MODEL,
          max_tokens: 2,
          messages: [{ role: 'user', content: 'Hi.' }],
        })
        return false
      },
      60_000,
    )
    const spent = await eventually('the ledger rests', async () => {
      const before = await usage()
      return (
        before ===
          platform.entries.filter((entry) => entry.kind === 'settled' && entry.outcome === 'completed').length && before
      )
    })
    const browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'] })
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    await page.goto(`${platform.address}/console#money`)
    await page.fill('input[type=password]', ADMIN_KEY)
    await page.keyboard.press('Enter')
    const row = page.getByRole('row', { name: /^tenant acme/ })
    await row.waitFor()
    const cells = await row.getByRole('cell').allTextContents()
    expect(cells.slice(0, 5)).toEqual(['tenant', 'acme', 'soft', '$3.00', `$${spent.toFixed(2)}`])
    // Two dollars in an hour are far more in the rest of a month, or the month ends today.
    expect(Number(cells[5]!.slice(1))).toBeGreaterThanOrEqual(spent)
    expect(await page.getByRole('row', { name: /^org holding/ }).textContent()).toContain('enough at this rate')
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save budgets as CSV' }).click()
    const path = await (await saved).path()
    const lines = readFileSync(path, 'utf8').split('\r\n')
    expect(lines[0]).toBe('"level","id","kind","limit_usd","spent_usd","month_usd","used_up_at"')
    expect(lines.find((line) => line.includes('acme'))).toContain(
      `"tenant","acme","soft","3.000000","${spent.toFixed(6)}"`,
    )
    await browser.close()
    await platform.close()
    rmSync(folder, { recursive: true, force: true })
  })
})
