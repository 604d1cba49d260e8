import { afterEach, expect, it, vi } from 'vitest'
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
