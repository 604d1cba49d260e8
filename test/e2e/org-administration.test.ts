import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import {
  ACME_KEY,
  authorization,
  MODEL,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/**
 * Tenants' keys that manage: an org's administrators do in their org what operators do everywhere, gain nothing by it,
 * and cannot tell another org's records from none.
 */
const ADMIN_KEY = 'sk-test-admin'
const DAY_MS = 24 * 3_600_000

let platform: TestPlatform
const secrets: Record<string, string> = {}

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly text: string
}

async function call(key: string, method: string, path: string, body?: object): Promise<Answer> {
  const response = await fetch(platform.address + path, {
    method,
    headers: { ...authorization(key), 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify({ because: 'a test', ...body }) }),
  })
  const text = await response.text()
  return { status: response.status, body: JSON.parse(text) as Answer['body'], text }
}

const operator = async (method: string, path: string, body?: object): Promise<Answer> => {
  const answer = await call(ADMIN_KEY, method, `/admin/v1/${path}`, body)
  expect(answer.status, answer.text).toBe(200)
  return answer
}

const as = (who: string, method: string, path: string, body?: object): Promise<Answer> =>
  call(secrets[who] ?? '', method, `/v1/spillway/${path}`, body)

/** Status and rule of an answer. */
const ruling = async (answer: Promise<Answer>): Promise<[number, unknown]> => {
  const { status, body } = await answer
  const error = body['error'] as { code: string; spillway?: { rule?: string; terms?: string } } | undefined
  return [status, error?.spillway?.rule ?? error?.spillway?.terms ?? error?.code]
}

const idsOf = ({ body }: Answer): unknown[] => (body['data'] as Array<{ id: string }>).map(({ id }) => id)

async function makeKey(id: string, tenantId: string, more: object): Promise<void> {
  secrets[id] = (await operator('POST', 'keys', { id, tenantId, ...more })).body['secret'] as string
}

beforeAll(async () => {
  const admin = { keys: [{ id: 'root', hash: hashKey(ADMIN_KEY) }] }
  const server = { ingress: { failedKeysPerMinute: 100_000, requestsPerMinute: 1_000_000 } }
  platform = await startPlatform(testTree({ admin, server, store: { path: 'memory:' } }))
  const endsAtMs = Date.now() + 10 * DAY_MS
  for (const org of ['initech', 'umbrella']) {
    const terms = org === 'initech' ? { models: [MODEL], allowance: { concurrencyMax: 5 } } : {}
    await operator('POST', 'orgs', { id: org, slos: ['steady'], terms })
    await operator('POST', 'tenants', { id: `${org}-shop`, orgId: org })
    await operator('POST', 'tenants', { id: `${org}-lab`, orgId: org })
    const managing = (role: string) => ({ role, terms: { canManage: true, canInfer: false } })
    for (const role of ['auditor', 'billing-reader', 'metrics-reader', 'member']) {
      await makeKey(`${org}-${role}`, `${org}-shop`, managing(role))
    }
    await makeKey(`${org}-boss`, `${org}-shop`, managing('org-admin'))
    await makeKey(`${org}-web`, `${org}-shop`, {})
    const bounded = { canManage: true, expiresAtMs: endsAtMs, clientRanges: ['127.0.0.0/8'] }
    await makeKey(`${org}-temp`, `${org}-lab`, { role: 'org-admin', terms: bounded })
  }
}, 60_000)
afterAll(() => platform.close())

describe('an org’s administrator', () => {
  it('has one allowance for the whole org, however many tenants and keys it makes', async () => {
    const allowance = { requests: { perMinute: 1, burst: 3 } }
    await operator('POST', 'orgs', { id: 'capped', slos: ['steady'], terms: { allowance } })
    await operator('POST', 'tenants', { id: 'capped-0', orgId: 'capped' })
    await makeKey('capped-boss', 'capped-0', { role: 'org-admin', terms: { canManage: true } })
    const chat = { model: MODEL, messages: [{ role: 'user', content: 'hi' }], max_tokens: 2 }
    const answers: Answer[] = []
    for (let i = 1; i <= 4; i++) {
      const tenantId = `capped-${i}`
      expect((await as('capped-boss', 'POST', 'tenants', { id: tenantId, orgId: 'capped' })).status).toBe(200)
      const { body } = await as('capped-boss', 'POST', 'keys', { id: tenantId, tenantId })
      answers.push(await call(body['secret'] as string, 'POST', '/v1/chat/completions', chat))
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    expect(answers[3]?.body).toMatchObject({ error: { spillway: { scope: 'org', scope_id: 'capped' } } })
    await operator('PATCH', 'orgs/capped', { terms: { allowance: null } })
    const { body } = await as('capped-boss', 'POST', 'keys/capped-4/rotate', { graceMs: 0 })
    expect((await call(body['secret'] as string, 'POST', '/v1/chat/completions', chat)).status).toBe(200)
  })

  it('makes, changes, rotates, revokes and removes tenants and keys of its org', async () => {
    expect((await as('initech-boss', 'POST', 'tenants', { id: 'news', orgId: 'initech' })).status).toBe(200)
    const made = await as('initech-boss', 'POST', 'keys', {
      id: 'news-1',
      tenantId: 'news',
      terms: { models: [MODEL] },
    })
    const secret = made.body['secret'] as string
    expect(secret).toMatch(/^spw_news-1_/)
    const models = await fetch(`${platform.address}/v1/models`, { headers: authorization(secret) })
    expect(models.status).toBe(200)
    expect((await as('initech-boss', 'PATCH', 'keys/news-1', { weight: 2 })).body).toMatchObject({
      record: { weight: 2 },
    })
    const rotated = await as('initech-boss', 'POST', 'keys/news-1/rotate', { graceMs: 60_000 })
    const [old] = (rotated.body['record'] as { secrets: Array<{ hash: string }> }).secrets
    expect((await as('initech-boss', 'DELETE', `keys/news-1/secrets/${old?.hash}`, {})).status).toBe(200)
    expect((await fetch(`${platform.address}/v1/models`, { headers: authorization(secret) })).status).toBe(401)
    const changes = await as('initech-boss', 'GET', 'tenancy-changes?id=news-1')
    expect(changes.body['data']).toMatchObject([
      { edit: 'revoke-secret', by: 'initech-boss', byKind: 'org-actor', role: 'org-admin' },
      { edit: 'rotate-key' },
      { edit: 'change-key' },
      { edit: 'create-key' },
    ])
    expect((await as('initech-boss', 'DELETE', 'tenants/news', {})).status).toBe(200)
    expect(await ruling(as('initech-boss', 'GET', 'tenants/news'))).toEqual([404, 'exists'])
  })

  it('sees its org and nothing of others, in lists and in the history', async () => {
    expect(idsOf(await as('initech-boss', 'GET', 'orgs'))).toEqual(['initech'])
    expect(idsOf(await as('initech-boss', 'GET', 'tenants'))).toEqual(['initech-lab', 'initech-shop'])
    expect(idsOf(await as('initech-boss', 'GET', 'keys?tenant=initech-lab'))).toEqual(['initech-temp'])
    expect(idsOf(await as('initech-boss', 'GET', 'keys?limit=2'))).toEqual([
      'initech-auditor',
      'initech-billing-reader',
    ])
    const lists = ['orgs', 'tenants', 'keys', 'tenancy-changes', 'keys?limit=1000']
    for (const path of lists) {
      const { text, status } = await as('initech-boss', 'GET', path)
      expect(status).toBe(200)
      expect(text).not.toMatch(/umbrella|acme|globex|root/)
    }
    const empty = [
      ['tenants?org=umbrella', 'tenants?org=nobody'],
      ['keys?tenant=umbrella-shop', 'keys?tenant=nobody'],
      ['keys?tenant=acme', 'keys?tenant=nobody'],
      ['tenancy-changes?id=umbrella-boss', 'tenancy-changes?id=nobody'],
    ] as const
    for (const [theirs, nobodys] of empty) {
      expect((await as('initech-boss', 'GET', theirs)).text).toBe((await as('initech-boss', 'GET', nobodys)).text)
    }
  })

  it('cannot tell another org’s records from none, by any call', async () => {
    const bodies: ReadonlyArray<[string, string, object?]> = [
      ['GET', 'orgs/ID'],
      ['GET', 'tenants/ID'],
      ['GET', 'keys/ID'],
      ['PATCH', 'tenants/ID', { weight: 1 }],
      ['PATCH', 'keys/ID', { terms: { canInfer: true } }],
      ['DELETE', 'tenants/ID', {}],
      ['DELETE', 'keys/ID', {}],
      ['POST', 'keys/ID/rotate', {}],
      ['DELETE', 'keys/ID/secrets/00000000', {}],
    ]
    const theirs = { orgs: 'umbrella', tenants: 'umbrella-shop', keys: 'umbrella-boss' }
    for (const [method, path, body] of bodies) {
      const level = path.split('/')[0] as keyof typeof theirs
      const nobody = 'x'.repeat(theirs[level].length)
      const one = await as('initech-boss', method, path.replace('ID', theirs[level]), body)
      const none = await as('initech-boss', method, path.replace('ID', nobody), body)
      expect([path, one.status]).toEqual([path, 404])
      expect(one.text.replaceAll(theirs[level], nobody)).toBe(none.text)
    }
    for (const tenantId of ['umbrella-shop', 'nobody', 'acme']) {
      expect(await ruling(as('initech-boss', 'POST', 'keys', { id: 'mine', tenantId }))).toEqual([404, 'exists'])
    }
    for (const orgId of ['umbrella', 'nobody', 'acme']) {
      expect(await ruling(as('initech-boss', 'POST', 'tenants', { id: 'mine', orgId }))).toEqual([403, 'own-org'])
    }
  })

  it('gains nothing: no models, limits, times, addresses, roles or managing beyond its own', async () => {
    const key = (terms: object, more: object = {}) =>
      ruling(as('initech-temp', 'POST', 'keys', { id: 'more', tenantId: 'initech-lab', terms, ...more }))
    const manages = { canManage: true, clientRanges: ['127.0.0.0/8'] }
    expect(await key({ models: [MODEL, 'other'] })).toEqual([403, 'models-within-parent'])
    expect(await key({ allowance: { concurrencyMax: 6 } })).toEqual([403, 'allowance-within-parent'])
    const late = { ...manages, expiresAtMs: Date.now() + 11 * DAY_MS }
    expect(await key(late, { role: 'org-admin' })).toEqual([403, 'expiresAtMs-within-actor'])
    const anywhere = { canManage: true, clientRanges: ['0.0.0.0/0'] }
    expect(await key(anywhere, { role: 'org-admin' })).toEqual([403, 'clientRanges-within-actor'])
    expect(await key(manages, { role: 'platform-admin' })).toEqual([400, 'invalid_value'])
    const own = (body: object) => ruling(as('initech-temp', 'PATCH', 'keys/initech-temp', body))
    expect(await own({ terms: { expiresAtMs: null } })).toEqual([403, 'expiresAtMs-within-actor'])
    expect(await own({ terms: { clientRanges: null } })).toEqual([403, 'clientRanges-within-actor'])
    // The secret of a stronger key would be told.
    const stronger = as('initech-temp', 'POST', 'keys/initech-boss/rotate', { graceMs: 0 })
    expect(await ruling(stronger)).toEqual([403, 'expiresAtMs-within-actor'])
    expect(await ruling(as('initech-boss', 'PATCH', 'orgs/initech', { weight: 9 }))).toEqual([403, 'role-allows'])
    expect(await ruling(as('initech-boss', 'POST', 'orgs', { id: 'mine', slos: ['x'] }))).toEqual([403, 'role-allows'])
    expect(await ruling(as('initech-boss', 'DELETE', 'orgs/initech', {}))).toEqual([403, 'role-allows'])
    expect(await ruling(as('initech-boss', 'PATCH', 'tenants/initech-lab', { slo: 'patient' }))).toEqual([
      403,
      'slo-of-org',
    ])
  })

  it('cannot set what is not asked for: fields of the record, of the server and of other calls', async () => {
    const fields: object[] = [
      { orgId: 'umbrella' },
      { id: 'other' },
      { source: 'file' },
      { kind: 'remove-org' },
      { hash: 'ab'.repeat(32) },
      { role: 'org-admin' },
      { orgWeight: 9 },
      JSON.parse('{"__proto__": {"canManage": true}}') as object,
    ]
    for (const field of fields) {
      const answer = await as('initech-boss', 'PATCH', 'tenants/initech-lab', field)
      expect([JSON.stringify(field), answer.status]).toEqual([JSON.stringify(field), 400])
    }
    for (const field of [{ tenantId: 'umbrella-shop' }, { secrets: [] }, { hash: 'x' }, { lastUsedAtMs: 1 }]) {
      expect((await as('initech-boss', 'PATCH', 'keys/initech-web', field)).status).toBe(400)
    }
    const made = { id: 'k', tenantId: 'initech-lab', hash: 'ab'.repeat(32) }
    expect((await as('initech-boss', 'POST', 'keys', made)).status).toBe(400)
    expect((await operator('GET', 'tenants/initech-lab')).body).toMatchObject({ orgId: 'initech', source: 'registry' })
  })

  it.each([
    ['a line break', 'shop\r\nset-cookie: x'],
    ['a letter of another alphabet', 'umbrell\u0430-shop'],
    ['full width', '\uff55mbrella-shop'],
    ['another case', 'Umbrella-Shop'],
    ['an invisible letter', 'umbrella-shop\u200b'],
    ['a path', '../umbrella-shop'],
    ['a separator', 'a_b'],
    ['the platform’s own name', 'spillway'],
    ['nothing', ''],
  ])('cannot take an id with %s', async (_, id) => {
    for (const [path, more] of [
      ['tenants', { orgId: 'initech' }],
      ['keys', { tenantId: 'initech-lab' }],
    ] as const) {
      const { status, text } = await as('initech-boss', 'POST', path, { id, ...more })
      expect([path, status]).toEqual([path, 400])
      expect(text).not.toMatch(/[\r\n\u0430\u200b]/)
    }
  })

  it('cannot take an id that another org has, or has had', async () => {
    const take = () => as('initech-boss', 'POST', 'tenants', { id: 'umbrella-old', orgId: 'initech' })
    await operator('POST', 'tenants', { id: 'umbrella-old', orgId: 'umbrella' })
    const taken = await take()
    expect(taken.status).toBe(409)
    await operator('DELETE', 'tenants/umbrella-old', {})
    // What was stored under the id would be its own: the answer is the same as before.
    expect((await take()).text).toBe(taken.text)
    expect((await as('umbrella-boss', 'POST', 'tenants', { id: 'umbrella-old', orgId: 'umbrella' })).status).toBe(200)
    expect(await ruling(as('initech-boss', 'POST', 'keys', { id: 'umbrella-web', tenantId: 'initech-lab' }))).toEqual([
      409,
      'id-is-free',
    ])
  })

  it('keeps nothing when its key is removed: the next call is nobody’s', async () => {
    await makeKey('initech-gone', 'initech-lab', { role: 'org-admin', terms: { canManage: true } })
    expect((await as('initech-gone', 'GET', 'orgs')).status).toBe(200)
    await operator('PATCH', 'tenants/initech-lab', { terms: { canManage: false } })
    expect(await ruling(as('initech-gone', 'GET', 'orgs'))).toEqual([403, 'canManage'])
    await operator('PATCH', 'tenants/initech-lab', { terms: { canManage: null, clientRanges: ['203.0.113.0/24'] } })
    expect(await ruling(as('initech-gone', 'GET', 'orgs'))).toEqual([403, 'clientRanges'])
    await operator('PATCH', 'tenants/initech-lab', { terms: { clientRanges: null } })
    await operator('DELETE', 'keys/initech-gone', {})
    expect((await as('initech-gone', 'GET', 'orgs')).status).toBe(401)
  })
})

describe('the other roles', () => {
  it('read what they are for, and change nothing', async () => {
    const reads = async (who: string) =>
      Promise.all(
        ['orgs', 'tenants', 'keys', 'tenancy-changes'].map(async (path) => (await as(who, 'GET', path)).status),
      )
    expect(await reads('initech-auditor')).toEqual([200, 200, 200, 200])
    expect(await reads('initech-member')).toEqual([200, 200, 200, 403])
    expect(await reads('initech-billing-reader')).toEqual([403, 403, 403, 403])
    expect(await reads('initech-metrics-reader')).toEqual([403, 403, 403, 403])
    expect(await reads('initech-web')).toEqual([403, 403, 403, 403])
    for (const role of ['auditor', 'billing-reader', 'metrics-reader', 'member']) {
      const who = `initech-${role}`
      expect(await ruling(as(who, 'PATCH', `keys/${who}`, { role: 'org-admin' }))).toEqual([403, 'role-allows'])
      expect(await ruling(as(who, 'POST', `keys/${who}/rotate`, {}))).toEqual([403, 'role-allows'])
      expect(await ruling(as(who, 'DELETE', 'tenants/initech-lab', {}))).toEqual([403, 'role-allows'])
    }
  })

  it('a member sees its own tenant, and its siblings as little as strangers', async () => {
    expect(idsOf(await as('initech-member', 'GET', 'orgs'))).toEqual([])
    expect(idsOf(await as('initech-member', 'GET', 'tenants'))).toEqual(['initech-shop'])
    expect(idsOf(await as('initech-member', 'GET', 'keys?tenant=initech-lab'))).toEqual([])
    expect(idsOf(await as('initech-member', 'GET', 'keys'))).toContain('initech-web')
    expect(await ruling(as('initech-member', 'GET', 'keys/initech-temp'))).toEqual([404, 'exists'])
  })
})

describe('operators’ keys and tenants’ keys', () => {
  it('open nothing under each other’s path', async () => {
    for (const path of ['orgs', 'tenants', 'keys', 'tenancy-changes']) {
      expect((await call(ADMIN_KEY, 'GET', `/v1/spillway/${path}`)).status).toBe(401)
      expect((await call(secrets['initech-boss'] ?? '', 'GET', `/admin/v1/${path}`)).status).toBe(403)
    }
    expect(await ruling(call(ACME_KEY, 'GET', '/v1/spillway/keys'))).toEqual([403, 'canManage'])
  })
})

describe('GET /v1/spillway/me', () => {
  it('tells a key its terms in force, its promise, what it has left, and no other key', async () => {
    const me = await as('initech-web', 'GET', 'me')
    expect(me.status).toBe(200)
    expect(me.body).toMatchObject({
      object: 'spillway.me',
      org: 'initech',
      tenant: 'initech-shop',
      role: null,
      key: { id: 'initech-web', role: 'member', secrets: [{ hash: expect.stringMatching(/^[0-9a-f]{16}$/) }] },
      terms: { models: [MODEL], allowance: { concurrencyMax: 5 }, canManage: false },
      bands: ['interactive', 'standard', 'offline'],
      weights: { org: 1, tenant: 1, key: 1 },
      slo: { name: 'steady' },
      budgets: [
        { scope: 'org', concurrency: { limit: 5, running: 0 } },
        { scope: 'tenant', concurrency: { limit: 5, running: 0 } },
        { scope: 'key', concurrency: { limit: null, running: 0 } },
      ],
      refusals: [],
    })
    expect(me.body).not.toHaveProperty('keys')
    expect(me.text).not.toMatch(/umbrella|initech-boss|spw_/)
  })

  it('tells those who may read the tree all keys of their tenant', async () => {
    for (const who of ['initech-boss', 'initech-auditor', 'initech-member']) {
      const { body, text } = await as(who, 'GET', 'me')
      const ids = (body['keys'] as Array<{ id: string }>).map(({ id }) => id)
      expect(ids).toContain('initech-web')
      expect(ids).not.toContain('initech-temp')
      expect(text).not.toMatch(/umbrella|spw_/)
    }
    for (const who of ['initech-billing-reader', 'initech-metrics-reader']) {
      const { body } = await as(who, 'GET', 'me')
      expect(body).not.toHaveProperty('keys')
    }
  })

  it('counts down, and has the last refusals', async () => {
    const terms = { allowance: { requests: { perMinute: 1, burst: 2 } } }
    await makeKey('initech-slow', 'initech-lab', { terms })
    const chat = { model: MODEL, messages: [{ role: 'user', content: 'hi' }], max_tokens: 2 }
    const statuses = []
    for (let i = 0; i < 3; i++)
      statuses.push((await call(secrets['initech-slow'] ?? '', 'POST', '/v1/chat/completions', chat)).status)
    // The field `because` of `call` is ignored by this route.
    expect(statuses).toEqual([200, 200, 429])
    const { body } = await as('initech-slow', 'GET', 'me')
    expect(body).toMatchObject({
      budgets: [{ scope: 'org' }, { scope: 'tenant' }, { scope: 'key', requests: { limit: 2, remaining: 0 } }],
      refusals: [{ tenant: 'initech-lab', code: 'rate-limit-requests' }],
    })
  })

  it('has the last use of each secret, to the minute', async () => {
    const before = Date.now()
    await as('initech-web', 'GET', 'me')
    const { body } = await as('initech-boss', 'GET', 'keys/initech-web')
    const [secret] = body['secrets'] as Array<{ lastUsedAtMs: number }>
    expect(secret?.lastUsedAtMs).toBeGreaterThan(before - 60_000)
    expect(secret?.lastUsedAtMs).toBeLessThanOrEqual(Date.now())
    await makeKey('initech-unused', 'initech-lab', {})
    const unused = await as('initech-boss', 'GET', 'keys/initech-unused')
    expect(unused.text).not.toContain('lastUsedAtMs')
  })

  it('is there for keys of the file, and neither for operators nor for strangers', async () => {
    expect((await call(ACME_KEY, 'GET', '/v1/spillway/me')).body).toMatchObject({
      org: 'acme',
      tenant: 'acme',
      key: { id: 'acme-1', source: 'file' },
      role: null,
    })
    expect((await call(ADMIN_KEY, 'GET', '/v1/spillway/me')).status).toBe(401)
    expect((await call('sk-nobody', 'GET', '/v1/spillway/me')).status).toBe(401)
  })
})
