import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
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

/** Pausing a tenant and observing only, as an administrator asks for them over HTTP. */
const ADMIN_KEY = 'sk-test-admin'
const because = 'a loop in its client'

let platform: TestPlatform
beforeAll(async () => {
  platform = await startPlatform(testTree({ admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] } }))
})
afterAll(() => platform.close())

const admin = (path: string, body: object, key = ADMIN_KEY): Promise<Response> =>
  postJson(`${platform.address}/admin/v1/${path}`, body, authorization(key))
const ask = (key = ACME_KEY): Promise<Response> =>
  postJson(
    `${platform.baseURL}/chat/completions`,
    { model: MODEL, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 2 },
    authorization(key),
  )

describe('orders to admission', () => {
  it('need an administrator and a reason', async () => {
    for (const [path, body] of [
      ['tenants/acme', { state: 'paused' }],
      ['admission', { mode: 'observe' }],
    ] as const) {
      expect((await admin(path, { ...body, because }, ACME_KEY)).status, path).toBe(403)
      expect((await admin(path, { ...body, because }, 'sk-nobody')).status, path).toBe(401)
      expect((await admin(path, body)).status, path).toBe(400)
    }
    expect((await admin('tenants/acme', { state: 'asleep', because })).status).toBe(400)
    expect((await admin('admission', { mode: 'off', because })).status).toBe(400)
    expect((await admin('tenants/nobody', { state: 'paused', because })).status).toBe(404)
    expect(platform.entries.some(({ kind }) => kind === 'tenant-paused' || kind === 'mode-changed')).toBe(false)
  })

  it('pause one tenant, whose clients are told why and not to hammer', async () => {
    expect((await admin('tenants/acme', { state: 'paused', because })).status).toBe(200)
    const refused = await ask()
    expect(refused.status).toBe(429)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(await refused.json()).toMatchObject({
      error: { code: 'tenant_paused', message: expect.stringContaining(because), spillway: { retry_after_ms: 60_000 } },
    })
    expect((await ask(GLOBEX_KEY)).status).toBe(200)
    const shown = await fetch(`${platform.address}/admin/v1/admission`, { headers: authorization(ADMIN_KEY) })
    expect(await shown.json()).toMatchObject({ mode: 'enforce', paused: [{ tenant: 'acme', because }] })
    const history = await fetch(`${platform.address}/admin/v1/changes?name=acme`, { headers: authorization(ADMIN_KEY) })
    expect(await history.json()).toMatchObject({ data: [{ kind: 'pause', name: 'acme', by: 'ada', because }] })
    expect((await admin('tenants/acme', { state: 'active', because: 'mended' })).status).toBe(200)
    expect((await ask()).status).toBe(200)
  })

  it('change the mode, which is journalled', async () => {
    expect((await admin('admission', { mode: 'observe', because })).status).toBe(200)
    expect(platform.platform.policies.mode).toBe('observe')
    expect((await admin('admission', { mode: 'enforce', because })).status).toBe(200)
    expect(platform.entries.filter(({ kind }) => kind === 'mode-changed')).toMatchObject([
      { mode: 'observe', by: 'ada' },
      { mode: 'enforce', by: 'ada' },
    ])
  })
})
