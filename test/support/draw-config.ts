import fc from 'fast-check'
import { hashKey } from '../../src/config/key-hash.ts'
import { buildConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'

/**
 * Random configurations over a small set of names, so that two of them have much in common: tenants in orgs with weights,
 * SLOs, keys and allowances, models with releases and rollouts, pools with replicas, limits and tenants of their own.
 * What a pool is, is part of its id, except for a rare few, which a reload must refuse.
 */
type Tree = Record<string, unknown>

export const TENANTS = ['a', 'b', 'c', 'd']
const MODELS = ['m1', 'm2']
export const keyOf = (id: string): string => `sk-${id}`

const someOf = <T>(all: readonly T[], minLength = 0): fc.Arbitrary<T[]> => fc.subarray([...all], { minLength })

const slos = fc.record({
  fast: fc.tuple(fc.constantFrom(300, 500, 900), fc.constantFrom(20, 30, 60)),
  slow: fc.tuple(fc.constantFrom(2_000, 5_000), fc.constantFrom(80, 150)),
})

const tenant = fc.record({
  org: fc.constantFrom('o1', 'o2', undefined),
  weight: fc.constantFrom(1, 2, 5),
  slo: fc.constantFrom('fast', 'slow'),
  contract: fc.constantFrom('degrade', 'reject'),
  keys: someOf(['1', '2'], 1),
  keyWeight: fc.constantFrom(1, 3),
  perMinute: fc.constantFrom(undefined, 6_000),
})

const pool = fc.record({
  profile: fc.constantFrom('h100-llama-8b', 'a100-llama-8b'),
  replicas: fc.integer({ min: 1, max: 3 }),
  dedicatedTo: fc.option(someOf(TENANTS, 1), { nil: undefined, freq: 3 }),
  concurrencyMax: fc.constantFrom(64, 64, 64, 64, 64, 32),
})

const rollout = fc.option(
  fc.record({
    canary: fc.constantFrom('2', undefined),
    steps: fc.constantFrom([5, 25, 50], [30], [10, 60]),
    pinned: fc.option(fc.constantFrom(...TENANTS), { nil: undefined }),
    header: fc.boolean(),
    holdout: fc.option(fc.constantFrom(1, 2), { nil: undefined, freq: 4 }),
    errorMargin: fc.boolean(),
  }),
  { nil: undefined },
)

const model = fc.record({
  contextTokensMax: fc.constantFrom(8_192, 32_768),
  hasAlias: fc.boolean(),
  hasFallback: fc.boolean(),
  rollout,
  first: pool,
  second: pool,
})

const drawn = fc.record({
  slos,
  tenants: someOf(TENANTS, 1).chain((ids) => fc.tuple(...ids.map((id) => tenant.map((terms) => ({ id, ...terms }))))),
  models: someOf(MODELS, 1).chain((names) => fc.tuple(...names.map((name) => model.map((one) => ({ name, ...one }))))),
  mode: fc.constantFrom('enforce', 'observe'),
  choicesMax: fc.constantFrom(4, 8),
  admins: someOf(['ada', 'bob']),
  waitMsMax: fc.constantFrom(30_000, 30_000, 20_000),
})

type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never
type DrawnModel = Drawn['models'][number]
type DrawnTenant = Drawn['tenants'][number]

export const configs: fc.Arbitrary<Config> = drawn.map((one) =>
  buildConfig({ path: 'drawn.yaml', tree: treeOf(one), lineOf: () => undefined }, {}),
)

function treeOf(one: Drawn): Tree {
  const ids = one.tenants.map(({ id }) => id)
  return {
    logging: { level: 'silent' },
    slos: Object.entries(one.slos).map(([name, [ttftMs, interTokenMs]]) => ({
      name,
      ttftMs,
      interTokenMs,
      totalMs: 600_000,
    })),
    tenants: one.tenants.map(tenantTree),
    models: one.models.map((each) => modelTree(each, one.models, ids)),
    pools: one.models.flatMap((each) => poolTrees(each, ids)),
    admission: { mode: one.mode },
    limits: { choicesMax: one.choicesMax },
    queue: { waitMsMax: one.waitMsMax },
    admin: { keys: one.admins.map((id) => ({ id, hash: hashKey(keyOf(id)) })) },
  }
}

function tenantTree({ id, org, weight, slo, contract, keys, keyWeight, perMinute }: DrawnTenant): Tree {
  return {
    id,
    ...(org !== undefined && { org }),
    weight,
    slo,
    contract,
    keys: keys.map((name) => ({ id: `${id}-${name}`, hash: hashKey(keyOf(`${id}-${name}`)), weight: keyWeight })),
    ...(perMinute !== undefined && { allowance: { requests: { perMinute } } }),
  }
}

function modelTree(one: DrawnModel, models: readonly DrawnModel[], tenantIds: readonly string[]): Tree {
  const { name, contextTokensMax, hasAlias, hasFallback } = one
  const isFallbackThere = name === 'm1' && hasFallback && models.some((other) => other.name === 'm2')
  return {
    name,
    contextTokensMax,
    aliases: hasAlias ? [`${name}-alias`] : [],
    ...(isFallbackThere && { fallback: 'm2' }),
    releases: [{ version: '1' }, { version: '2' }],
    ...(one.rollout !== undefined && { rollout: rolloutTree(one.rollout, tenantIds) }),
  }
}

function rolloutTree(one: NonNullable<DrawnModel['rollout']>, tenantIds: readonly string[]): Tree {
  const { canary, steps, pinned, header, holdout, errorMargin } = one
  return {
    stable: '1',
    ...(canary !== undefined && { canary }),
    steps,
    rules: [
      ...(pinned !== undefined && tenantIds.includes(pinned) ? [{ tenant: pinned, release: '2' }] : []),
      ...(header ? [{ header: { name: 'x-beta', value: 'yes' }, release: '2' }] : []),
    ],
    ...(errorMargin && { dwellMs: 60_000 }),
    ...(holdout !== undefined && {
      holdout: { perMinute: holdout, items: [{ id: 'q', prompt: 'Hello?', pattern: '.' }] },
    }),
  }
}

function poolTrees({ name, first, second }: DrawnModel, tenantIds: readonly string[]): Tree[] {
  return [first, second].map(({ profile, replicas, dedicatedTo, concurrencyMax }, i) => {
    const own = dedicatedTo?.filter((id) => tenantIds.includes(id)) ?? []
    return {
      id: `${name}-${i + 1}-${profile}`,
      model: name,
      release: String(i + 1),
      backend: { kind: 'simulated', profile },
      replicas,
      limit: { kind: 'auto', concurrencyMax },
      ...(own.length > 0 && { dedicatedTo: own }),
    }
  })
}
