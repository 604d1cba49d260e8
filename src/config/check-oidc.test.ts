import { describe, expect, it } from 'vitest'
import { testTree } from '../../test/support/start-platform.ts'
import { ConfigError } from './config-error.ts'
import { buildConfig } from './load.ts'
import { toIssuers } from './to-issuers.ts'

const issuer = { id: 'corp', issuer: 'https://login.example', audience: ['spillway'] }

const load = (...issuers: object[]) =>
  buildConfig({ path: 'test.yaml', tree: testTree({ oidc: { issuers } }), lineOf: () => undefined }, {})

function problemsOf(...issuers: object[]): string {
  try {
    load(...issuers)
    return ''
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

describe('an issuer', () => {
  it('needs a name, its address and an audience; the rest has safe defaults', () => {
    expect(toIssuers(load(issuer))).toEqual([
      {
        issuerId: 'corp',
        issuer: 'https://login.example',
        audiences: ['spillway'],
        algorithms: ['RS256', 'ES256'],
        leewayUs: 60_000_000,
        refreshUs: 300_000_000,
        tenantClaim: 'tenant',
        roles: new Map(),
        allowance: {},
      },
    ])
  })

  it('may say everything', () => {
    const all = {
      ...issuer,
      jwksUrl: 'https://login.example/keys',
      tenantClaim: 'groups',
      tenants: { a: 'acme' },
      roleClaim: 'roles',
      roles: { ops: 'platform-admin' },
      allowance: { concurrencyMax: 2 },
    }
    expect(toIssuers(load(all))[0]).toMatchObject({
      jwksUrl: 'https://login.example/keys',
      tenantClaim: 'groups',
      tenants: new Map([['a', 'acme']]),
      roleClaim: 'roles',
      roles: new Map([['ops', 'platform-admin']]),
      allowance: { concurrencyMax: 2 },
    })
  })

  it.each([
    ['lacks an audience', { audience: undefined }, 'lacks "audience"'],
    ['has an empty list of audiences', { audience: [] }, 'oidc.issuers[0].audience'],
    ['allows no signature', { algorithms: ['none'] }, 'algorithms[0] is "none"'],
    ['allows HMAC', { algorithms: ['HS256'] }, 'algorithms[0] is "HS256"'],
    ['has a leeway of an hour', { leewayS: 3_600 }, 'leewayS'],
    ['is a metadata service', { issuer: 'http://169.254.169.254/x' }, 'upstreams.hostsAllowed'],
    ['has its keys at a metadata service', { jwksUrl: 'http://metadata.google.internal/' }, 'jwksUrl is the metadata'],
    ['has its keys on the open network', { jwksUrl: 'http://keys.example/' }, 'plainHttp: true'],
    ['is asked for its keys on the open network', { issuer: 'http://login.example' }, 'issuer begins with http:'],
    ['has a password', { jwksUrl: 'https://u:p@login.example/' }, 'Remove it: keys are public'],
    [
      'names a tenant that is not there',
      { tenant: 'acm' },
      'tenant is "acm", but there is no such tenant. Did you mean "acme"?',
    ],
    ['maps to a tenant that is not there', { tenants: { x: 'zeta' } }, 'Known: acme, globex'],
    ['has two ways to the tenant', { tenant: 'acme', tenantClaim: 'x' }, 'Keep one way'],
    ['has roles without a claim', { roles: { ops: 'platform-admin' } }, 'Set roleClaim'],
    ['has a claim without roles', { roleClaim: 'roles' }, 'Set roles'],
    ['has an unknown role', { roleClaim: 'r', roles: { ops: 'root' } }, 'roles.ops is "root"'],
    ['has a misspelt setting', { audiance: 'x' }, 'Did you mean "audience"?'],
  ])('that %s is refused', (_, more, says) => expect(problemsOf({ ...issuer, ...more })).toContain(says))

  it.each([
    ['on loopback', { issuer: 'http://127.0.0.1:9000' }],
    ['on loopback by name', { issuer: 'http://localhost:9000' }],
    ['without TLS where that is allowed', { issuer: 'http://keycloak:8080/realms/x', plainHttp: true }],
    ['without TLS where its keys have it', { issuer: 'http://old.example', jwksUrl: 'https://keys.example' }],
  ])('%s is accepted', (_, more) => expect(problemsOf({ ...issuer, ...more })).toBe(''))

  it('is there once', () => {
    expect(problemsOf(issuer, { ...issuer, issuer: 'https://b.example' })).toContain('issuers[1].id is "corp"')
    expect(problemsOf(issuer, { ...issuer, id: 'b' })).toContain('issuers[1].issuer is "https://login.example"')
  })
})
