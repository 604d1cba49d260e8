import { expect } from 'vitest'
import { eventually } from './eventually.ts'
import { answers, type FakeUpstream } from './fake-upstream.ts'
import { authorization, MODEL, postJson, type TestPlatform } from './start-platform.ts'

/**
 * What administrators do with models and pools while the gateway runs. A journey takes what stands for a restart: the quick
 * test goes on with the same gateway, the long one starts another on the same store.
 */
export const ADMIN_KEY = 'sk-test-admin'

export type Restarted = (platform: TestPlatform) => Promise<TestPlatform>

interface Answer {
  readonly status: number
  readonly body: {
    readonly error?: { readonly message: string; readonly param: string | null; readonly code: string }
    readonly data?: ReadonlyArray<Record<string, unknown>>
    readonly revision?: number
  } & Record<string, unknown>
}

export async function ask(platform: TestPlatform, how: string, body?: unknown, key = ADMIN_KEY): Promise<Answer> {
  const [method = 'GET', path = ''] = how.split(' ')
  const response = await fetch(`${platform.address}/admin/v1/${path}`, {
    method,
    headers: { ...authorization(key), 'content-type': 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Answer['body'] }
}

export const chat = async (platform: TestPlatform, model: string): Promise<number> => {
  const messages = [{ role: 'user', content: 'Hello?' }]
  const response = await postJson(`${platform.baseURL}/chat/completions`, { model, messages, max_tokens: 4 })
  await response.text()
  return response.status
}

export const pool = (url: string, more: object = {}) => ({
  id: 'remote',
  backend: { kind: 'http-openai', timeoutMs: 5_000 },
  replicas: [url],
  ...more,
})

/**
 * A model with one pool: added, served, kept over a restart, changed to another engine, and removed. Answers what its history
 * names.
 */
export async function addAndRemoveModel(
  first: TestPlatform,
  [engine, second]: readonly [FakeUpstream, FakeUpstream],
  restarted: Restarted,
): Promise<ReadonlySet<unknown>> {
  let platform = first
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
  platform = await restarted(platform)
  await eventually('it is there again', async () => (await chat(platform, 'fresh')) === 200, 30_000)
  platform.journal.drain()
  expect(platform.entries.filter(({ kind }) => kind === 'fault-seen')).toEqual([])

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
  platform.journal.drain()
  expect(platform.entries).toContainEqual(expect.objectContaining({ what: 'pool-closing', name: 'remote', by: 'ada' }))
  return new Set(data?.map(({ name }) => name))
}

/** Every command of a rollout, with a restart in its midst and one after its end. Answers how many are in the history. */
export async function rollOutByHand(
  first: TestPlatform,
  engine: FakeUpstream,
  restarted: Restarted,
): Promise<number | undefined> {
  let platform = first
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
  platform = await restarted(platform)
  await eventually('it stands where it stood', async () => (await shown())['phase'] === 'canary', 30_000)
  expect(await shown()).toMatchObject({ percent: 25, isPaused: true, canary: `${MODEL}@2` })
  expect(await command('undo')).toMatchObject({ status: 200 })
  expect(await shown()).toMatchObject({ percent: 5 })
  expect(await command('roll-back')).toMatchObject({ status: 200 })
  expect(await shown()).toMatchObject({ phase: 'rolled-back', percent: 0 })
  platform = await restarted(platform)
  await eventually('it stays rolled back', async () => (await shown())['phase'] === 'rolled-back', 30_000)
  expect(await chat(platform, MODEL)).toBe(200)
  const { data } = (await ask(platform, `GET changes?name=${MODEL}`)).body
  return data?.filter(({ kind }) => kind === 'rollout').length
}
