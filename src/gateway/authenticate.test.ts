import { describe, expect, it } from 'vitest'
import { makeKey, makeTenant } from '../../test/support/demand.ts'
import { hashKey } from '../config/key-hash.ts'
import { identify } from './authenticate.ts'
import { TenantDirectory } from './tenant-directory.ts'

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
