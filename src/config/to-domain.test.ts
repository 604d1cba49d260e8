import { expect, it } from 'vitest'
import { sharePathOf } from '../domain/share-path.ts'
import { parseConfigFile } from './fs-config-file.ts'
import { hashKey } from './key-hash.ts'
import { buildConfig } from './load.ts'
import { profileOf, toKeys, toModels, toPools, toReleases, toTenants } from './to-domain.ts'

const yaml = `
models: [{ name: m }]
pools:
  - { model: m, backend: { kind: http-openai }, replicas: ["http://a/v1", "http://b/v1"], limit: { kind: fixed, concurrencyMax: 7 } }
  - { id: far, model: m, region: eu, backend: { kind: simulated }, replicas: 3 }
tenants:
  - { id: a, org: o, weight: 2, slo: fast, waitMsMax: 5, allowance: { requests: { perMinute: 6 }, concurrencyMax: 9 } }
  - { id: b, keys: [{ id: k, hash: "${hashKey('sk-x')}", weight: 3 }] }
`
const config = buildConfig(parseConfigFile('s.yaml', yaml), {})

it('makes pools with named replicas and their addresses', () => {
  const [near, far] = toPools(config)
  expect(near?.pool).toMatchObject({ id: 'm-local', model: 'm', region: 'local' })
  expect(near?.pool.replicas.map((replica) => [replica.id, replica.poolId])).toEqual([
    ['m-local-a', 'm-local'],
    ['m-local-b', 'm-local'],
  ])
  expect(near?.urls.get('m-local-b')).toBe('http://b/v1')
  expect(near?.limit.concurrencyMax).toBe(7)
  expect(far?.pool.replicas.map((replica) => replica.id)).toEqual(['far-0', 'far-1', 'far-2'])
  expect(far?.urls.size).toBe(0)
})

it('names a replica by its address, which stays when others come and go', () => {
  const namesOf = (replicas: string): string[] => {
    const pool = `models: [{ name: m }]\npools: [{ model: m, backend: { kind: http-openai }, replicas: ${replicas} }]`
    const tenants = 'tenants: [{ id: a, keys: [] }]'
    const [setup] = toPools(buildConfig(parseConfigFile('s.yaml', `${pool}\n${tenants}`), {}))
    return setup?.pool.replicas.map(({ id }) => id) ?? []
  }
  expect(namesOf('["http://gpu-1:8000/v1", "https://api.example.org/v1/", "http://gpu-1:8000/v1"]')).toEqual([
    'm-local-gpu-1:8000',
    'm-local-api.example.org',
    'm-local-gpu-1:8000#2',
  ])
  expect(namesOf('["https://api.example.org/v1/"]')).toEqual(['m-local-api.example.org'])
})

it('makes a replica of every gateway of another region, and calls the only one as its pool', () => {
  const peerPool = (address: string) => {
    const text = `models: [{ name: m }]
pools: [{ model: m, region: eu, backend: { kind: http-openai }, replicas: ["http://g/v1"] }]
tenants: [{ id: a, keys: [] }]
regions: { local: eu, peers: [{ region: us, apiKey: k, ${address} }] }`
    const setup = toPools(buildConfig(parseConfigFile('s.yaml', text), {}))[1]
    return setup?.pool.replicas.map(({ id }) => [id, setup.urls.get(id)])
  }
  expect(peerPool('url: "http://us:8080/v1"')).toEqual([['us:m', 'http://us:8080/v1']])
  expect(peerPool('urls: ["http://us-1/v1", "http://us-2/v1"]')).toEqual([
    ['us:m-us-1', 'http://us-1/v1'],
    ['us:m-us-2', 'http://us-2/v1'],
  ])
})

it('gives a simulated replica that comes later the profile that its number has', () => {
  const profiles = 'profiles: [h100-llama-8b, a100-llama-8b]'
  const poolOf = (count: number) => {
    const text = `models: [{ name: m }]
pools: [{ model: m, backend: { kind: simulated, profile: h100-llama-8b, ${profiles} }, replicas: ${count} }]
tenants: [{ id: a, keys: [] }]`
    const [setup] = toPools(buildConfig(parseConfigFile('s.yaml', text), {}))
    return setup!
  }
  const later = poolOf(2).pool.replicas[1]!
  expect(profileOf(poolOf(1), later)).toBe('a100-llama-8b')
})

it('makes tenants in microseconds, with what is absent filled in', () => {
  const [a, b] = toTenants(config)
  expect(a).toMatchObject({
    id: 'a',
    orgId: 'o',
    weight: 2,
    queueUsMax: 5_000,
    slo: { name: 'fast', ttftUs: 1_000_000 },
  })
  expect(a?.allowance).toEqual({ requests: { perMinute: 6, burst: 6 }, concurrencyMax: 9 })
  expect(b).toMatchObject({ orgId: 'b', queueUsMax: 30_000_000, slo: { name: 'steady' }, allowance: {} })
})

it('gives tenants the weight of their org where it has one of its own', () => {
  const yaml = `models: [{ name: m }]
pools: [{ model: m, backend: { kind: simulated } }]
orgs: [{ id: o, weight: 3 }, { id: c, weight: 2 }]
tenants: [{ id: a, org: o }, { id: b, org: p }, { id: c }]`
  const tenants = toTenants(buildConfig(parseConfigFile('s.yaml', yaml), {}))
  expect(tenants.map(({ orgWeight }) => orgWeight)).toEqual([3, undefined, 2])
  expect(sharePathOf(tenants[0]!, { id: 'k', tenantId: 'a', weight: 1, allowance: {} }).org).toEqual({
    id: 'o',
    weight: 3,
  })
})

it('makes keys and models', () => {
  expect(toKeys(config)).toEqual([{ key: { id: 'k', tenantId: 'b', weight: 3, allowance: {} }, hash: hashKey('sk-x') }])
  expect(toModels(config)[0]).toMatchObject({ name: 'm', fallback: undefined, contextTokensMax: 32_768 })
})

it('gives a model without releases one, and its pools to it', () => {
  expect(toModels(config)[0]?.releases).toEqual(['m@1'])
  expect(toReleases(config)).toMatchObject([{ id: 'm@1', version: '1', contextTokensMax: 32_768, fallback: undefined }])
  expect(toPools(config).map(({ pool }) => [pool.releaseId, pool.replicas[0]?.releaseId])).toEqual([
    ['m@1', 'm@1'],
    ['m@1', 'm@1'],
  ])
})

it('makes releases that say only where they differ, and pools of theirs', () => {
  const two = `
models: [{ name: m, contextTokensMax: 100, releases: [{ version: a }, { version: b, contextTokensMax: 50, artifact: "s3://b" }] }]
pools:
  - { model: m, backend: { kind: simulated } }
  - { model: m, release: b, backend: { kind: simulated } }
tenants: [{ id: t }]
`
  const parsed = buildConfig(parseConfigFile('s.yaml', two), {})
  expect(toReleases(parsed)).toMatchObject([
    { id: 'm@a', contextTokensMax: 100 },
    { id: 'm@b', contextTokensMax: 50, artifact: 's3://b' },
  ])
  expect(toPools(parsed).map(({ pool }) => [pool.id, pool.releaseId])).toEqual([
    ['m-local', 'm@a'],
    ['m-b-local', 'm@b'],
  ])
})
