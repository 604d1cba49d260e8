import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream, gated } from '../support/fake-upstream.ts'
import { ADMIN_KEY, addAndRemoveModel, ask, chat, pool, rollOutByHand } from '../support/registry-journeys.ts'
import { ACME_KEY, MODEL, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/**
 * Models and pools that are added while the gateway runs. The tests share a gateway and go on from each other: restarts and
 * other gateways are in `registry.long.test.ts`.
 */
const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

function start(storePath: string): Promise<TestPlatform> {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  return startPlatform(testTree({ admin, store: { path: storePath }, upstreams: { folders: ['/nowhere'] } }))
}

let platform: TestPlatform
beforeAll(async () => {
  platform = await start('memory:')
})
afterAll(() => platform?.close())

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'spillway-registry-'))
  closers.push(() => rmSync(path, { recursive: true, force: true }))
  return join(path, 'data')
}

async function upstream(): Promise<FakeUpstream> {
  const one = await FakeUpstream.start()
  closers.push(() => one.close())
  return one
}

describe('what is refused', () => {
  it('keys, rubbish, what is in the file, and what makes no sense, with the place and what to do', {
    timeout: 60_000,
  }, async () => {
    expect(await ask(platform, 'GET models', undefined, 'sk-wrong')).toMatchObject({
      status: 401,
      body: { error: { code: 'invalid_api_key' } },
    })
    expect(await ask(platform, 'GET models', undefined, ACME_KEY)).toMatchObject({
      status: 403,
      body: { error: { code: 'not_admin' } },
    })
    const because = 'a test'
    const model = { name: 'fresh' }
    const cases: ReadonlyArray<readonly [string, unknown, number, RegExp, string | null]> = [
      ['POST models', { model }, 400, /Missing required parameter: 'because'/, 'because'],
      ['POST models', { model, because: '  ' }, 400, /because/, 'because'],
      ['POST models', { because }, 400, /Nothing to put/, 'model'],
      ['POST models', '{"model":', 400, /not valid JSON/, null],
      ['POST models', '[]', 400, /JSON object/, null],
      ['POST models', { model: 7, because }, 400, /model/, 'model'],
      ['POST models', { model: {}, because }, 400, /needs a name/, 'pools'],
      ['POST models', { model: { name: 'a b' }, because }, 400, /letters, digits/, 'model.name'],
      [
        'POST models',
        { model: { ...model, contextTokenMax: 5 }, because },
        400,
        /Did you mean "contextTokensMax"/,
        'model.contextTokenMax',
      ],
      ['POST models', { model: { ...model, fallback: 'simm' }, because }, 400, /Did you mean "sim"/, 'model.fallback'],
      ['POST models', { model: { ...model, aliases: [MODEL] }, because }, 400, /already/, 'model.aliases[0]'],
      [
        'POST models',
        { releases: [{ model: 'simm', version: '2' }], because },
        400,
        /Did you mean "sim"/,
        'release.model',
      ],
      [
        'POST models',
        { model, pools: [{ id: 'p', backend: { kind: 'http-opnai' } }], because },
        400,
        /Did you mean "http-openai"/,
        'pool.backend.kind',
      ],
      [
        'POST models',
        { model, pools: [{ id: 'p', backend: { kind: 'http-openai' } }], because },
        400,
        /no address/,
        'pool',
      ],
      [
        'POST models',
        { model, pools: [pool('http://x/v1', { backend: { kind: 'http-openai', apiKey: 'sk-secret-123' } })], because },
        400,
        /apiKeyEnv/,
        'pool.backend.apiKey',
      ],
      [
        'POST models',
        {
          model,
          pools: [pool('http://x/v1', { backend: { kind: 'http-openai', apiKeyEnv: 'NO_SUCH_API_KEY' } })],
          because,
        },
        400,
        /no such variable/,
        'pool.backend.apiKeyEnv',
      ],
      [
        'POST models',
        {
          model,
          pools: [pool('http://x/v1', { backend: { kind: 'http-openai', tls: { caFile: '/nowhere/such/file' } } })],
          because,
        },
        400,
        /cannot be read/,
        'pool.backend',
      ],
      ['POST models', { model: { name: MODEL }, because }, 409, /configuration file/, 'model'],
      ['DELETE models/sim', { because }, 409, /configuration file/, 'model'],
      ['DELETE models/nobody', { because }, 404, /no model nobody/, 'model'],
      ['DELETE replicas/nobody', { because }, 404, /no replica/, 'replica'],
      ['POST replicas', { pool: `${MODEL}-local`, url: 'http://x/v1', because }, 409, /configuration file/, 'pool'],
      ['POST replicas', { pool: 'nobody', url: 'http://x/v1', because }, 404, /no pool nobody/, 'pool'],
      ['GET models/nobody', undefined, 404, /Known: sim/, 'model'],
    ]
    for (const [how, body, status, message, param] of cases) {
      const answer = await ask(platform, how, body)
      expect([how, JSON.stringify(body), answer.status, answer.body.error?.message]).toEqual([
        how,
        JSON.stringify(body),
        status,
        expect.stringMatching(message),
      ])
      expect(answer.body.error?.param, JSON.stringify(body)).toBe(param)
      expect(JSON.stringify(answer.body)).not.toContain('sk-secret')
    }
    expect((await ask(platform, 'GET changes')).body.data).toEqual([])
    expect(platform.platform.pools).toHaveLength(1)
    platform.journal.drain()
    expect(platform.entries.filter(({ kind }) => kind === 'fault-seen')).toEqual([])
  })
})

describe('the registry', () => {
  it('opens nothing until it is used', { timeout: 60_000 }, async () => {
    const storePath = folder()
    const platform = await start(storePath)
    closers.push(() => platform.close())
    expect((await ask(platform, 'GET models')).body.data).toMatchObject([{ name: MODEL, source: 'file' }])
    expect((await ask(platform, 'GET changes')).body.data).toEqual([])
    expect(await chat(platform, MODEL)).toBe(200)
    expect(existsSync(storePath)).toBe(false)
  })

  it('adds a model at once, and lets it go', { timeout: 120_000 }, async () => {
    const engines = [await upstream(), await upstream()] as const
    const named = await addAndRemoveModel(platform, engines, (same) => Promise.resolve(same))
    // The history of a model has its pools and their replicas too.
    expect(named).toEqual(new Set(['fresh', 'remote']))
  })

  it('adds a release and a pool to a model of the file, and drains a replica of it', { timeout: 60_000 }, async () => {
    const engine = await upstream()
    const put = {
      releases: [
        { model: MODEL, version: '2', artifact: 's3://weights/2', price: { inputPerMillion: 1, outputPerMillion: 2 } },
      ],
      pools: [pool(engine.url, { id: 'second', model: MODEL, release: '2' })],
      because: 'a new version',
    }
    expect(await ask(platform, 'POST models', put)).toMatchObject({ status: 200 })
    expect((await ask(platform, `GET models/${MODEL}`)).body['releases']).toMatchObject([
      { id: `${MODEL}@1`, source: 'file' },
      { id: `${MODEL}@2`, source: 'registry', artifact: 's3://weights/2' },
    ])
    const drain = { state: 'draining', because: 'its fan is loud' }
    expect(await ask(platform, `POST replicas/${MODEL}-local-0`, drain)).toMatchObject({ status: 200 })
    expect((await ask(platform, `GET pools/${MODEL}-local`)).body['replicas']).toMatchObject([{ health: 'draining' }])
    expect(await ask(platform, `POST replicas/${MODEL}-local-0`, { ...drain, state: 'ready' })).toMatchObject({
      status: 200,
    })
    expect(await ask(platform, `DELETE releases/${MODEL}@2`, { because: 'x' })).toMatchObject({ status: 409 })
    expect(await ask(platform, 'DELETE pools/second', { because: 'x' })).toMatchObject({ status: 200 })
    expect(await ask(platform, `DELETE releases/${MODEL}@2`, { because: 'x' })).toMatchObject({ status: 200 })
    expect(await chat(platform, MODEL)).toBe(200)
  })

  it('a pool that runs keeps what it is', { timeout: 60_000 }, async () => {
    const engine = await upstream()
    const because = 'a test'
    await ask(platform, 'POST models', { model: { name: 'fresh' }, pools: [pool(engine.url)], because })
    const changed = {
      pools: [pool(engine.url, { model: 'fresh', limit: { kind: 'fixed', concurrencyMax: 3 } })],
      because,
    }
    expect(await ask(platform, 'POST models', changed)).toMatchObject({
      status: 409,
      body: { error: { code: 'pool_is_running' } },
    })
    const { behaviour, openGate } = gated()
    engine.behaviour = behaviour
    await eventually('it is ready', () => platform.platform.turnstile.view().readyReplicas === 2)
    const running = chat(platform, 'fresh')
    await eventually('it answers', () => engine.openAnswers > 0)
    expect(await ask(platform, 'DELETE pools/remote', { because })).toMatchObject({ status: 200 })
    expect(await ask(platform, 'POST models', changed)).toMatchObject({
      status: 409,
      body: { error: { code: 'pool_is_closing' } },
    })
    openGate()
    expect(await running).toBe(200)
    await eventually('it has gone', () => platform.platform.pools.length === 1)
    expect(await ask(platform, 'POST models', changed)).toMatchObject({ status: 200 })
  })

  it('takes every command of a rollout', { timeout: 120_000 }, async () => {
    expect(await rollOutByHand(platform, await upstream(), (same) => Promise.resolve(same))).toBe(5)
  })
})
