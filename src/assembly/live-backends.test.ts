import { afterEach, expect, it, vi } from 'vitest'
import { json, ScriptedServer } from '../../test/support/scripted-server.ts'
import { EngineDriver } from '../backends/engine-driver.ts'
import { HttpPeerBackend } from '../backends/http-peer.ts'
import { SimulatedBackend } from '../backends/simulated.ts'
import { LiveClock } from '../base/live-clock.ts'
import { buildConfig } from '../config/load.ts'
import { toPools } from '../config/to-domain.ts'
import { makeLiveBackends } from './live-backends.ts'

afterEach(() => vi.restoreAllMocks())

it('keeps the connection to another region while one of its models is there, and closes it with the last', async () => {
  const tree = {
    models: [{ name: 'm' }, { name: 'n' }],
    pools: ['m', 'n'].map((model) => ({
      model,
      region: 'eu',
      backend: { kind: 'http-openai' },
      replicas: ['http://g/v1'],
    })),
    tenants: [{ id: 'a', keys: [] }],
    regions: { local: 'eu', peers: [{ region: 'us', url: 'http://us/v1', apiKey: 'k' }] },
  }
  const config = buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, {})
  const backends = await makeLiveBackends(config, new LiveClock())
  const closed = vi.spyOn(HttpPeerBackend.prototype, 'close')
  const [first, second] = toPools(config).flatMap(({ pool }) => (pool.isPeer === true ? pool.replicas : []))
  expect(backends.of(first!)).toBe(backends.of(second!))
  backends.forget(first!)
  expect(closed).not.toHaveBeenCalled()
  backends.forget(second!)
  expect(closed).toHaveBeenCalledOnce()
  await backends.close()
})

it('has a connection to each gateway of another region, which all models share', async () => {
  const pools = ['m', 'n'].map((model) => ({ model, backend: { kind: 'http-openai' }, replicas: ['http://g/v1'] }))
  const peer = { region: 'us', urls: ['http://us-1/v1', 'http://us-2/v1'], apiKey: 'k' }
  const tree = {
    models: [{ name: 'm' }, { name: 'n' }],
    pools,
    tenants: [{ id: 'a', keys: [] }],
    regions: { local: 'local', peers: [peer] },
  }
  const config = buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, {})
  const backends = await makeLiveBackends(config, new LiveClock())
  const closed = vi.spyOn(HttpPeerBackend.prototype, 'close')
  const [m1, m2, n1, n2] = toPools(config).flatMap(({ pool }) => (pool.isPeer === true ? pool.replicas : []))
  expect(backends.of(m1!)).toBe(backends.of(n1!))
  expect(backends.of(m2!)).toBe(backends.of(n2!))
  expect(backends.of(m1!)).not.toBe(backends.of(m2!))
  for (const replica of [m1, n1]) backends.forget(replica!)
  expect(closed).toHaveBeenCalledOnce()
  await backends.close()
})

it.each(['h100-llama-8b+mig-2g', 'a100-llama-8b+shared-2'])('serves with a simulated engine on %s', async (profile) => {
  const tree = {
    models: [{ name: 'm' }],
    pools: [{ model: 'm', backend: { kind: 'simulated', profile } }],
    tenants: [{ id: 'a', keys: [] }],
  }
  const config = buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, {})
  const backends = await makeLiveBackends(config, new LiveClock())
  expect(backends.of(toPools(config)[0]!.pool.replicas[0]!)).toBeInstanceOf(SimulatedBackend)
  await backends.close()
})

it('has one simulated engine for the pools that give it the same name', async () => {
  const tree = {
    models: [{ name: 'm' }, { name: 'n' }, { name: 'o' }],
    pools: ['m', 'n', 'o'].map((model) => ({
      model,
      backend: { kind: 'simulated' },
      ...(model !== 'o' && { engineName: 'gpu' }),
    })),
    tenants: [{ id: 'a', keys: [] }],
  }
  const config = buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, {})
  const drivers = vi.spyOn(EngineDriver.prototype, 'view')
  const backends = await makeLiveBackends(config, new LiveClock())
  for (const { pool } of toPools(config)) await backends.of(pool.replicas[0]!).probe(pool.replicas[0]!)
  const [m, n, o] = drivers.mock.contexts
  expect(m).toBe(n)
  expect(o).not.toBe(m)
  await backends.close()
})

it('calls a pool with another key from then on, replicas that come later, too', async () => {
  const server = await ScriptedServer.start({ 'GET /v1/models': json({ data: [] }) })
  const pool = { id: 'p', model: 'm', backend: { kind: 'http-openai', engine: 'openai', apiKey: 'sk-first-key' } }
  const tree = {
    models: [{ name: 'm' }],
    pools: [{ ...pool, replicas: [`${server.url}/v1`] }],
    tenants: [{ id: 'a', keys: [] }],
  }
  const config = buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, {})
  const backends = await makeLiveBackends(config, new LiveClock())
  const [setup] = toPools(config)
  const [first] = setup!.pool.replicas
  const later = { ...first!, id: 'p-later' }
  const keyOf = async (replica: typeof later): Promise<string | undefined> => {
    await backends.of(replica).probe(replica)
    return server.seen.at(-1)?.headers.authorization
  }
  expect(await keyOf(first!)).toBe('Bearer sk-first-key')
  backends.useKey('p', 'sk-second-key')
  backends.useKey('another pool', 'sk-of-others')
  expect(await keyOf(first!)).toBe('Bearer sk-second-key')
  backends.add({ ...setup!, urls: new Map([[later.id, `${server.url}/v1`]]) }, [later])
  expect(await keyOf(later)).toBe('Bearer sk-second-key')
  // A pool that is gone and comes back brings its own key.
  backends.forget(later)
  backends.forgetKey('p')
  backends.add({ ...setup!, urls: new Map([[later.id, `${server.url}/v1`]]) }, [later])
  expect(await keyOf(later)).toBe('Bearer sk-first-key')
  await backends.close()
  await server.close()
})
