import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { configs } from '../../test/support/draw-config.ts'
import { hashKey } from '../config/key-hash.ts'
import { buildConfig } from '../config/load.ts'
import type { RegistryEntry } from '../domain/registry.ts'
import { type Present, reconcile } from './reconcile.ts'
import { countChanges, type SettingsChange } from './settings-change.ts'
import { type Wanted, wantedOf } from './wanted.ts'

type Tree = Record<string, unknown>

const TENANT = { id: 'a', weight: 1, slo: 'patient', keys: [{ id: 'a-1', hash: hashKey('sk-a') }] }
const POOL = { id: 'p', model: 'm', backend: { kind: 'http-openai' }, replicas: ['http://gpu-1/v1', 'http://gpu-2/v1'] }

function wanted(tree: Tree = {}, entries: readonly RegistryEntry[] = []): Wanted {
  const whole = { models: [{ name: 'm' }], pools: [POOL], tenants: [TENANT], ...tree }
  return wantedOf(buildConfig({ path: 'x.yaml', tree: whole, lineOf: () => undefined }, {}), entries)
}

const peers = (peer: Tree): Tree => ({
  regions: { local: 'local', peers: [{ region: 'us', apiKey: 'sk-us', ...peer }] },
})

const presentOf = (before: Wanted, more: Partial<Present> = {}): Present => ({
  wanted: before,
  poolIds: new Set(before.pools.keys()),
  closingIds: new Set(),
  ...more,
})

/** `add-replica p-gpu-3`. */
function spelt(change: SettingsChange): string {
  switch (change.kind) {
    case 'put-model':
      return `put-model ${change.model.name}`
    case 'add-pool':
      return `add-pool ${change.setup.pool.id}`
    case 'remove-pool':
    case 'scale-pool':
    case 'dedicate-pool':
      return `${change.kind} ${change.poolId}`
    case 'add-replica':
      return `add-replica ${change.replica.id}`
    case 'remove-replica':
      return `remove-replica ${change.replicaId}`
    case 'put-tenant':
      return `put-tenant ${change.tenant.id}`
    case 'reweigh':
      return `reweigh ${change.weight.kind} ${change.weight.weight}`
    case 'put-key':
    case 'remove-key':
      return `${change.kind} ${change.keyId}`
    default:
      return change.kind
  }
}

function changesOf(before: Wanted, after: Wanted, more: Partial<Present> = {}): string[] {
  const reconciled = reconcile(presentOf(before, more), after)
  return reconciled.kind === 'changes' ? reconciled.changes.map(spelt) : reconciled.refusals.map(({ code }) => code)
}

const replica = (pool: string, url: string): RegistryEntry => ({ kind: 'replica', name: url, body: { pool, url } })

describe('reconcile', () => {
  const cases: ReadonlyArray<[string, Tree, Tree, string[]]> = [
    ['nothing', {}, {}, []],
    [
      'an address more and one less: the newcomer first',
      {},
      { pools: [{ ...POOL, replicas: ['http://gpu-2/v1', 'http://gpu-3/v1'] }] },
      ['add-replica p-gpu-3', 'remove-replica p-gpu-1'],
    ],
    ['the same addresses in another order', {}, { pools: [{ ...POOL, replicas: [...POOL.replicas].reverse() }] }, []],
    [
      'one address written in two ways',
      { pools: [{ ...POOL, replicas: ['http://gpu-1/v1'] }] },
      { pools: [{ id: 'p', model: 'm', backend: { kind: 'http-openai', url: 'http://gpu-1/v1' } }] },
      [],
    ],
    ['keys of a map in another order', {}, { pools: [Object.fromEntries(Object.entries(POOL).reverse())] }, []],
    [
      'the key that engines are called with: it was changed where it is kept',
      { pools: [{ ...POOL, backend: { kind: 'http-openai', apiKey: 'first' } }] },
      { pools: [{ ...POOL, backend: { kind: 'http-openai', apiKey: 'second' } }] },
      ['rekey-pool'],
    ],
    ['other tenants of a pool', {}, { pools: [{ ...POOL, dedicatedTo: ['a'] }] }, ['dedicate-pool p']],
    ['a weight', {}, { tenants: [{ ...TENANT, weight: 3 }] }, ['put-tenant a', 'reweigh tenant 3']],
    ['an org’s weight', {}, { orgs: [{ id: 'a', weight: 3 }] }, ['reweigh org 3', 'put-tenant a']],
    ['an org’s weight that is gone', { orgs: [{ id: 'a', weight: 3 }] }, {}, ['reweigh org undefined', 'put-tenant a']],
    [
      'a key’s weight',
      {},
      { tenants: [{ ...TENANT, keys: [{ ...TENANT.keys[0], weight: 2 }] }] },
      ['put-key a-1', 'reweigh key 2'],
    ],
    [
      'an SLO: the tenant is on other terms, and the tightest promise may be another',
      {},
      { tenants: [{ ...TENANT, slo: 'fast' }] },
      ['put-tenant a', 'change-promise'],
    ],
    ['an allowance', {}, { tenants: [{ ...TENANT, allowance: { concurrencyMax: 3 } }] }, ['put-tenant a']],
    [
      'a key that is gone, and one that is new',
      {},
      { tenants: [{ ...TENANT, keys: [{ id: 'a-2', hash: hashKey('sk-b') }] }] },
      ['remove-key a-1', 'put-key a-2', 'reweigh key 1'],
    ],
    ['the mode', {}, { admission: { mode: 'observe' } }, ['change-mode']],
    ['a model’s context', {}, { models: [{ name: 'm', contextTokensMax: 100 }] }, ['put-model m']],
    [
      'another pool of another model, and the first one gone: closed before its model goes',
      {},
      { models: [{ name: 'n' }], pools: [{ ...POOL, id: 'q', model: 'n' }] },
      ['remove-pool p', 'put-model n', 'add-pool q', 'remove-model', 'remove-rollout'],
    ],
    ['what a pool is', {}, { pools: [{ ...POOL, limit: { kind: 'fixed', concurrencyMax: 3 } }] }, ['pool-is-running']],
    [
      'an address whose scheme is another: under one name there cannot be two',
      {},
      { pools: [{ ...POOL, replicas: ['https://gpu-1/v1', 'http://gpu-2/v1'] }] },
      ['pool-is-running'],
    ],
    [
      'another gateway of another region, and one less',
      peers({ urls: ['http://us-1/v1', 'http://us-2/v1'] }),
      peers({ urls: ['http://us-2/v1', 'http://us-3/v1'] }),
      ['add-replica us:m-us-3', 'remove-replica us:m-us-1'],
    ],
    [
      'the one address of another region: its replica has no other name',
      peers({ url: 'http://us-1/v1' }),
      peers({ url: 'http://us-2/v1' }),
      ['pool-is-running'],
    ],
  ]
  it.each(cases)('%s', (_, before, after, changes) => {
    expect(changesOf(wanted(before), wanted(after))).toEqual(changes)
  })

  it('says which part of which pool cannot change', () => {
    const after = wanted({ pools: [{ ...POOL, region: 'eu', backend: { kind: 'http-openai', timeoutMs: 1_000 } }] })
    const reconciled = reconcile(presentOf(wanted()), after)
    expect(reconciled).toMatchObject({
      kind: 'refused',
      refusals: [
        { poolId: 'p', because: expect.stringContaining('pool p is running, and its region, backend cannot') },
      ],
    })
  })

  it('adds a pool that could not be made before, and waits for one that is still closing', () => {
    const both = wanted()
    expect(changesOf(both, both, { poolIds: new Set() })).toEqual(['add-pool p'])
    expect(changesOf(both, both, { closingIds: new Set(['p']) })).toEqual(['pool-is-closing'])
  })

  it('adds the registry’s replicas to those of a pool of the file, once', () => {
    const before = wanted()
    const after = wanted({}, [replica('p', 'http://gpu-3/v1'), replica('p', 'http://gpu-1/v1')])
    expect(changesOf(before, after)).toEqual(['add-replica p-gpu-3'])
    const listed = wanted({ pools: [{ ...POOL, replicas: [...POOL.replicas, 'http://gpu-3/v1'] }] }, after.entries)
    expect(changesOf(after, listed)).toEqual([])
    expect(changesOf(listed, before)).toEqual(['remove-replica p-gpu-3'])
  })

  it('counts what changed', () => {
    const more = {
      pools: [
        { ...POOL, dedicatedTo: ['b'] },
        { ...POOL, id: 'q' },
      ],
    }
    const after = wanted({
      ...more,
      tenants: [
        { ...TENANT, weight: 2 },
        { id: 'b', slo: 'patient', keys: [] },
      ],
    })
    const reconciled = reconcile(presentOf(wanted()), after)
    expect(reconciled.kind === 'changes' && countChanges(reconciled.changes)).toMatchObject({
      tenants: 2,
      keys: 0,
      models: 0,
      poolsAdded: 1,
      poolsDedicated: 1,
      poolsScaled: 0,
      poolsRekeyed: 0,
      replicasAdded: 2,
      replicasRemoved: 0,
    })
  })

  it('is empty for what is there already, and leads from any configuration to any other', () => {
    fc.assert(
      fc.property(configs, configs, (a, b) => {
        const [before, after] = [wantedOf(a, []), wantedOf(b, [])]
        expect(changesOf(before, before)).toEqual([])
        const reconciled = reconcile(presentOf(before), after)
        if (reconciled.kind === 'refused') {
          for (const { code } of reconciled.refusals) expect(code).toBe('pool-is-running')
          return
        }
        expect(carriedOut(before, reconciled.changes)).toEqual(namesOf(after))
      }),
      { numRuns: 60 },
    )
  })
})

interface Names {
  readonly models: Set<string>
  readonly pools: Set<string>
  readonly replicas: Set<string>
  readonly tenants: Set<string>
  readonly keys: Set<string>
}

const namesOf = ({ models, pools, tenants, keys }: Wanted): Names => ({
  models: new Set(models.map(({ name }) => name)),
  pools: new Set(pools.keys()),
  replicas: new Set([...pools.values()].flatMap(({ pool }) => pool.replicas.map(({ id }) => id))),
  tenants: new Set(tenants.map(({ id }) => id)),
  keys: new Set(keys.map(({ key }) => key.id)),
})

/** The plainest platform: names only. It refuses what the real one would: a model that a pool still serves. */
function carriedOut(before: Wanted, changes: readonly SettingsChange[]): Names {
  const names = namesOf(before)
  const modelOf = new Map([...before.pools.values()].map(({ pool }) => [pool.id, pool.model]))
  for (const change of changes) {
    if (change.kind === 'put-model') names.models.add(change.model.name)
    else if (change.kind === 'remove-model') {
      expect([...names.pools].some((id) => modelOf.get(id) === change.name)).toBe(false)
      names.models.delete(change.name)
    } else if (change.kind === 'add-pool') {
      expect(names.models).toContain(change.setup.pool.model)
      names.pools.add(change.setup.pool.id)
      modelOf.set(change.setup.pool.id, change.setup.pool.model)
      for (const { id } of change.setup.pool.replicas) names.replicas.add(id)
    } else if (change.kind === 'remove-pool') {
      names.pools.delete(change.poolId)
      for (const { id } of before.pools.get(change.poolId)?.pool.replicas ?? []) names.replicas.delete(id)
    } else if (change.kind === 'add-replica') names.replicas.add(change.replica.id)
    else if (change.kind === 'remove-replica') names.replicas.delete(change.replicaId)
    else if (change.kind === 'put-tenant') names.tenants.add(change.tenant.id)
    else if (change.kind === 'remove-tenant') names.tenants.delete(change.tenantId)
    else if (change.kind === 'put-key') names.keys.add(change.keyId)
    else if (change.kind === 'remove-key') names.keys.delete(change.keyId)
  }
  return names
}
