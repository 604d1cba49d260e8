import { describe, expect, it } from 'vitest'
import { hashKey } from './key-hash.ts'
import { buildConfig } from './load.ts'
import { toRecords } from './to-records.ts'

const tree = {
  models: [{ name: 'm' }],
  pools: [{ model: 'm', backend: { kind: 'simulated' } }],
  orgs: [{ id: 'acme', weight: 3 }],
  tenants: [
    {
      id: 'shop',
      org: 'acme',
      bands: ['offline'],
      waitMsMax: 5,
      storing: { countMax: 7 },
      allowance: { concurrencyMax: 2 },
      keys: [{ id: 'web', hash: hashKey('sk-web'), allowance: { requests: { perMinute: 6 } } }],
    },
    { id: 'alone' },
  ],
}

describe('records of the configuration file', () => {
  const { orgs, tenants, keys } = toRecords(buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, {}))

  it('have an org for every tenant, with a weight only where the file gives one', () => {
    expect(orgs).toMatchObject([
      { id: 'acme', source: 'file', weight: 3, terms: {} },
      { id: 'alone', source: 'file', terms: {} },
    ])
    expect(orgs[1]).not.toHaveProperty('weight')
    expect(orgs[0]?.slos).toContain('steady')
  })

  it('have the tenants’ bands and limits as terms', () => {
    expect(tenants[0]).toMatchObject({ id: 'shop', orgId: 'acme', source: 'file', queueUsMax: 5_000 })
    expect(tenants[0]?.terms).toEqual({ bands: ['offline'], allowance: { concurrencyMax: 2 } })
    expect(tenants[0]?.storing).toEqual({ ttlS: 2_592_000, countMax: 7, bytesMax: 268_435_456, shadows: false })
    expect(tenants[1]).toMatchObject({ id: 'alone', orgId: 'alone' })
    expect(tenants[1]).not.toHaveProperty('storing')
    expect(tenants[1]?.terms).not.toHaveProperty('allowance')
  })

  it('have keys with the bare hash, which manage nothing', () => {
    expect(keys).toEqual([
      {
        id: 'web',
        tenantId: 'shop',
        source: 'file',
        weight: 1,
        role: 'member',
        secrets: [{ hash: hashKey('sk-web').slice('sha256:'.length), createdAtMs: 0 }],
        terms: { allowance: { requests: { perMinute: 6, burst: 6 } } },
      },
    ])
  })
})
