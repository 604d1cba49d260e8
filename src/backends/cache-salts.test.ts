import { describe, expect, it } from 'vitest'
import { ACME, makeRequest } from '../../test/support/requests.ts'
import { cacheScopeOf } from '../domain/request.ts'
import type { Tenant } from '../domain/tenant.ts'
import { CacheSalts } from './cache-salts.ts'

const salts = new CacheSalts(() => 'a secret of these gateways')
const saltOf = (tenant: Partial<Tenant>, cacheSalt?: string): string =>
  salts.of(cacheScopeOf(makeRequest({ tenant: { ...ACME, ...tenant }, cacheSalt })))

describe('salts of cache scopes', () => {
  it('differ between tenants, and are the same for one', () => {
    expect(saltOf({ id: 'acme' })).toBe(saltOf({ id: 'acme' }))
    expect(saltOf({ id: 'acme' })).not.toBe(saltOf({ id: 'globex' }))
  })

  it('are one for the tenants of an org that share, and another for those that do not', () => {
    const org = { orgId: 'group', prefixCache: 'org' } as const
    expect(saltOf({ ...org, id: 'a' })).toBe(saltOf({ ...org, id: 'b' }))
    expect(saltOf({ ...org, id: 'a' })).not.toBe(saltOf({ id: 'a', orgId: 'group' }))
  })

  it('never mix up a tenant with an org of the same name', () => {
    expect(saltOf({ id: 'acme' })).not.toBe(saltOf({ id: 'x', orgId: 'acme', prefixCache: 'org' }))
  })

  it('do not tell whose they are, and need the secret', () => {
    const salt = saltOf({ id: 'acme' })
    expect(salt).toMatch(/^[\w-]{43}$/)
    expect(salt).not.toContain('acme')
    expect(new CacheSalts(() => 'another secret').of('tenant acme')).not.toBe(salt)
    expect(new CacheSalts(() => 'a secret of these gateways').of('tenant acme')).toBe(salt)
  })

  it.each(['tenant acme', 'acme', '\u0000', '"'])('of a client that sends %j stay within its tenant', (sent) => {
    const others = [saltOf({ id: 'acme' }), saltOf({ id: 'acme' }, sent), saltOf({ id: 'globex' })]
    expect(others).not.toContain(saltOf({ id: 'globex' }, sent))
  })

  it('of a client that sends the very salt of another tenant stay within its tenant', () => {
    const seen = saltOf({ id: 'acme' })
    expect(saltOf({ id: 'globex' }, seen)).not.toBe(seen)
    expect(saltOf({ id: 'globex', prefixCache: 'shared' }, seen)).not.toBe(seen)
  })

  it('change with the secret, which a gateway may hear of late', () => {
    let secret = 'its own'
    const late = new CacheSalts(() => secret)
    const before = late.of('tenant acme')
    secret = 'a secret of these gateways'
    expect(late.of('tenant acme')).not.toBe(before)
    expect(late.of('tenant acme')).toBe(saltOf({ id: 'acme' }))
  })

  it('are remembered up to a bound, and those of clients not at all', () => {
    const many = new CacheSalts(() => 's')
    const first = many.of('tenant 0')
    let most = 0
    for (let i = 0; i < 25_000; i++) {
      many.of(`tenant ${i}`)
      many.of(`tenant 1\u0000${i}`)
      most = Math.max(most, many.size)
    }
    expect(most).toBe(10_000)
    expect(many.of('tenant 0')).toBe(first)
  })
})
