import { describe, expect, it } from 'vitest'
import { issuerTerms } from '../../test/support/token-issuer.ts'
import { identityOf } from './claims-to-identity.ts'

const tenants = new Map([
  ['team-a', 'acme'],
  ['team-b', 'acme'],
  ['team-c', 'globex'],
])

const tenantOf = (claims: Record<string, unknown>, terms: Parameters<typeof issuerTerms>[0] = {}) => {
  const found = identityOf({ sub: 's', ...claims }, issuerTerms(terms))
  return found.kind === 'known' ? (found.identity.tenantId ?? 'none') : found.kind
}

describe('the tenant of a token', () => {
  it.each([
    ['the claim itself', { tenant: 'acme' }, {}, 'acme'],
    ['no claim', {}, {}, 'none'],
    ['a claim that is no text', { tenant: { acme: true } }, {}, 'none'],
    ['a list of one', { tenant: ['acme'] }, {}, 'acme'],
    ['the same twice', { tenant: ['acme', 'acme'] }, {}, 'acme'],
    ['a list of two', { tenant: ['acme', 'globex'] }, {}, 'refused'],
    ['a mapped value', { groups: ['x', 'team-a'] }, { tenantClaim: 'groups', tenants }, 'acme'],
    ['two values of one tenant', { groups: ['team-a', 'team-b'] }, { tenantClaim: 'groups', tenants }, 'acme'],
    ['values of two tenants', { groups: ['team-a', 'team-c'] }, { tenantClaim: 'groups', tenants }, 'refused'],
    [
      'a value that is not mapped, though a tenant has its name',
      { groups: ['acme'] },
      { tenantClaim: 'groups', tenants },
      'none',
    ],
    ['the issuer’s own', { tenant: 'globex' }, { tenantId: 'acme' }, 'acme'],
    ['a path', { a: { b: 'acme' } }, { tenantClaim: 'a.b' }, 'acme'],
    ['a name with dots', { 'https://x.io/t': 'acme' }, { tenantClaim: 'https://x.io/t' }, 'acme'],
    ['the name before the path', { 'a.b': 'acme', a: { b: 'globex' } }, { tenantClaim: 'a.b' }, 'acme'],
    ['a path of names with dots', { 'k8s.io': { pod: 1, 'a.b': 'acme' } }, { tenantClaim: 'k8s.io.a.b' }, 'acme'],
    ['what every object inherits', {}, { tenantClaim: 'constructor.name' }, 'none'],
    ['what a list inherits', { a: [] }, { tenantClaim: 'a.length' }, 'none'],
    ['more groups than are looked through', { tenant: Array(1_001).fill('acme') }, {}, 'none'],
  ])('is %s', (_, claims, terms, tenantId) => expect(tenantOf(claims, terms)).toBe(tenantId))
})

describe('the roles of a token', () => {
  const roles = new Map([
    ['ops', 'platform-admin'],
    ['root', 'platform-admin'],
    ['grafana', 'metrics-reader'],
  ] as const)
  const rolesOf = (claims: Record<string, unknown>, roleClaim: string | undefined = 'roles') => {
    const terms = issuerTerms({ roles, ...(roleClaim !== '' && { roleClaim }) })
    const found = identityOf({ sub: 's', ...claims }, terms)
    return found.kind === 'known' ? found.identity.roles : found.kind
  }

  it.each([
    [{ roles: ['ops', 'root', 'x'] }, ['platform-admin']],
    [{ roles: 'grafana' }, ['metrics-reader']],
    [{ roles: ['admin'] }, []],
    [{}, []],
  ])('of %j are %j', (claims, found) => expect(rolesOf(claims)).toEqual(found))

  it('are none where no claim is configured', () => expect(rolesOf({ roles: ['ops'] }, '')).toEqual([]))
})

describe('a token is refused', () => {
  it.each([
    ['without a subject', { sub: undefined }, 'no subject'],
    ['with a subject that is no text', { sub: 7 }, 'no subject'],
    ['with an empty subject', { sub: '' }, 'no subject'],
    ['with a subject that is too long', { sub: 'x'.repeat(256) }, '255 letters'],
    ['that is bound to a key of its client', { sub: 's', cnf: { jkt: 'x' } }, 'cannot be checked here'],
  ])('%s', (_, claims, because) =>
    expect(identityOf(claims, issuerTerms())).toEqual({ kind: 'refused', because: expect.stringContaining(because) }),
  )
})
