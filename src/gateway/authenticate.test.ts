import { describe, expect, it } from 'vitest'
import { makeKey, makeTenant } from '../../test/support/demand.ts'
import { hashKey } from '../config/key-hash.ts'
import type { TokenFinding, TokenIdentity } from '../domain/identity.ts'
import { AdminDirectory } from './admin-directory.ts'
import { authenticate, type Caller, identify, jwtOf, tokenOf } from './authenticate.ts'
import { SUBJECTS_MAX, TenantDirectory } from './tenant-directory.ts'

const directory = new TenantDirectory(
  [makeTenant('a', { contract: 'degrade' }), makeTenant('b')],
  [{ key: makeKey('ka', 'a'), hash: hashKey('sk-a') }],
  [{ region: 'us', hash: hashKey('sk-peer') }],
)

const who = (headers: Record<string, string>) => identify(directory, { req: { headers } })
const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

describe('who calls', () => {
  it('is a client with its own key, whatever it says of hops', () => {
    const caller = who({ ...bearer('sk-a'), 'x-spillway-hops': '3', 'x-spillway-origin': 'x' })
    expect(caller).toMatchObject({ tenant: { id: 'a', contract: 'degrade' }, key: { id: 'ka' } })
    expect(caller).not.toHaveProperty('sentOn')
  })

  it('is a client whose key has spaces', () => {
    const spaced = new TenantDirectory(
      [makeTenant('a')],
      [{ key: makeKey('ka', 'a'), hash: hashKey('my own key') }],
      [],
    )
    for (const authorization of ['Bearer my own key', 'bearer  my own key ']) {
      expect(identify(spaced, { req: { headers: { authorization } } })).toMatchObject({ key: { id: 'ka' } })
    }
    expect(tokenOf({ authorization: 'Bearer  ' })).toBeUndefined()
  })

  it.each([
    ['nobody', {}, 'invalid-api-key'],
    ['a stranger', bearer('sk-x'), 'invalid-api-key'],
    ['a stranger who names a tenant', { ...bearer('sk-x'), 'x-spillway-tenant': 'a' }, 'invalid-api-key'],
    ['a client that acts for a tenant', { ...bearer('sk-a'), 'x-spillway-tenant': 'b' }, 'not-a-peer'],
    ['a client that acts for itself', { ...bearer('sk-a'), 'x-spillway-tenant': 'a' }, 'not-a-peer'],
    ['a peer for nobody', bearer('sk-peer'), 'unknown-tenant'],
    ['a peer for somebody unknown', { ...bearer('sk-peer'), 'x-spillway-tenant': 'z' }, 'unknown-tenant'],
  ])('is %s: refused', (_, headers, code) => expect(who(headers)).toMatchObject({ code }))

  it('is a peer for a tenant: never degraded, on no key of the tenant’s, sent on at least once', () => {
    const headers = { ...bearer('sk-peer'), 'x-spillway-tenant': 'a' }
    const caller = who(headers)
    expect(caller).toMatchObject({
      tenant: { id: 'a', contract: 'reject' },
      key: { id: 'a@us', tenantId: 'a', allowance: {} },
      sentOn: { origin: 'us', hops: 1 },
    })
    expect(who({ ...headers, 'x-spillway-hops': '0', 'x-spillway-origin': 'ap' })).toMatchObject({
      sentOn: { origin: 'ap', hops: 1 },
    })
    expect(who({ ...headers, 'x-spillway-hops': '2' })).toMatchObject({ sentOn: { hops: 2 } })
    expect('key' in caller && 'key' in who(headers) && caller.key === (who(headers) as typeof caller).key).toBe(true)
  })
})

const ada: TokenIdentity = {
  issuerId: 'corp',
  subject: 'ada@corp.example',
  tenantId: 'a',
  roles: [],
  allowance: { concurrencyMax: 2 },
}
const proved = (more: Partial<TokenIdentity> = {}): TokenFinding => ({ kind: 'known', identity: { ...ada, ...more } })
const nowhere: TokenFinding = { kind: 'known', identity: { issuerId: 'corp', subject: 's', roles: [], allowance: {} } }
const noted: unknown[] = []
const visit = { noteKey: (...told: unknown[]) => void noted.push(told) }
const ask = (proof: TokenFinding, headers: Record<string, string> = {}) => ({ req: { headers }, visit, proof })

describe('who calls with a token', () => {
  it('is its tenant, with a key of its own that says nothing of the person', () => {
    const caller = identify(directory, ask(proved())) as Caller
    expect(caller).toMatchObject({
      tenant: { id: 'a', contract: 'degrade' },
      key: { tenantId: 'a', weight: 1, allowance: { concurrencyMax: 2 } },
    })
    // As docs/operations/oidc.md tells operators to find it: printf 'corp\na\nada@corp.example' | sha256sum
    expect(caller.key.id).toBe('corp@59743a6a3ef90de7')
    expect(identify(directory, ask(proved()))).toBe(caller)
    expect(authenticate(directory, ask(proved()))).toBe(caller)
  })

  it('is somebody else for another subject, tenant or issuer: lanes are found by the key’s id', () => {
    const ids = [{}, { subject: 'bob' }, { tenantId: 'b' }, { issuerId: 'other' }].map(
      (more) => (authenticate(directory, ask(proved(more))) as Caller).key.id,
    )
    expect(new Set(ids).size).toBe(4)
  })

  it.each([
    ['a wrong token', { kind: 'refused', because: 'The token has expired.' }, 'invalid-token', [[false, undefined]]],
    ['a token that nobody could check', { kind: 'unchecked', because: 'x' }, 'issuer-unavailable', []],
    ['a token without a tenant', nowhere, 'token-without-tenant', [[false, undefined]]],
    ['a token of a tenant that is not there', proved({ tenantId: 'z' }), 'token-without-tenant', [[false, undefined]]],
    ['a token of no tenant’s name', proved({ tenantId: '' }), 'token-without-tenant', [[false, undefined]]],
  ] as const)('is %s: refused, and counted if it is wrong', (_, proof, code, told) => {
    for (const way of [authenticate, identify]) {
      noted.length = 0
      expect(way(directory, ask(proof, bearer('sk-a')))).toMatchObject({ code })
      expect(noted).toEqual(told)
    }
  })

  it('may not act for another tenant', () => {
    expect(identify(directory, ask(proved(), { 'x-spillway-tenant': 'b' }))).toMatchObject({ code: 'not-a-peer' })
  })

  it('is kept within a bound, and forgotten when tenants change', () => {
    const tenants = [makeTenant('a')]
    const small = new TenantDirectory(tenants, [])
    for (let i = 0; i <= SUBJECTS_MAX; i++) small.byIdentity({ ...ada, subject: `s${i}` })
    expect(small.subjectCount).toBe(SUBJECTS_MAX)
    const before = small.byIdentity(ada)
    small.replace([makeTenant('a', { contract: 'reject' })], [], [])
    expect(small.byIdentity(ada)).toMatchObject({ tenant: { contract: 'reject' }, key: { id: before?.key.id } })
    small.replace([], [], [])
    expect(small.byIdentity(ada)).toBeUndefined()
  })
})

describe('who administers with a token', () => {
  const admins = new AdminDirectory([], directory, ['platform-admin'])

  it.each([
    ['an administrator', proved({ roles: ['platform-admin'], subject: 'ada' }), 'corp@ada'],
    [
      'an administrator without a tenant',
      { ...nowhere, identity: { ...nowhere.identity, roles: ['platform-admin'] } },
      'corp@s',
    ],
  ] as const)('is %s', (_, proof, name) => expect(admins.whoIs(ask(proof))).toBe(name))

  it('is named by a hash where the subject is no name', () => {
    expect(admins.whoIs(ask(proved({ roles: ['platform-admin'] })))).toMatch(/^corp@[0-9a-f]{16}$/)
  })

  it.each([
    ['a tenant', proved(), 'not-admin'],
    ['a reader of metrics', proved({ roles: ['metrics-reader'] }), 'not-admin'],
    ['nobody', nowhere, 'token-without-tenant'],
    ['a stranger', { kind: 'refused', because: 'x' }, 'invalid-token'],
  ] as const)('is not %s', (_, proof, code) => expect(admins.refuse(ask(proof))).toMatchObject({ code }))
})

describe('the token of a header', () => {
  const long = 'x'.repeat(600)

  it.each([
    ['a key', 'Bearer sk-a', 'sk-a', undefined],
    ['a key that is too long', `Bearer ${long}`, undefined, undefined],
    ['a JWT', 'Bearer a.b-.c_', 'a.b-.c_', 'a.b-.c_'],
    ['a JWT without a signature', 'bearer  a.b. ', 'a.b.', 'a.b.'],
    ['a long JWT', `Bearer ${long}.${long}.x`, `${long}.${long}.x`, `${long}.${long}.x`],
    ['a huge JWT', `Bearer ${'x'.repeat(8_192)}.b.c`, undefined, undefined],
    ['four parts', 'Bearer a.b.c.d', 'a.b.c.d', undefined],
    ['encrypted, five parts', `Bearer ${long}.b.c.d.e`, undefined, undefined],
    ['another scheme', 'Basic a.b.c', undefined, undefined],
    ['nothing', undefined, undefined, undefined],
  ])('is %s', (_, header, token, jwt) => {
    const headers = header === undefined ? {} : { authorization: header }
    expect(tokenOf(headers)).toBe(token)
    expect(jwtOf(headers)).toBe(jwt)
  })

  it.each(['x-api-key', 'api-key'])('stands alone in %s', (name) => {
    expect(tokenOf({ [name]: 'sk-a' })).toBe('sk-a')
    expect(jwtOf({ [name]: 'a.b.c' })).toBe('a.b.c')
    for (const wrong of ['', ' ', 'sk-a, sk-b', 'sk a', long, `${'x'.repeat(8_192)}.b.c`])
      expect(tokenOf({ [name]: wrong })).toBeUndefined()
  })

  it('is the first of bearer, x-api-key and api-key, and a wrong first one is not made good by the next', () => {
    const all = { authorization: 'Bearer sk-a', 'x-api-key': 'sk-b', 'api-key': 'sk-c' }
    expect(tokenOf(all)).toBe('sk-a')
    expect(tokenOf({ ...all, authorization: undefined })).toBe('sk-b')
    expect(tokenOf({ 'x-api-key': 'two keys', 'api-key': 'sk-c' })).toBeUndefined()
    expect(tokenOf({ ...all, authorization: `Bearer ${long}` })).toBeUndefined()
    // A scheme that is no bearer belongs to a proxy in front.
    expect(tokenOf({ ...all, authorization: 'Basic dTpw' })).toBe('sk-b')
  })
})
