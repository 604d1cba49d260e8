import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { sendRaw } from '../support/raw-http.ts'
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

/** Where requests come from: ranges of keys hold on every route, and proxies are believed as far as they are trusted. */
const ADMIN_KEY = 'sk-test-admin'
const ELSEWHERE = '203.0.113.9'

const open: TestPlatform[] = []
afterAll(async () => {
  for (const platform of open) await platform.close()
})

/** A gateway that trusts no proxy, with a key that may be used from elsewhere only. */
let direct: TestPlatform
let directKey: string
beforeAll(async () => {
  direct = await start()
  directKey = await makeKey(direct, [`${ELSEWHERE}/32`])
})

async function start(server: Tree = {}): Promise<TestPlatform> {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  const platform = await startPlatform(testTree({ admin, server }))
  open.push(platform)
  return platform
}

/** A key that may be used from one network only. */
async function makeKey({ address }: TestPlatform, clientRanges: readonly string[]): Promise<string> {
  const make = (level: string, body: object) =>
    postJson(`${address}/admin/v1/${level}`, { because: 'a test', ...body }, authorization(ADMIN_KEY))
  expect((await make('orgs', { id: 'initech', slos: ['patient'] })).status).toBe(200)
  expect((await make('tenants', { id: 'store', orgId: 'initech' })).status).toBe(200)
  const made = await make('keys', { id: 'web', tenantId: 'store', terms: { clientRanges } })
  return ((await made.json()) as { secret: string }).secret
}

const CHAT = { model: MODEL, messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 1 }

const chat = async ({ address }: TestPlatform, key: string, forwarded?: string): Promise<number> => {
  const headers = { ...authorization(key), ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }) }
  const response = await postJson(`${address}/v1/chat/completions`, CHAT, headers)
  await response.text()
  return response.status
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

describe('the client ranges of a key', () => {
  it('hold on every route that takes the key', { timeout: 60_000 }, async () => {
    const { address } = direct
    const document = (await (await fetch(`${address}/openapi.json`)).json()) as OpenApi
    const told: string[] = []
    for (const [path, item] of Object.entries(document.paths)) {
      for (const method of Object.keys(item)) {
        const ask = async (headers: Record<string, string>) =>
          sendRaw(address, {
            method: method.toUpperCase(),
            path: path.replace('{model}', MODEL),
            headers: { 'content-type': 'application/json', ...headers },
            ...(method === 'post' ? { body: '{}' } : {}),
          })
        // A route that asks for no key has no key to check.
        if ((await ask({})).status !== 401) continue
        const { status, text } = await ask(authorization(directKey))
        const code = /key_not_allowed|key-not-allowed|not_admin|may not be used from this address/.exec(text)?.[0]
        told.push(`${method} ${path} ${status} ${code}`)
      }
    }
    const isAdmin = (line: string): boolean => / \/(admin\/|metrics |autoscale)/.test(line)
    const wrong = told.filter((line) => !(isAdmin(line) ? / 403 not_admin$/ : / 403 (key_not|may not)/).test(line))
    expect(wrong).toEqual([])
    const tenants = told.filter((line) => !isAdmin(line)).map((line) => line.split(' ', 2).join(' '))
    expect(tenants).toEqual(
      expect.arrayContaining([
        'post /v1/chat/completions',
        'post /v1/completions',
        'post /v1/embeddings',
        'post /infer',
        'get /v1/models',
        'get /v1/files',
        'get /v1/vector_stores',
        'get /spillway/refusals',
        'get /spillway/requests/{id}',
      ]),
    )
  })
})

describe('x-forwarded-for', () => {
  it('is believed of a trusted proxy, from the right, and of nobody else', { timeout: 60_000 }, async () => {
    const behind = await start({ trustedProxies: ['127.0.0.0/8', '::1/128', '10.0.0.0/8'] })
    const key = await makeKey(behind, [`${ELSEWHERE}/32`])
    expect(await chat(behind, key)).toBe(403)
    expect(await chat(behind, key, ELSEWHERE)).toBe(200)
    expect(await chat(behind, key, `${ELSEWHERE}, 10.0.0.7`)).toBe(200)
    expect(await chat(behind, key, `${ELSEWHERE}, 198.51.100.1`)).toBe(403)
    expect(await chat(behind, key, `198.51.100.1, ${ELSEWHERE}`)).toBe(200)
    expect(await chat(behind, key, 'unknown')).toBe(403)
    expect(await chat(behind, key, `::ffff:${ELSEWHERE}`)).toBe(200)
    expect(await chat(direct, directKey, ELSEWHERE)).toBe(403)
  })

  it('gives each client behind a proxy an allowance of its own', { timeout: 60_000 }, async () => {
    // A burst of two wrong keys, and then one in five seconds.
    const behind = await start({ trustedProxies: ['127.0.0.0/8', '::1/128'], ingress: { failedKeysPerMinute: 2 * 6 } })
    const spend = async (from: string): Promise<number> => {
      for (let i = 0; i < 3; i++) await chat(behind, `sk-wrong-${i}`, from)
      return chat(behind, 'sk-wrong', from)
    }
    expect(await spend(ELSEWHERE)).toBe(429)
    expect(await chat(behind, 'sk-wrong', '198.51.100.1')).toBe(401)
    // One house has all addresses behind 64 bits, however they are written.
    expect(await spend('2001:db8:0:1::5')).toBe(429)
    expect(await chat(behind, 'sk-wrong', '2001:0DB8::1:0:0:0:6')).toBe(429)
    expect(await chat(behind, 'sk-wrong', '2001:db8:0:2::5')).toBe(401)
    expect(await chat(behind, ACME_KEY, '198.51.100.2')).toBe(200)
  })
})
