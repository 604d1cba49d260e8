import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { ACME_KEY, authorization, MODEL, type TestPlatform } from '../support/start-platform.ts'
import { admin, chat, makeKey, startForTenancy } from '../support/tenancy-calls.ts'

/**
 * Orgs, tenants and keys that are made while the gateway runs: they work at once and end at once. That they outlive it, and
 * reach other gateways, is in `tenancy.long.test.ts`.
 */
let platform: TestPlatform
beforeAll(async () => {
  platform = await startForTenancy({ path: 'memory:' })
})
afterAll(() => platform?.close())
/** What `makeKey` made, if it did: the next test makes the same again. */
afterEach(async () => {
  for (const made of ['tenants/store', 'orgs/initech']) await admin(platform, 'DELETE', made, {})
})

describe('keys that are made at run time', () => {
  it('have no ids that could be taken for others, or for more than an id', { timeout: 60_000 }, async () => {
    const wrong = {
      'a line break': 'web\r\nx-evil: 1',
      NUL: 'web\u0000',
      'a letter that looks like another': 'w\u0435b',
      'an invisible character': 'we\u200bb',
      'another direction': '\u202ebew',
      'upper case': 'Web',
      'a separator of secrets': 'we_b',
      'a path': '../web',
      '65 letters': 'w'.repeat(65),
      '257 letters': 'w'.repeat(257),
      nothing: '',
    }
    for (const [what, id] of Object.entries(wrong)) {
      const made = [
        await admin(platform, 'POST', 'orgs', { id, slos: ['steady'] }),
        await admin(platform, 'POST', 'tenants', { id, orgId: 'acme' }),
        await admin(platform, 'POST', 'keys', { id, tenantId: 'acme' }),
      ]
      expect([what, ...made.map(({ status }) => status)]).toEqual([what, 400, 400, 400])
    }
    const reason = await admin(platform, 'POST', 'keys', { id: 'k', tenantId: 'acme', because: 'a\nb\u0000' })
    expect(reason.status).toBe(400)
    expect((await admin(platform, 'GET', 'tenancy-changes')).body.data).toEqual([])
  })

  it('work at once, through a rotation with a grace, and end at once when revoked', { timeout: 60_000 }, async () => {
    const first = await makeKey(platform)
    expect(first).toMatch(/^spw_web_[\w-]{43}$/)
    expect((await chat(platform, first)).status).toBe(200)
    const rotated = await admin(platform, 'POST', 'keys/web/rotate', { graceMs: 60_000 })
    const second = rotated.body.secret ?? ''
    expect(second).not.toBe(first)
    expect((await chat(platform, first)).status).toBe(200)
    expect((await chat(platform, second)).status).toBe(200)
    const third = await admin(platform, 'POST', 'keys/web/rotate', { graceMs: 60_000 })
    expect(third.status).toBe(409)
    expect(third.body.error).toMatchObject({ code: 'two_live_secrets', spillway: { rule: 'two-live-secrets' } })
    const shown = await admin(platform, 'GET', 'keys/web')
    const [old] = shown.body.secrets ?? []
    expect(old?.hash).toHaveLength(16)
    expect((await admin(platform, 'DELETE', `keys/web/secrets/${old?.hash}`, {})).status).toBe(200)
    const revoked = await chat(platform, first)
    expect(revoked.status).toBe(401)
    expect(revoked.body.error).toMatchObject({ code: 'invalid_api_key' })
    expect((await chat(platform, second)).status).toBe(200)
    expect((await chat(platform, ACME_KEY)).status).toBe(200)
    const history = await admin(platform, 'GET', 'tenancy-changes?id=web')
    const edits = history.body.data?.map(({ edit, by }) => `${by} ${edit}`)
    expect(edits).toEqual(['ada revoke-secret', 'ada rotate-key', 'ada create-key'])
    expect(JSON.stringify(history.body)).not.toContain(second)
  })

  it('are held to their terms', { timeout: 60_000 }, async () => {
    const key = await makeKey(platform, { models: ['other'], routes: ['chat', 'models'] })
    const denied = await chat(platform, key)
    expect(denied.status).toBe(403)
    expect(denied.body.error).toMatchObject({
      code: 'key_not_allowed',
      param: 'model',
      spillway: { terms: 'models' },
    })
    const listed = await fetch(`${platform.address}/v1/models`, { headers: authorization(key) })
    expect(((await listed.json()) as { data: unknown[] }).data).toEqual([])
    const files = await fetch(`${platform.address}/v1/files`, { headers: authorization(key) })
    expect(files.status).toBe(403)
    for (const path of ['messages', 'messages/count_tokens']) {
      const message = await fetch(`${platform.address}/v1/${path}`, { method: 'POST', headers: { 'x-api-key': key } })
      expect(message.status).toBe(403)
      expect(await message.json()).toMatchObject({
        error: { type: 'permission_error', spillway: { code: 'key_not_allowed', terms: 'routes' } },
      })
    }
    const change = (terms: object) => admin(platform, 'PATCH', 'keys/web', { terms })
    const termsOf = async () => (await chat(platform, key)).body.error?.spillway?.terms
    await change({ models: null, canInfer: false })
    expect(await termsOf()).toBe('canInfer')
    await change({ canInfer: null, clientRanges: ['203.0.113.0/24'] })
    expect(await termsOf()).toBe('clientRanges')
    await change({ clientRanges: ['127.0.0.0/8'], bands: [] })
    expect(await termsOf()).toBe('bands')
    await change({ bands: ['offline'] })
    expect((await chat(platform, key)).status).toBe(200)
    await change({ expiresAtMs: 1_000 })
    expect(await chat(platform, key)).toMatchObject({ status: 401, body: { error: { code: 'key_expired' } } })
    await change({ expiresAtMs: null, notBeforeAtMs: 4_000_000_000_000 })
    expect(await chat(platform, key)).toMatchObject({ status: 401, body: { error: { code: 'key_not_yet_valid' } } })
    await change({ notBeforeAtMs: null })
    expect((await admin(platform, 'PATCH', 'orgs/initech', { terms: { models: ['other'] } })).status).toBe(200)
    expect(await termsOf()).toBe('models')
  })

  it('are refused with the rule and whose authority it protects', { timeout: 60_000 }, async () => {
    await makeKey(platform)
    await admin(platform, 'PATCH', 'tenants/store', { terms: { models: [MODEL] } })
    const refusal = async (method: string, path: string, body: object) => {
      const answer = await admin(platform, method, path, body)
      return { status: answer.status, ...answer.body.error?.spillway }
    }
    expect(await refusal('PATCH', 'keys/web', { terms: { models: [MODEL, 'x'] } })).toEqual({
      status: 403,
      rule: 'models-within-parent',
      authority: 'tenant store',
    })
    expect(await refusal('DELETE', 'tenants/acme', {})).toMatchObject({ status: 409, rule: 'file-wins' })
    expect(await refusal('DELETE', 'tenants/nobody', {})).toMatchObject({ status: 404, rule: 'exists' })
    expect(await refusal('DELETE', 'orgs/initech', {})).toMatchObject({ status: 409, rule: 'org-is-empty' })
    expect(await refusal('POST', 'orgs', { id: 'initech', slos: ['steady'] })).toMatchObject({ status: 409 })
    expect(await refusal('POST', 'orgs', { id: 'Glob ex', slos: ['steady'] })).toMatchObject({ rule: 'id-is-plain' })
    expect(await refusal('POST', 'orgs', { id: 'x', slos: ['nope'] })).toMatchObject({ rule: 'value-is-valid' })
    expect(await refusal('POST', 'tenants', { id: 'spillway', orgId: 'initech' })).toMatchObject({ rule: 'id-is-free' })
    expect((await admin(platform, 'POST', 'keys', { id: 'k', tenantId: 'store', hash: 'x' })).status).toBe(400)
    const asTenant = await fetch(`${platform.address}/admin/v1/keys`, { headers: authorization(ACME_KEY) })
    expect(asTenant.status).toBe(403)
  })
})
