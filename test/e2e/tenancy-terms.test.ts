import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { authorization, postJson, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** Terms of run-time keys and tenants where they meet the rest: the ladder's smaller model, and the answer cache. */
const ADMIN_KEY = 'sk-test-admin'
let platform: TestPlatform

beforeAll(async () => {
  const gone = await FakeUpstream.start()
  const { url } = gone
  await gone.close()
  const tree = testTree({
    admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
    models: [{ name: 'big', fallback: 'small' }, { name: 'small' }],
    pools: [
      { model: 'big', backend: { kind: 'http-openai', timeoutMs: 5_000 }, replicas: [url] },
      { model: 'small', backend: { kind: 'simulated', profile: 'h100-llama-8b' } },
    ],
  })
  platform = await startPlatform(tree)
  expect((await admin('POST', 'orgs', { id: 'initech', slos: ['patient'] })).status).toBe(200)
  expect((await admin('POST', 'tenants', { id: 'store', orgId: 'initech' })).status).toBe(200)
}, 60_000)
afterAll(() => platform?.close())

async function admin(method: string, path: string, body: object): Promise<{ status: number; body: Body }> {
  const response = await fetch(`${platform.address}/admin/v1/${path}`, {
    method,
    headers: { ...authorization(ADMIN_KEY), 'content-type': 'application/json' },
    body: JSON.stringify({ because: 'a test', ...body }),
  })
  return { status: response.status, body: (await response.json()) as Body }
}

interface Body {
  readonly secret?: string
  readonly record?: { readonly answerCache?: object }
  readonly model?: string
  readonly error?: { readonly code: string; readonly param: string; readonly spillway?: object }
}

async function ask(key: string): Promise<{ status: number; rung: string | null; body: Body }> {
  const body = { model: 'big', messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 1 }
  const response = await postJson(`${platform.address}/v1/chat/completions`, body, authorization(key))
  return {
    status: response.status,
    rung: response.headers.get('x-spillway-rung'),
    body: (await response.json()) as Body,
  }
}

it('never answers with a smaller model that the key may not use', { timeout: 60_000 }, async () => {
  const keyOf = async (id: string, models: string[]): Promise<string> =>
    (await admin('POST', 'keys', { id, tenantId: 'store', terms: { models } })).body.secret ?? ''
  const both = await keyOf('both', ['big', 'small'])
  const one = await keyOf('one', ['big'])
  // The replica of the big model is not there: who may, is answered by the small one.
  await expect.poll(async () => (await ask(both)).status, { timeout: 30_000 }).toBe(200)
  expect(await ask(both)).toMatchObject({ status: 200, rung: 'smaller-model' })
  const refused = await ask(one)
  expect(refused.status).toBe(503)
  expect(refused.body.error).toMatchObject({ code: 'no_replica' })
  expect((await admin('PATCH', 'keys/one', { terms: { models: ['big', 'small'] } })).status).toBe(200)
  expect((await ask(one)).status).toBe(200)
})

it('turns the answer cache of a run-time tenant on with the file’s defaults, and off', async () => {
  const on = await admin('PATCH', 'tenants/store', { answerCache: { temperatureMax: 1 } })
  expect(on.body.record?.answerCache).toEqual({
    similarityMin: expect.any(Number),
    temperatureMax: 1,
    ttlUs: expect.any(Number),
    checkRatio: expect.any(Number),
  })
  for (const [name, value] of [
    ['similarityMin', 1.5],
    ['temperatureMax', -1],
    ['ttlUs', 0],
    ['checkRatio', 2],
  ] as const) {
    const wrong = await admin('PATCH', 'tenants/store', { answerCache: { [name]: value } })
    expect([wrong.status, wrong.body.error?.param]).toEqual([400, `answerCache.${name}`])
  }
  expect((await admin('PATCH', 'tenants/store', { answerCache: { size: 1 } })).status).toBe(400)
  const off = await admin('PATCH', 'tenants/store', { answerCache: null })
  expect(off.body.record).not.toHaveProperty('answerCache')
})
