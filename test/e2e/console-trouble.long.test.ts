import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { InsideEngine } from '../support/engine-process.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { missing, pathOf } from '../support/installed.ts'
import { startRedis } from '../support/servers.ts'
import { MODEL, postJson, startPlatform, type TestPlatform, type Tree, testTree } from '../support/start-platform.ts'

/** The console in a browser while something goes wrong: what it shows agrees with the journal. */
const why = missing('chromium') ?? missing('redis')
const ADMIN_KEY = 'sk-test-admin'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 90_000 })
afterAll(() => vi.resetConfig())

const closing: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
}, 60_000)

async function start(tree: Tree): Promise<TestPlatform> {
  const platform = await startPlatform(
    testTree({ admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }, ...tree }),
  )
  closing.push(() => platform.close())
  return platform
}

describe.skipIf(why !== undefined)(`the console in trouble${why === undefined ? '' : `: ${why}`}`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'] })
  })
  afterAll(() => browser.close())

  async function open(platform: TestPlatform, page: string): Promise<Page> {
    const opened = await browser.newPage({ viewport: { width: 1280, height: 900 } })
    closing.push(() => opened.close())
    await opened.goto(`${platform.address}/console#${page}`)
    await opened.fill('input[type=password]', ADMIN_KEY)
    await opened.keyboard.press('Enter')
    await opened.getByText('live', { exact: true }).waitFor()
    return opened
  }

  it('says in words why a bad canary is rolled back', async () => {
    const startEngine = async (...flags: readonly string[]): Promise<InsideEngine> => {
      const engine = await InsideEngine.start('--profile', 'h100-llama-8b', '--model', MODEL, ...flags)
      closing.push(() => engine.stop())
      return engine
    }
    const engines = [await startEngine(), await startEngine('--fail-rate', '1')]
    const platform = await start({
      models: [
        {
          name: MODEL,
          releases: [{ version: '1' }, { version: '2' }],
          rollout: { stable: '1', canary: '2', steps: [30] },
        },
      ],
      pools: engines.map(({ url }, i) => ({
        id: `pool-${i}`,
        model: MODEL,
        release: String(i + 1),
        backend: { kind: 'http-openai', upstreamModel: MODEL, timeoutMs: 20_000 },
        replicas: [`${url}/v1`],
        limit: { kind: 'fixed', concurrencyMax: 64 },
      })),
    })
    const page = await open(platform, 'rollouts')
    await page.getByText('The judge waits').waitFor()
    const change = () =>
      platform.entries.find((entry) => entry.kind === 'rollout-changed' && entry.change === 'rolled-back')
    let session = 0
    const ask = () =>
      postJson(
        `${platform.baseURL}/chat/completions`,
        { model: MODEL, messages: [{ role: 'user', content: 'a weir' }], max_tokens: 4 },
        { 'x-session-id': `s${session++}` },
      ).then((response) => response.text())
    const rolledBack = await eventually(
      'the judge rolls it back',
      async () => {
        await Promise.all(Array.from({ length: 8 }, ask))
        return change()
      },
      60_000,
    )
    expect(rolledBack).toMatchObject({ by: 'judge', to: `${MODEL}@2` })
    await page.getByText('it was rolled back').waitFor()
    const because = rolledBack.kind === 'rollout-changed' ? rolledBack.because : ''
    // Two of them would be an error here.
    await page.getByText(`The judge rolls it back: ${because}.`).waitFor()
    const row = page.getByRole('row').filter({ hasText: 'sure enough to roll back' }).first()
    await row.waitFor()
    const [question, , odds, limit, seen] = await row.getByRole('cell').allTextContents()
    expect(question).toMatch(/attempts fail\?$/)
    const number = (text: string | undefined): number => Number(/[\d,.]+/.exec(text ?? '')![0].replaceAll(',', ''))
    expect(number(odds)).toBeGreaterThanOrEqual(number(limit))
    expect(number(seen)).toBeGreaterThan(5)
    await page.goto(`${platform.address}/console#now`)
    await page.getByText(because).first().waitFor()
  })

  it('shows a lost engine and a lost Redis, and that they are back', async () => {
    const redis = await startRedis()
    closing.push(() => redis.kill())
    const upstream = await FakeUpstream.start()
    const platform = await start({
      pools: [
        {
          model: MODEL,
          backend: { kind: 'http-openai', timeoutMs: 5_000 },
          replicas: [upstream.url],
          limit: { kind: 'fixed', concurrencyMax: 64 },
        },
      ],
      sharing: { redis: { url: redis.url }, name: 'console' },
    })
    const page = await open(platform, 'now')
    const trouble = page.locator('section.trouble')
    // Without one PostgreSQL gateways that share limits have no leader: that stays true all the time.
    const others = trouble.locator('li').filter({ hasNotText: 'leader of duties' })
    await trouble.getByText('leader of duties').waitFor()
    await eventually('all else is in order', async () => (await others.count()) === 0)
    await upstream.close()
    await others.filter({ hasText: /^replica .*does not answer/ }).waitFor()
    // The page is a moment behind the journal, whose reason may have changed since.
    await eventually('the page has the reason of the journal', async () => {
      const lost = platform.entries.findLast((entry) => entry.kind === 'replica-reported' && !entry.isReady)
      return lost?.kind === 'replica-reported' && (await trouble.textContent())?.includes(lost.because)
    })
    await redis.kill()
    await trouble.getByText('shared limits').waitFor()
    await eventually('the page has the reason of the journal', async () => {
      const alone = platform.entries.findLast((entry) => entry.kind === 'sharing-changed')
      expect(alone).toMatchObject({ state: 'alone' })
      return alone?.kind === 'sharing-changed' && (await trouble.textContent())?.includes(alone.because)
    })
    const again = await startRedis({ port: redis.port })
    closing.push(() => again.kill())
    await page.getByText('shared limits: in order again').waitFor()
    await eventually('only the engine is away', async () => (await others.count()) === 1)
  })
})
