import { expect, it } from 'vitest'
import { buildConfig } from './load.ts'

const warningsOf = (tree: Record<string, unknown>): readonly string[] =>
  buildConfig({ path: 's.yaml', tree, lineOf: () => undefined }, {}).warnings

it('says that several gateways without a common database have no leader, where a release is tried', () => {
  const rollout = { stable: '1', canary: '2' }
  const models = [{ name: 'm', releases: [{ version: '1' }, { version: '2' }], rollout }]
  const pools = ['1', '2'].map((release) => ({ id: `p${release}`, model: 'm', release, backend: { kind: 'simulated' } }))
  const sharing = { redis: { url: 'redis://127.0.0.1:6379' } }
  const store = { url: 'postgres://spillway@127.0.0.1/spillway' }
  expect(warningsOf({ models, pools, sharing }).join()).toMatch(/no gateway leads, so no release of m is promoted/)
  expect(warningsOf({ models, pools, sharing, store }).join()).not.toMatch(/leads/)
  expect(warningsOf({ models, pools }).join()).not.toMatch(/leads/)
  expect(warningsOf({ sharing }).join()).not.toMatch(/leads/)
})
