import { afterEach, describe, expect, it } from 'vitest'
import type { Running } from '../../src/base/running.ts'
import { buildConfig } from '../../src/config/load.ts'
import { serveEngine } from '../../src/engine-server/engine-server.ts'
import { serveRetrieval } from '../../src/main/retrieval-server.ts'
import { eventually } from '../support/eventually.ts'
import { HELD_DELAY_MS, HeldClock } from '../support/held-clock.ts'
import { missing } from '../support/installed.ts'
import { freePort, startPostgres } from '../support/servers.ts'
import { authorization, MODEL, postJson, testTree } from '../support/start-platform.ts'

/** Every service says truly whether it is alive and whether it should get work; the gateway's own is tested with it. */

const RETRIEVAL_KEY = 'a-secret-of-sixteen-characters'
const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const configOf = (tree: Record<string, unknown>) =>
  buildConfig({ path: 'test.yaml', tree: testTree(tree), lineOf: () => undefined }, {})
const io = { out: () => {}, err: () => {} }

async function retrievalOn(store: object, clock?: HeldClock): Promise<Running> {
  const retrieval = { listenPort: 0, apiKey: RETRIEVAL_KEY }
  const config = configOf({ store, server: serverWith(clock), retrieval, logging: { level: 'silent' } })
  return closeOnce(await serveRetrieval(config, io, clock))
}

const serverWith = (clock: HeldClock | undefined) => (clock === undefined ? {} : { shutdownDelayMs: HELD_DELAY_MS })

async function ask({ address }: Running, path = '/health/ready'): Promise<{ status: number; because?: string }> {
  const response = await fetch(address + path)
  return { ...((await response.json()) as { because?: string }), status: response.status }
}

function closeOnce(running: Running): Running {
  let closed: Promise<void> | undefined
  const once = { ...running, close: () => (closed ??= running.close()) }
  closing.push(once.close)
  return once
}

describe('retrieval in a process of its own', () => {
  it('is alive and not ready while its database cannot be reached', async () => {
    const running = await retrievalOn({ url: `postgres://127.0.0.1:${await freePort()}/none` })
    expect((await ask(running, '/health')).status).toBe(200)
    expect(await ask(running)).toMatchObject({ status: 503, because: expect.stringContaining('cannot be reached') })
    expect(JSON.stringify(await ask(running))).not.toContain('127.0.0.1')
  })

  it('is ready when its embedded store is open, and says no before it stops', async () => {
    const clock = new HeldClock()
    const running = await retrievalOn({ path: 'memory:' }, clock)
    await eventually('it is ready', async () => (await ask(running)).status === 200, 60_000)
    const search = () =>
      fetch(`${running.address}/internal/corpora/getCorpus`, {
        method: 'POST',
        headers: { ...authorization(RETRIEVAL_KEY), 'content-type': 'application/json' },
        body: '["acme","none"]',
      })
    const closed = running.close()
    // It answers work that comes late, and says that no more should come.
    expect(await ask(running)).toMatchObject({ status: 503, because: 'shutting down' })
    expect((await search()).status).toBe(200)
    clock.release()
    await closed
    await expect(ask(running)).rejects.toThrow('fetch failed')
  }, 120_000)

  const why = missing('postgresql')
  it.skipIf(why !== undefined)(
    `follows its PostgreSQL${why === undefined ? '' : ` (${why})`}`,
    async () => {
      const postgres = await startPostgres()
      closing.push(() => postgres.close())
      const running = await retrievalOn({ url: postgres.url })
      await eventually('it is ready', async () => (await ask(running)).status === 200, 60_000)
      postgres.pause()
      await eventually('it is not ready', async () => (await ask(running)).because === 'the store does not answer')
      expect((await ask(running, '/health')).status).toBe(200)
      postgres.resume()
      await eventually('it is ready again', async () => (await ask(running)).status === 200, 60_000)
    },
    180_000,
  )
})

describe('a simulated engine', () => {
  const engineWith = async (loadSeconds: number, clock?: HeldClock): Promise<Running> => {
    const config = configOf({ server: serverWith(clock), engine: { listenPort: 0 } })
    return closeOnce(await serveEngine(config, io, { loadSeconds, exit: () => {} }, clock))
  }
  const chat = ({ address }: Running) =>
    postJson(`${address}/v1/chat/completions`, {
      model: MODEL,
      max_tokens: 2,
      messages: [{ role: 'user', content: 'Hi.' }],
    })

  it('is not ready while it loads its weights', async () => {
    const loading = await engineWith(3_600)
    expect(await ask(loading)).toMatchObject({ status: 503, because: 'the weights are being loaded' })
    expect(await ask(await engineWith(0))).toMatchObject({ status: 200, because: 'the weights are loaded' })
  })

  it('says no before it stops, and answers until then', async () => {
    const clock = new HeldClock()
    const engine = await engineWith(0, clock)
    const closed = engine.close()
    expect(await ask(engine)).toMatchObject({ status: 503, because: 'shutting down' })
    expect((await fetch(`${engine.address}/health`)).status).toBe(503)
    expect((await chat(engine)).status).toBe(200)
    clock.release()
    await closed
    await expect(ask(engine)).rejects.toThrow('fetch failed')
  })
})
