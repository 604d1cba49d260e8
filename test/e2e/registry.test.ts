import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream, gated } from '../support/fake-upstream.ts'
import { missing } from '../support/installed.ts'
import { startPostgres } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
} from '../support/start-platform.ts'

/** Models and pools that are added while the gateway runs, and are there again after a restart. */
const ADMIN_KEY = 'sk-test-admin'

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

async function stop(platform: TestPlatform): Promise<void> {
  closers.pop()
  await platform.close()
}

async function upstream(): Promise<FakeUpstream> {
  const one = await FakeUpstream.start()
  closers.push(() => one.close())
  return one
}

interface Answer {
  readonly status: number
  readonly body: {
    readonly error?: { readonly message: string; readonly param: string | null; readonly code: string }
    readonly data?: ReadonlyArray<Record<string, unknown>>
    readonly revision?: number
  } & Record<string, unknown>
}

async function ask(platform: TestPlatform, how: string, body?: unknown, key = ADMIN_KEY): Promise<Answer> {
  const [method = 'GET', path = ''] = how.split(' ')
  const response = await fetch(`${platform.address}/admin/v1/${path}`, {
    method,
    headers: { ...authorization(key), 'content-type': 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Answer['body'] }
}

const chat = async (platform: TestPlatform, model: string): Promise<number> => {
  const messages = [{ role: 'user', content: 'Hello?' }]
  const response = await postJson(`${platform.baseURL}/chat/completions`, { model, messages, max_tokens: 4 })
  await response.text()
  return response.status
}

const pool = (url: string, more: object = {}) => ({
  id: 'remote',
  backend: { kind: 'http-openai', timeoutMs: 5_000 },
  replicas: [url],
  ...more,
})

describe('the registry', () => {
  it('opens nothing until it is used', { timeout: 60_000 }, async () => {
    const storePath = folder()
    const platform = await start(storePath)
    expect((await ask(platform, 'GET models')).body.data).toMatchObject([{ name: MODEL, source: 'file' }])
    expect((await ask(platform, 'GET changes')).body.data).toEqual([])
    expect(await chat(platform, MODEL)).toBe(200)
    expect(existsSync(storePath)).toBe(false)
  })

  it('adds a model at once, keeps it over a restart, and lets it go', { timeout: 120_000 }, async () => {
    const storePath = folder()
    const engine = await upstream()
    let platform = await start(storePath)
    const because = 'the new one is here'
    expect(await chat(platform, 'fresh')).toBe(404)
    const put = { model: { name: 'fresh', aliases: ['newest'] }, pools: [pool(engine.url)], because }
    expect(await ask(platform, 'POST models', put)).toMatchObject({ status: 200, body: { revision: 1 } })
    await eventually('it is served', async () => (await chat(platform, 'newest')) === 200)
    const listed = (await (await fetch(`${platform.baseURL}/models`, { headers: authorization() })).json()) as {
      data: Array<{ id: string }>
    }
    expect(listed.data.map(({ id }) => id)).toContain('newest')
    expect((await ask(platform, 'GET models/fresh')).body).toMatchObject({
      name: 'fresh',
      source: 'registry',
      releases: [{ id: 'fresh@1' }],
      pools: [{ id: 'remote', replicas: [{ url: engine.url, health: expect.stringMatching(/warming|steady/) }] }],
    })
    await stop(platform)

    platform = await start(storePath)
    await eventually('it is there again', async () => (await chat(platform, 'fresh')) === 200, 30_000)
    platform.journal.drain()
    expect(platform.entries.filter(({ kind }) => kind === 'fault-seen')).toEqual([])

    const second = await upstream()
    engine.behaviour = answers({ everyMs: 100 })
    const running = chat(platform, 'fresh')
    await eventually('it answers', () => engine.openAnswers > 0)
    expect(await ask(platform, 'POST replicas', { pool: 'remote', url: second.url, because })).toMatchObject({
      status: 200,
    })
    const id = `remote-${new URL(engine.url).host}`
    expect(await ask(platform, `DELETE replicas/${encodeURIComponent(id)}`, { because })).toMatchObject({ status: 200 })
    expect(await running).toBe(200)
    await eventually(
      'the second answers',
      async () => (await chat(platform, 'fresh')) === 200 && second.seen.length > 0,
      30_000,
    )
    expect(await ask(platform, 'DELETE models/fresh', { because: 'no longer wanted' })).toMatchObject({ status: 200 })
    expect(await chat(platform, 'fresh')).toBe(404)
    await eventually('the pool is gone', () => platform.platform.pools.length === 1)
    const { data } = (await ask(platform, 'GET changes?name=fresh')).body
    const ofModel = data?.filter(({ name }) => name === 'fresh')
    expect(ofModel?.map(({ name, by, because: why }) => [name, by, why])).toEqual([
      ['fresh', 'ada', 'no longer wanted'],
      ['fresh', 'ada', because],
    ])
    // The history of a model has its pools and their replicas too.
    expect(new Set(data?.map(({ name }) => name))).toEqual(new Set(['fresh', 'remote']))
    platform.journal.drain()
    expect(platform.entries).toContainEqual(
      expect.objectContaining({ what: 'pool-closing', name: 'remote', by: 'ada' }),
    )
  })

  it('adds a release and a pool to a model of the file, and drains a replica of it', { timeout: 60_000 }, async () => {
    const engine = await upstream()
    const platform = await start('memory:')
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
})

describe('a rollout', () => {
  it('is started, paused, promoted, rolled back and undone by hand, and goes on after a restart', {
    timeout: 120_000,
  }, async () => {
    const storePath = folder()
    const engine = await upstream()
    let platform = await start(storePath)
    const because = 'a new version'
    const put = {
      releases: [{ model: MODEL, version: '2' }],
      pools: [pool(engine.url, { id: 'second', model: MODEL, release: '2' })],
      because,
    }
    expect(await ask(platform, 'POST models', put)).toMatchObject({ status: 200 })
    const command = (name: string, more: object = {}) =>
      ask(platform, `POST rollouts/${MODEL}`, { command: name, because, ...more })
    const shown = async () => (await ask(platform, `GET rollouts/${MODEL}`)).body
    expect(await shown()).toMatchObject({ phase: 'none', stable: `${MODEL}@1`, percent: 0 })
    expect(await command('start')).toMatchObject({ status: 400, body: { error: { param: 'release' } } })
    expect(await command('start', { release: '3' })).toMatchObject({
      status: 404,
      body: { error: { code: 'no_such_release' } },
    })
    expect(await command('pause')).toMatchObject({ status: 409 })
    expect(await command('dance')).toMatchObject({ status: 400, body: { error: { param: 'command' } } })
    await eventually('it is healthy', async () => (await command('start', { release: '2' })).status === 200)
    expect(await shown()).toMatchObject({ phase: 'canary', canary: `${MODEL}@2`, percent: 5 })
    expect(await command('promote')).toMatchObject({ status: 200 })
    expect(await command('pause')).toMatchObject({ status: 200 })
    expect(await shown()).toMatchObject({ percent: 25, isPaused: true })
    await stop(platform)

    platform = await start(storePath)
    await eventually('it stands where it stood', async () => (await shown())['phase'] === 'canary', 30_000)
    expect(await shown()).toMatchObject({ percent: 25, isPaused: true, canary: `${MODEL}@2` })
    expect(await command('undo')).toMatchObject({ status: 200 })
    expect(await shown()).toMatchObject({ percent: 5 })
    expect(await command('roll-back')).toMatchObject({ status: 200 })
    expect(await shown()).toMatchObject({ phase: 'rolled-back', percent: 0 })
    await stop(platform)

    platform = await start(storePath)
    await eventually('it stays rolled back', async () => (await shown())['phase'] === 'rolled-back', 30_000)
    expect(await chat(platform, MODEL)).toBe(200)
    const { data } = (await ask(platform, `GET changes?name=${MODEL}`)).body
    expect(data?.filter(({ kind }) => kind === 'rollout')).toHaveLength(5)
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

describe('what is refused', () => {
  it('keys, rubbish, what is in the file, and what makes no sense, with the place and what to do', {
    timeout: 60_000,
  }, async () => {
    const platform = await start('memory:', { upstreams: { folders: ['/nowhere'] } })
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

  it('a pool that runs keeps what it is', { timeout: 60_000 }, async () => {
    const engine = await upstream()
    const platform = await start('memory:')
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
})
