import { describe, expect, it } from 'vitest'
import { ControlledWorld } from '../../test/support/controlled-world.ts'
import { hashKey } from '../config/key-hash.ts'
import { buildConfig } from '../config/load.ts'
import type { TokenIdentity } from '../domain/identity.ts'
import { identify, type KeyBearer } from '../gateway/authenticate.ts'
import { BEHALF_MAX } from '../gateway/tenant-directory.ts'
import { MemoryTenancyStore } from '../store/memory-tenancy-store.ts'

/** Tokens and peers have no key in the tree; the tenants that they name may be made, changed and removed at run time. */
const because = 'a test'
const PEER_KEY = 'sk-peer'

async function start(isInUse = false): Promise<ControlledWorld> {
  const tree = {
    models: [{ name: 'm' }],
    pools: [{ model: 'm', backend: { kind: 'simulated' } }],
    tenants: [{ id: 'filed', keys: [{ id: 'filed-1', hash: hashKey('sk-file') }] }],
    regions: {
      local: 'eu',
      peers: [{ region: 'us', url: 'http://127.0.0.1:1/v1', apiKeyEnv: 'US_KEY', hash: hashKey(PEER_KEY) }],
    },
  }
  const config = buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, { US_KEY: 'sk-us' })
  return ControlledWorld.start(config, { tenancyStore: new MemoryTenancyStore(), isInUse })
}

async function makeTenant({ control: { tenancy } }: ControlledWorld, orgId = 'acme'): Promise<void> {
  await tenancy.change('ada', { kind: 'create-org', id: orgId, slos: ['steady'], because })
  const made = await tenancy.change('ada', { kind: 'create-tenant', id: 'shop', orgId, because })
  expect(made.kind).toBe('changed')
}

const ada: TokenIdentity = { issuerId: 'corp', subject: 'ada', tenantId: 'shop', roles: [], allowance: {} }

const asToken =
  (more: Partial<TokenIdentity> = {}) =>
  ({ control }: ControlledWorld) =>
    identify(control.tenants, { req: { headers: {} }, proof: { kind: 'known', identity: { ...ada, ...more } } })

const asPeer =
  (tenant = 'shop') =>
  ({ control }: ControlledWorld) => {
    const bearer: KeyBearer = { req: { headers: { authorization: `Bearer ${PEER_KEY}`, 'x-spillway-tenant': tenant } } }
    return identify(control.tenants, bearer)
  }

const WAYS = [
  ['a token', asToken(), 'token-without-tenant'],
  ['a peer', asPeer(), 'unknown-tenant'],
] as const

describe.each(WAYS)('a tenant that is made at run time, for %s', (way, call, code) => {
  it('is reached at once, followed through changes and gone at once', async () => {
    const world = await start()
    const { tenancy } = world.control
    expect(call(world)).toMatchObject({ code })
    await makeTenant(world)
    const first = call(world)
    expect(first).toMatchObject({
      tenant: { id: 'shop', orgId: 'acme', bands: ['interactive', 'standard', 'offline'] },
    })
    expect((call(world) as { key: object }).key).toBe((first as { key: object }).key)
    await tenancy.change('ada', { kind: 'change-tenant', id: 'shop', terms: { bands: ['offline'] }, because })
    expect(call(world)).toMatchObject({ tenant: { bands: ['offline'] } })
    await tenancy.change('ada', { kind: 'change-org', id: 'acme', terms: { models: [] }, because })
    const denial = (call(world) as { denial?: (of: object) => unknown }).denial
    expect(denial?.({ clientAddress: () => '10.0.0.1', route: 'chat', model: 'm' })).toBe('models')
    // The ladder reads the list: a token must not be answered by a smaller model either. A peer's request is not degraded.
    expect((call(world) as { models?: unknown }).models).toEqual(way === 'a peer' ? undefined : [])
    const allowance = { concurrencyMax: 3 }
    await tenancy.change('ada', { kind: 'change-org', id: 'acme', terms: { allowance }, because })
    expect(call(world)).toMatchObject({ tenant: { allowance, orgAllowance: allowance } })
    await tenancy.change('ada', { kind: 'remove-tenant', id: 'shop', because })
    expect(call(world)).toMatchObject({ code })
    expect(world.control.tenants.subjectCount + world.control.tenants.behalfCount).toBe(0)
    await makeTenant(world, 'globex')
    expect(call(world)).toMatchObject({ tenant: { id: 'shop', orgId: 'globex' } })
  })

  it('ends and begins with the times of its terms', async () => {
    const world = await start()
    await makeTenant(world)
    const endAt = 10_000_000
    const terms = { expiresAtMs: endAt / 1_000 }
    await world.control.tenancy.change('ada', { kind: 'change-org', id: 'acme', terms, because })
    expect(call(world)).toMatchObject({ tenant: { id: 'shop' } })
    await world.run(endAt)
    expect(call(world)).toMatchObject({ code })
  })

  it('is held to client addresses where the address is the client’s', async () => {
    const world = await start()
    await makeTenant(world)
    const terms = { clientRanges: ['10.0.0.0/8'] }
    await world.control.tenancy.change('ada', { kind: 'change-tenant', id: 'shop', terms, because })
    const denial = (call(world) as { denial: (of: object) => unknown }).denial
    expect(denial({ clientAddress: () => '203.0.113.9', route: 'chat' })).toBe(
      way === 'a peer' ? undefined : 'clientRanges',
    )
  })

  it('is not called unknown while the store has not been read', async () => {
    const world = await start(true)
    expect(call(world)).toMatchObject({ code: 'keys-unavailable', blame: 'platform' })
    await world.control.tenancy.tenancy.start()
    expect(call(world)).toMatchObject({ code })
  })
})

describe('an issuer that may name tenants of some orgs only', () => {
  it('reaches those, of the file too, and no others', async () => {
    const world = await start()
    await makeTenant(world)
    expect(asToken({ orgIds: ['acme'] })(world)).toMatchObject({ tenant: { id: 'shop' } })
    expect(asToken({ orgIds: ['filed'] })(world)).toMatchObject({ code: 'token-without-tenant' })
    expect(asToken({ orgIds: ['filed'], tenantId: 'filed' })(world)).toMatchObject({ tenant: { id: 'filed' } })
    expect(asToken({ orgIds: ['acme'], tenantId: 'filed' })(world)).toMatchObject({ code: 'token-without-tenant' })
  })
})

describe('callers of peers', () => {
  it('are kept within a bound', async () => {
    const world = await start()
    const { tenants } = world.control
    const made = { tenant: tenants.tenants.get('filed')!, denial: () => undefined, peerDenial: () => undefined }
    tenants.addRunTime({
      callerOf: () => undefined,
      whyNot: () => undefined,
      noteUse: () => {},
      whyNoTenant: () => undefined,
      tenantOf: () => made,
    })
    for (let i = 0; i <= BEHALF_MAX; i++) tenants.onBehalf({ region: 'us' }, `t${i}`)
    expect(tenants.behalfCount).toBe(BEHALF_MAX)
  })
})
