import { describe, expect, it } from 'vitest'
import { buildConfig } from './load.ts'
import { redacted } from './redact.ts'
import type { Config } from './schema.ts'

type Tree = Record<string, unknown>

const config = (sharing: Tree, more: Tree = {}, env: Record<string, string> = {}): Config => {
  const tree = { tenants: [{ id: 'a', keys: [] }], sharing, ...more }
  return buildConfig({ path: 'test.yaml', tree, lineOf: () => undefined }, env)
}

describe('settings of sharing', () => {
  it.each<[string, Tree, string]>([
    ['a password without an address', { redis: { password: 'x' } }, 'there is no address'],
    ['several servers', { redis: { url: 'redis://a,redis://b' } }, 'sentinel or cluster'],
    ['no scheme', { redis: { url: 'a:6379' } }, 'sharing.redis.url'],
    ['TLS for some', { redis: { url: 'redis://a,rediss://b', kind: 'cluster' } }, 'with TLS and without'],
    ['TLS settings without TLS', { redis: { url: 'redis://a', tls: { caFile: 'x' } } }, 'rediss://'],
    ['half a certificate', { redis: { url: 'rediss://a', tls: { certFile: 'x' } } }, 'Give both'],
    ['two passwords', { redis: { url: 'redis://a', password: 'x', passwordFile: 'y' } }, 'Keep one of them'],
    ['short memory', { redis: { url: 'redis://a' }, ttlMs: 5_000, forgetMs: 20_000 }, 'ten times'],
    ['all of no regions', { redis: { url: 'redis://a' }, scope: 'platform' }, 'regions.local'],
  ])('are refused with a reason: %s', (_name, sharing, says) => {
    expect(() => config(sharing)).toThrow(says)
  })

  it('come from the environment too, and no password is printed', () => {
    const env = {
      SPILLWAY_SHARING_REDIS_URL: 'redis://u:pw-first@a:1,redis://u:pw-second@b:2',
      SPILLWAY_SHARING_REDIS_PASSWORD: 'pw-third',
    }
    const made = config({ redis: { kind: 'cluster' } }, {}, env)
    expect(made.sharing.redis).toMatchObject({ url: env.SPILLWAY_SHARING_REDIS_URL, password: 'pw-third' })
    const printed = JSON.stringify(redacted(made))
    for (const secret of ['pw-first', 'pw-second', 'pw-third']) expect(printed).not.toContain(secret)
    expect(printed).toContain('redis://(hidden)@b:2')
  })

  it('warn of limits that long prompts will not fit into', () => {
    const tenants = [{ id: 'a', keys: [], allowance: { tokens: { perMinute: 10_000 } } }]
    const shared = { redis: { url: 'redis://a' } }
    expect(config({}, { tenants }).warnings).toEqual([])
    expect(config(shared, { tenants }).warnings).toEqual([expect.stringContaining('more than 7500 tokens never fits')])
    const roomy = [{ ...tenants[0], allowance: { tokens: { perMinute: 10_000, burst: 20_000 } } }]
    expect(config(shared, { tenants: roomy }).warnings).toEqual([])
    const many = Array.from({ length: 9 }, (_, i) => ({ ...tenants[0], id: `t${i}` }))
    expect(config(shared, { tenants: many }).warnings).toHaveLength(6)
  })
})

it('says that several gateways without a common database have no leader, where a release is tried', () => {
  const warningsOf = (tree: Tree): readonly string[] =>
    buildConfig({ path: 's.yaml', tree: { tenants: [{ id: 'a', keys: [] }], ...tree }, lineOf: () => undefined }, {})
      .warnings
  const rollout = { stable: '1', canary: '2' }
  const models = [{ name: 'm', releases: [{ version: '1' }, { version: '2' }], rollout }]
  const pools = ['1', '2'].map((release) => ({
    id: `p${release}`,
    model: 'm',
    release,
    backend: { kind: 'simulated' },
  }))
  const sharing = { redis: { url: 'redis://127.0.0.1:6379' } }
  const store = { url: 'postgres://spillway@127.0.0.1/spillway' }
  expect(warningsOf({ models, pools, sharing }).join()).toMatch(/no gateway leads, so no release of m is promoted/)
  expect(warningsOf({ models, pools, sharing, store }).join()).not.toMatch(/leads/)
  expect(warningsOf({ models, pools }).join()).not.toMatch(/leads/)
  expect(warningsOf({ sharing }).join()).not.toMatch(/leads/)
})
