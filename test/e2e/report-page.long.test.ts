import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { renderPage } from '../../src/sim/report/page/render-page.ts'
import type { ReportSeries, SeriesWindow } from '../../src/sim/report/report-series.ts'
import { missing, pathOf } from '../support/installed.ts'

/** The report's page in a real browser. */
const why = missing('chromium')

// A browser on a busy machine is slow to start and to paint; nothing here is about how fast it is.
vi.setConfig({ testTimeout: 90_000 })
afterAll(() => vi.resetConfig())

const window = (i: number, overrides: Partial<SeriesWindow> = {}): SeriesWindow => ({
  atS: i * 5,
  arrivals: i < 20 ? 50 : 1_000,
  admitted: i < 20 ? 50 : 300,
  shed: i < 20 ? 0 : 700,
  completed: 50,
  failed: 0,
  queueDepth: i * 2,
  ttftP50: 200 + i,
  ttftP95: i === 30 ? Number.POSITIVE_INFINITY : 400 + 30 * i,
  itlP95: 20,
  utilisation: 0.7,
  kv: 0.3,
  rungs: i < 20 ? { full: 1 } : { full: 0.4, 'cap-output': 0.6 },
  ...overrides,
})

function seriesOf(overrides: Partial<ReportSeries> = {}): ReportSeries {
  const totals = {
    arrived: 20_000,
    completed: 9_000,
    shed: 11_000,
    failed: 3,
    goodputRatio: 0.44,
    goodputPerS: 45,
    outputTokensPerS: 9_800,
    ttftP95: 812,
    itlP95: 21,
    utilisation: 0.7,
  }
  return {
    title: 'a <spike> & "calm"',
    about: 'Made up for a test.',
    seed: 1,
    durationS: 200,
    windowS: 5,
    windows: Array.from({ length: 40 }, (_, i) => window(i)),
    tenants: ['acme', '<b>globex</b>', 'initech'].map((id, i) => ({
      id,
      weight: i + 1,
      served: 1_000 * (i + 1),
      share: (i + 1) / 6,
      arrived: 100,
      completed: 90,
      shed: 10,
      ttftP95: 300 * (i + 1),
      sloTtft: 800,
    })),
    expectations: [
      { what: 'first tokens are in time', holds: true, because: '400 (≤ 800)' },
      { what: 'nobody is refused', holds: false, because: '11,000, above 0' },
    ],
    totals,
    variants: [{ name: 'fifo', totals }],
    isLive: false,
    ...overrides,
  }
}

describe.skipIf(why !== undefined)(`the report page${why === undefined ? '' : ` (${why})`}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-page-'))
  let browser: Browser
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'], timeout: 120_000 })
  }, 150_000)
  afterAll(async () => {
    await browser.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function show(series: ReportSeries, width = 1_280, colorScheme: 'light' | 'dark' = 'light') {
    const path = join(folder, 'page.html')
    writeFileSync(path, renderPage(series))
    const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme })
    const complaints: string[] = []
    page.on('console', (message) => complaints.push(message.text()))
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('request', (request) => {
      if (!request.url().startsWith('file:')) complaints.push(request.url())
    })
    await page.goto(`file://${path}`)
    return { page, complaints }
  }

  interface Box {
    readonly width: number
    readonly height: number
    readonly shapes: number
    readonly shortest: number
  }

  /** As text: it runs in the browser, whose words this project's types do not know. */
  const boxesOf = (page: Page) =>
    page.evaluate<Box[]>(`[...document.querySelectorAll('.plot svg')].map((svg) => {
      const { width, height } = svg.getBoundingClientRect()
      const lengths = [...svg.querySelectorAll('.line,.fill')].map((path) => path.getTotalLength())
      return { width, height, shapes: lengths.length, shortest: Math.min(...lengths) }
    })`)

  it.each([
    [1_280, 'light'],
    [1_280, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const)('draws every plot without a complaint, %i wide, %s', async (width, scheme) => {
    const { page, complaints } = await show(seriesOf(), width, scheme)
    const plots = await boxesOf(page)
    expect(plots).toHaveLength(6)
    for (const plot of plots) {
      expect(plot.width).toBeGreaterThan(250)
      expect(plot.height).toBeGreaterThan(100)
      expect(plot.shapes).toBeGreaterThan(0)
      expect(plot.shortest).toBeGreaterThan(100)
    }
    // Nothing sticks out: a table scrolls inside its card.
    expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
    const picture = await page.screenshot({ fullPage: true })
    expect(picture.length).toBeGreaterThan(30_000)
    expect(picture.length).toBeLessThan(3_000_000)
    expect(complaints).toEqual([])
    await page.close()
  })

  it.each([390, 320])(
    'shows the tables of tenants, expectations and variants whole on a phone, %i wide',
    async (width) => {
      const [tenant] = seriesOf().tenants
      const tenants = Array.from({ length: 20 }, (_, i) => ({ ...tenant!, id: `${'long-name-'.repeat(6)}${i}` }))
      const { page } = await show(seriesOf({ tenants }), width)
      const hidden = await page.evaluate<string[]>(`['tenants', 'expectations', 'variants'].filter((id) => {
      const box = document.querySelector('#' + id + ' .scroll')
      return box.scrollWidth > box.clientWidth
    })`)
      expect(hidden).toEqual([])
      // There is no head on a phone, so every value but the first has the name of its column.
      const heads = await page.evaluate<string[][]>(`['tenants', 'variants'].map((id) =>
      [...document.querySelectorAll('#' + id + ' th')].map((head) => head.textContent))`)
      const labels = await page.evaluate<string[][]>(`['tenants', 'variants'].map((id) =>
      [...document.querySelectorAll('#' + id + ' tbody tr:last-child td')].map((cell) => cell.dataset.label))`)
      expect(labels).toEqual(heads.map((names) => names.map((name) => name || 'share')))
      await page.close()
    },
  )

  it('is dark by night', async () => {
    const ground = async (scheme: 'light' | 'dark') => {
      const { page } = await show(seriesOf(), 800, scheme)
      const color = await page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
      await page.close()
      return color
    }
    expect(await ground('light')).not.toBe(await ground('dark'))
  })

  it('says what is under the cursor, by mouse and by keyboard', async () => {
    const { page, complaints } = await show(seriesOf())
    await page.locator('#latency .canvas').hover({ position: { x: 5, y: 50 } })
    await page.locator('#latency .tip').waitFor({ state: 'visible' })
    expect(await page.locator('#latency .tip').innerText()).toMatch(/^00:00[\s\S]*p95 [\d.]+ ms[\s\S]*p50 200 ms/)
    expect(await page.evaluate<string>(`document.querySelector('#queue .cursor').style.display`)).toBe('block')
    await page.locator('#rungs .canvas').focus()
    await page.keyboard.press('ArrowRight')
    await page.locator('#rungs .tip').waitFor({ state: 'visible' })
    // A focus that scrolls the page under a resting mouse makes the browser say this, sooner or later.
    await page.evaluate(`document.querySelector('#latency .canvas').dispatchEvent(new PointerEvent('pointerleave'))`)
    expect(await page.locator('#rungs .tip').isVisible()).toBe(true)
    expect(complaints).toEqual([])
    await page.close()
  })

  it('shows names as text, never as markup', async () => {
    const { page } = await show(seriesOf())
    expect(await page.locator('h1').innerText()).toBe('a <spike> & "calm"')
    expect(await page.locator('#tenants').innerText()).toContain('<b>globex</b>')
    expect(await page.locator('#expectations').innerText()).toMatch(/✓ holds[\s\S]*✗ fails/)
    expect(await page.locator('.verdict').innerText()).toContain('1 of 2 expectations fail')
    await page.close()
  })

  it('shows a live run, an empty one and a long one', async () => {
    const live = await show(seriesOf({ isLive: true }))
    expect(await boxesOf(live.page)).toHaveLength(4)
    const empty = await show(seriesOf({ windows: [], tenants: [], expectations: [], variants: [] }))
    const long = await show(seriesOf({ windows: Array.from({ length: 20_000 }, (_, i) => window(i)) }))
    expect([...live.complaints, ...empty.complaints, ...long.complaints]).toEqual([])
    expect((await long.page.content()).length).toBeLessThan(1_000_000)
    for (const { page } of [live, empty, long]) await page.close()
  })
})
