import { fileURLToPath } from 'node:url'
import { OAuth2Server } from 'oauth2-mock-server'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { checked } from '../support/openai-shapes.ts'
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
import { rawToken } from '../support/token-issuer.ts'

/** Tokens of a real issuer: its discovery, its keys and its token endpoint over HTTP, and the gateway behind them. */

const CHAT = '/v1/chat/completions'
const chat = { model: MODEL, messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 1 }

let issuer: OAuth2Server
let issuerUrl: string
const open: TestPlatform[] = []

/** Every issuer here signs with the same key: making one of RSA takes about 40 ms of the processor. */
let madeKey: object | undefined

beforeEach(() => startIssuer())

async function startIssuer(keyFile?: string, certFile?: string): Promise<void> {
  issuer = new OAuth2Server(keyFile, certFile)
  if (madeKey === undefined) {
    await issuer.issuer.keys.generate('RS256', { kid: 'one' })
    madeKey = issuer.issuer.keys.toJSON(true)[0]
  } else await issuer.issuer.keys.add({ ...madeKey })
  await issuer.start(0, '127.0.0.1')
  issuerUrl = issuer.issuer.url as string
}

const tlsFile = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}.pem`, import.meta.url))

/** It signs as before, but nobody can ask it anything. */
async function stopIssuer(): Promise<void> {
  await issuer.stop()
  issuer.issuer.url = issuerUrl
}

afterEach(async () => {
  for (const platform of open.splice(0)) await platform.close()
  if (issuer.listening) await issuer.stop()
})

async function start(terms: Tree = {}, more: Tree = {}): Promise<TestPlatform> {
  const corp = { id: 'corp', issuer: issuerUrl, audience: ['spillway'], ...terms }
  const platform = await startPlatform(testTree({ oidc: { issuers: [corp] }, ...more }))
  open.push(platform)
  return platform
}

const sign = (claims: Record<string, unknown> = {}, kid = 'one'): Promise<string> =>
  issuer.issuer.buildToken({
    kid,
    scopesOrTransform: (_header, payload) => {
      Object.assign(payload, { aud: 'spillway', sub: 'ada', tenant: 'acme', ...claims })
    },
  })

const ask = ({ address }: TestPlatform, token: string, body: unknown = chat): Promise<Response> =>
  postJson(address + CHAT, body, authorization(token))

const codeOf = async (response: Promise<Response>): Promise<[number, string | undefined]> => {
  const { status, ...rest } = { status: (await response).status, body: await (await response).json() }
  return [status, (rest.body as { error?: { code?: string } }).error?.code]
}

describe('a token from the issuer’s own endpoint', () => {
  it('opens the gateway, and its request is its tenant’s in the journal, under no person’s name', async () => {
    const platform = await start()
    issuer.service.once('beforeTokenSigning', (token: { payload: Record<string, unknown> }) => {
      Object.assign(token.payload, { sub: 'ada@corp.example', tenant: 'acme' })
    })
    const granted = await fetch(`${issuerUrl}/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ grant_type: 'client_credentials', aud: 'spillway' }),
    })
    const { access_token: token } = (await granted.json()) as { access_token: string }
    const response = await ask(platform, token)
    expect(response.status).toBe(200)
    checked('chat', await response.json())
    const settled = await platform.settled(response.headers.get('x-request-id') as string)
    expect(settled).toMatchObject({ tenantId: 'acme', keyId: expect.stringMatching(/^corp@[0-9a-f]{16}$/) })
    expect(JSON.stringify(platform.entries)).not.toContain('ada@corp.example')
  })
})

describe('a token and a key', () => {
  it('spend from the same tenant’s budget', async () => {
    const tenants = (testTree()['tenants'] as Tree[]).map((tenant) => ({
      ...tenant,
      allowance: { requests: { perMinute: 1, burst: 3 } },
    }))
    const platform = await start({}, { tenants })
    const [ada, bob] = [await sign(), await sign({ sub: 'bob' })]
    const statuses = []
    for (const bearer of [ada, ACME_KEY, bob, ada, bob, ACME_KEY]) statuses.push((await ask(platform, bearer)).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429])
    expect((await ask(platform, await sign({ tenant: 'globex' }))).status).toBe(200)
  })

  it('have allowances of their own within it: a subject’s is the same with every token', async () => {
    const platform = await start({ allowance: { requests: { perMinute: 1, burst: 2 } } })
    const tokens = [await sign({ jti: '1' }), await sign({ jti: '2' }), await sign({ jti: '3' })]
    const answers = []
    for (const token of tokens) answers.push(await codeOf(ask(platform, token)))
    expect(answers).toEqual([
      [200, undefined],
      [200, undefined],
      [429, 'rate_limit_requests'],
    ])
    expect((await ask(platform, await sign({ sub: 'bob' }))).status).toBe(200)
    expect((await ask(platform, ACME_KEY)).status).toBe(200)
  })

  it('open the same routes, and are refused on the same', async () => {
    const platform = await start()
    const statusOf = async (path: string, token: string) =>
      (await fetch(platform.address + path, { headers: authorization(token) })).status
    const [good, bad] = [await sign(), await sign({ aud: 'other' })]
    for (const path of ['/v1/models', `/v1/models/${MODEL}`, '/v1/vector_stores', '/v1/files', '/spillway/refusals']) {
      expect([path, await statusOf(path, good)]).toEqual([path, 200])
      expect([path, await statusOf(path, bad)]).toEqual([path, 401])
    }
    for (const path of ['/admin/v1/pools', '/metrics']) {
      expect([path, await statusOf(path, good)]).toEqual([path, 403])
      expect([path, await statusOf(path, bad)]).toEqual([path, 401])
    }
    expect((await fetch(`${platform.address}/health`, { headers: authorization(bad) })).status).toBe(200)
    const infer = { tenant_id: 'acme', tokens_requested: 1, model: MODEL }
    expect((await postJson(`${platform.address}/infer`, infer, authorization(good))).status).toBe(200)
    expect((await postJson(`${platform.address}/infer`, infer, authorization(bad))).status).toBe(401)
  })
})

describe('roles', () => {
  it('open the admin API and the metrics, to nobody else', async () => {
    const platform = await start({ roleClaim: 'groups', roles: { ops: 'platform-admin', grafana: 'metrics-reader' } })
    const statuses = async (claims: Record<string, unknown>) => {
      const headers = authorization(await sign(claims))
      const paths = ['/admin/v1/pools', '/metrics', '/v1/models']
      return Promise.all(paths.map(async (path) => (await fetch(platform.address + path, { headers })).status))
    }
    expect(await statuses({ groups: ['ops'] })).toEqual([200, 200, 200])
    expect(await statuses({ groups: ['ops'], tenant: undefined })).toEqual([200, 200, 403])
    expect(await statuses({ groups: ['grafana'] })).toEqual([403, 200, 200])
    expect(await statuses({ groups: ['admin'] })).toEqual([403, 403, 200])
  })
})

describe('roles in an org', () => {
  const ADMIN_KEY = 'sk-test-admin'
  const roleClaim = { roleClaim: 'groups', roles: { bosses: 'org-admin', eyes: 'auditor', staff: 'member' } }

  async function call(url: string, bearer: string, body?: object): Promise<[number, string]> {
    const response = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...authorization(bearer), 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify({ because: 'a test', ...body }) }),
    })
    return [response.status, await response.text()]
  }

  it('manage the org of the token’s tenant, made at run time, and no longer than the token', async () => {
    const admin = { keys: [{ id: 'root', hash: hashKey(ADMIN_KEY) }] }
    const platform = await start(roleClaim, { admin, store: { path: 'memory:' } })
    const root = (path: string, body: object) => call(`${platform.address}/admin/v1/${path}`, ADMIN_KEY, body)
    const own = (path: string, bearer: string, body?: object) =>
      call(`${platform.address}/v1/spillway/${path}`, bearer, body)
    const shop = { tenant: 'shop' }
    expect(await codeOf(ask(platform, await sign(shop)))).toEqual([403, 'token_without_tenant'])
    for (const org of ['initech', 'umbrella']) await root('orgs', { id: org, slos: ['steady'] })
    await root('tenants', { id: 'shop', orgId: 'initech' })
    await root('tenants', { id: 'hive', orgId: 'umbrella' })
    expect((await ask(platform, await sign(shop))).status).toBe(200)
    const boss = await sign({ ...shop, groups: ['bosses', 'staff'] })
    expect((await own('keys', boss, { id: 'web', tenantId: 'shop' }))[0]).toBe(200)
    expect((await own('tenants', boss, { id: 'lab', orgId: 'initech' }))[0]).toBe(200)
    expect((await own('keys', boss, { id: 'bee', tenantId: 'hive' }))[0]).toBe(404)
    const manages = { id: 'heir', tenantId: 'shop', role: 'org-admin' }
    const forEver = { canManage: true, expiresAtMs: Date.now() + 24 * 3_600_000 }
    const [status, text] = await own('keys', boss, { ...manages, terms: forEver })
    expect([status, text]).toEqual([403, expect.stringContaining('expiresAtMs-within-actor')])
    const [made, heir] = await own('keys', boss, { ...manages, terms: { canManage: true } })
    expect(made).toBe(200)
    const { exp } = JSON.parse(Buffer.from(boss.split('.')[1] ?? '', 'base64url').toString()) as { exp: number }
    expect(JSON.parse(heir)).toMatchObject({ record: { terms: { expiresAtMs: exp * 1_000 } } })
    const statuses = async (claims: Record<string, unknown>) => {
      const token = await sign({ ...shop, ...claims })
      const paths = ['orgs', 'keys', 'tenancy-changes', 'me']
      return Promise.all(paths.map(async (path) => (await own(path, token))[0]))
    }
    expect(await statuses({ groups: ['eyes'] })).toEqual([200, 200, 200, 200])
    expect(await statuses({ groups: 'staff' })).toEqual([200, 200, 403, 200])
    expect(await statuses({ groups: ['nothing'] })).toEqual([403, 403, 403, 200])
    expect((await call(`${platform.address}/admin/v1/orgs`, boss))[0]).toBe(403)
    expect((await own('keys', boss))[1]).not.toMatch(/umbrella|acme/)
  })
})

describe('a wrong token', () => {
  it('is told what is wrong, and nothing of what is in it', async () => {
    const platform = await start()
    const response = await ask(platform, await sign({ exp: 1, email: 'ada@corp.example' }))
    const { error } = checked('error', await response.json()) as { error: { message: string } }
    expect([response.status, error]).toMatchObject([401, { code: 'invalid_token', type: 'invalid_request_error' }])
    expect(error.message).toContain('The token has expired.')
    expect(JSON.stringify(error)).not.toContain('ada')
    expect(response.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"')
    const without = await fetch(`${platform.address}/v1/models`)
    expect([without.status, without.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect((await ask(platform, await sign())).headers.get('www-authenticate')).toBeNull()
  })

  it('of any kind gets no answer', async () => {
    const platform = await start()
    const claims = { iss: issuerUrl, aud: 'spillway', sub: 'ada', tenant: 'acme', exp: 9_999_999_999 }
    const unsigned = rawToken({ alg: 'none', kid: 'one' }, claims)
    expect(await codeOf(ask(platform, unsigned))).toEqual([401, 'invalid_token'])
    expect(await codeOf(ask(platform, await sign({ iss: 'http://evil.example' })))).toEqual([401, 'invalid_token'])
    expect(await codeOf(ask(platform, await sign({ tenant: 'nobody' })))).toEqual([403, 'token_without_tenant'])
    expect(await codeOf(ask(platform, await sign({ tenant: undefined })))).toEqual([403, 'token_without_tenant'])
    expect(await codeOf(ask(platform, await sign({ pad: 'x'.repeat(8_192) })))).toEqual([401, 'invalid_api_key'])
    const acting = postJson(platform.address + CHAT, chat, {
      ...authorization(await sign()),
      'x-spillway-tenant': 'globex',
    })
    expect(await codeOf(acting)).toEqual([403, 'not_a_peer'])
  })

  it('counts as a wrong key: an address that sends many is not listened to, but for callers known there', async () => {
    const server = { ingress: { failedKeysPerMinute: 12, requestsPerMinute: 6_000 } }
    const platform = await start({}, { server })
    const good = await sign()
    expect((await ask(platform, good)).status).toBe(200)
    const codes = []
    for (let i = 0; i < 5; i++) codes.push((await codeOf(ask(platform, await sign({ aud: `other-${i}` }))))[1])
    expect(codes).toEqual([...Array(2).fill('invalid_token'), ...Array(3).fill('ingress_failed_keys')])
    expect((await ask(platform, good)).status).toBe(200)
  })
})

describe('the issuer', () => {
  it('rotates its keys, and nobody is refused while both are published', async () => {
    const platform = await start()
    expect((await ask(platform, await sign())).status).toBe(200)
    await issuer.issuer.keys.generate('ES256', { kid: 'two' })
    const tokens = await Promise.all([sign({}, 'two'), sign({ sub: 'bob' }, 'two'), sign({ sub: 'eve' }, 'one')])
    const answers = await Promise.all(tokens.map((token) => ask(platform, token)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  })

  it('may go away: its tokens are good as before, also new ones', async () => {
    const platform = await start()
    await stopIssuer()
    expect((await ask(platform, await sign())).status).toBe(200)
    expect((await ask(platform, await sign({ sub: 'bob' }))).status).toBe(200)
  })

  it('may be away at the start: keys work, its tokens are told to come back, and the log says why', async () => {
    await stopIssuer()
    const platform = await start()
    expect((await ask(platform, ACME_KEY)).status).toBe(200)
    const response = await ask(platform, await sign())
    expect(response.status).toBe(503)
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(10)
    expect(checked('error', await response.json())).toMatchObject({ error: { code: 'issuer_unavailable' } })
    expect(platform.printed).toContain('the keys of the issuer corp cannot be read')
  })

  it('is believed over TLS if its certificate is vouched for, and not otherwise', async () => {
    await issuer.stop()
    await startIssuer(tlsFile('key'), tlsFile('cert'))
    expect(issuerUrl).toMatch(/^https:/)
    const doubting = await start()
    expect((await ask(doubting, await sign())).status).toBe(503)
    const trusting = await start({ tls: { caFile: tlsFile('cert') } })
    expect((await ask(trusting, await sign())).status).toBe(200)
  })
})
