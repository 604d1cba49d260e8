import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { missing } from '../support/installed.ts'
import {
  ADMIN_KEY,
  addAndRemoveModel,
  ask,
  chat,
  pool,
  type Restarted,
  rollOutByHand,
} from '../support/registry-journeys.ts'
import { startPostgres } from '../support/servers.ts'
import { startPlatform, type TestPlatform, type Tree, testTree } from '../support/start-platform.ts'

/** Models and pools that are added while the gateway runs are there again after a restart, and at other gateways. */
const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'spillway-registry-'))
  closers.push(() => rmSync(path, { recursive: true, force: true }))
  return join(path, 'data')
}

async function start(storePath: string, more: Tree = {}): Promise<TestPlatform> {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  const platform = await startPlatform(testTree({ admin, store: { path: storePath }, ...more }))
  closers.push(() => platform.close())
  return platform
}

/** Closes the gateway that was started last, and starts the next one in its folder. */
const restartedOn =
  (storePath: string): Restarted =>
  async (platform) => {
    closers.pop()
    await platform.close()
    return start(storePath)
  }

async function upstream(): Promise<FakeUpstream> {
  const one = await FakeUpstream.start()
  closers.push(() => one.close())
  return one
}

describe('the registry', () => {
  it('keeps a model over a restart until it is removed', { timeout: 120_000 }, async () => {
    const storePath = folder()
    const engines = [await upstream(), await upstream()] as const
    const named = await addAndRemoveModel(await start(storePath), engines, restartedOn(storePath))
    // The history of a model has its pools and their replicas too.
    expect(named).toEqual(new Set(['fresh', 'remote']))
  })

  it('keeps a rollout that goes on by hand', { timeout: 120_000 }, async () => {
    const storePath = folder()
    const engine = await upstream()
    expect(await rollOutByHand(await start(storePath), engine, restartedOn(storePath))).toBe(5)
  })
})

describe('two gateways on one PostgreSQL', () => {
  const why = missing('postgresql')
  it.skipIf(why !== undefined)('see each other\u2019s changes, and agree', { timeout: 120_000 }, async () => {
    const postgres = await startPostgres()
    closers.push(() => postgres.close())
    const engine = await upstream()
    const store = { url: postgres.url }
    const [first, second] = [await start('unused', { store }), await start('unused', { store })]
    const put = (name: string) => ({
      model: { name },
      pools: [pool(engine.url, { id: `${name}-pool` })],
      because: 'a test',
    })
    expect(await ask(first, 'POST models', put('one'))).toMatchObject({ status: 200 })
    await eventually('the other serves it too', async () => (await chat(second, 'one')) === 200)
    // At the same time: both are kept, one after the other.
    const both = await Promise.all([ask(first, 'POST models', put('two')), ask(second, 'POST models', put('three'))])
    expect(both.map(({ status }) => status)).toEqual([200, 200])
    for (const platform of [first, second])
      for (const model of ['two', 'three'])
        await eventually(`${model} is served`, async () => (await chat(platform, model)) === 200)
    expect((await ask(second, 'GET changes')).body.data).toEqual((await ask(first, 'GET changes')).body.data)

    await ask(first, 'DELETE models/one', { because: 'a test' })
    await eventually('the other forgets it too', async () => (await chat(second, 'one')) === 404)
    expect(await chat(second, 'two')).toBe(200)
  })
})
