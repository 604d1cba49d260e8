import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Discovery, Endpoint } from '../../src/backends/discovery.ts'
import { InferencePoolDiscovery } from '../../src/backends/http-inference-pool.ts'
import { type KubeAccess, readTokenFile } from '../../src/backends/http-kube-watch.ts'
import { KubernetesDiscovery } from '../../src/backends/http-kubernetes.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { eventually } from '../support/eventually.ts'
import { FakeKubeApi } from '../support/fake-kube-api.ts'

/** What every source of replicas in Kubernetes owes: who is ready, who drains, who is gone, whatever the API server does. */
type PodState = 'ready' | 'starting' | 'terminating'

const SLICES = '/apis/discovery.k8s.io/v1/namespaces/ml/endpointslices'
const POOLS = '/apis/inference.networking.k8s.io/v1/namespaces/ml/inferencepools'
const PODS = '/api/v1/namespaces/ml/pods'

interface Source {
  readonly name: string
  /** Questions that are open while it follows. */
  readonly watches: number
  make(access: KubeAccess): Discovery & { close(): Promise<void> }
  /** The cluster with these pods, by their addresses. */
  set(api: FakeKubeApi, pods: Readonly<Record<string, PodState>>): void
}

const slices: Source = {
  name: 'EndpointSlices',
  watches: 1,
  make: (access) => new KubernetesDiscovery({ ...access, service: 'vllm', port: 'http' }),
  set(api, pods) {
    const conditions = (state: PodState) => ({
      ready: state === 'ready',
      serving: state !== 'starting',
      terminating: state === 'terminating',
    })
    const endpoints = Object.entries(pods).map(([address, state]) => ({
      addresses: [address],
      conditions: conditions(state),
    }))
    const labels = { 'kubernetes.io/service-name': 'vllm' }
    const slice = { metadata: { name: 'vllm-1', labels }, ports: [{ name: 'http', port: 8_000 }], endpoints }
    api.put(SLICES, slice)
  },
}

const podOf = (address: string, state: PodState, labels: Record<string, string> = { app: 'vllm' }) => ({
  metadata: {
    name: `pod-${address}`,
    labels,
    ...(state === 'terminating' && { deletionTimestamp: '2026-11-16T10:00:00Z' }),
  },
  status: { podIP: address, conditions: [{ type: 'Ready', status: state === 'starting' ? 'False' : 'True' }] },
})

const poolOf = (matchLabels: Record<string, string>, ports: readonly number[], more: object = {}) => ({
  metadata: { name: 'chat' },
  spec: { selector: { matchLabels }, targetPorts: ports.map((number) => ({ number })), ...more },
})

const known = new WeakMap<FakeKubeApi, Set<string>>()
const inferencePool: Source = {
  name: 'InferencePool',
  watches: 2,
  make: (access) => new InferencePoolDiscovery({ ...access, pool: 'chat' }),
  set(api, pods) {
    const there = known.get(api) ?? new Set<string>()
    if (!known.has(api)) api.put(POOLS, poolOf({ app: 'vllm' }, [8_000]))
    known.set(api, there)
    for (const address of there)
      if (!(address in pods)) {
        there.delete(address)
        api.delete(PODS, `pod-${address}`)
      }
    for (const [address, state] of Object.entries(pods)) {
      there.add(address)
      api.put(PODS, podOf(address, state))
    }
  },
}

const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function follow(source: Source, pods: Readonly<Record<string, PodState>> | undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-kube-'))
  const tokenPath = join(folder, 'token')
  writeFileSync(tokenPath, 'first-token\n')
  const api = await FakeKubeApi.start([SLICES, POOLS, PODS])
  if (pods !== undefined) source.set(api, pods)
  const lists: string[][] = []
  const failures: string[] = []
  // Pauses are short here: what is tried is that there are some.
  const clock = Object.assign(Object.create(new LiveClock()) as LiveClock, {
    sleep: () => new LiveClock().sleep(1_000),
  })
  const start = (): void => {
    const discovery = source.make({
      scheme: 'http',
      path: '/v1',
      apiUrl: api.url,
      namespace: 'ml',
      token: readTokenFile(tokenPath),
      clock,
      onFailure: (because) => failures.push(because),
    })
    const stop = discovery.watch((list) => void lists.push(list.map(told)))
    closers.push(() => {
      stop()
      return discovery.close()
    })
  }
  closers.push(
    () => rmSync(folder, { recursive: true, force: true }),
    () => api.close(),
  )
  return { api, lists, failures, tokenPath, start, last: () => lists.at(-1) }
}

const told = ({ id, url, state }: Endpoint): string => {
  expect(url).toBe(`http://${id}/v1`)
  return state === 'ready' ? id : `${id} ${state}`
}

describe.each([slices, inferencePool])('$name', (source) => {
  it('tells who is ready, and every change', async () => {
    const world = await follow(source, { '10.0.0.1': 'ready', '10.0.0.2': 'starting' })
    world.start()
    await eventually('the watches', () => world.api.watchCount === source.watches)
    expect(world.lists).toEqual([['10.0.0.1:8000']])
    source.set(world.api, { '10.0.0.1': 'ready', '10.0.0.2': 'ready' })
    await eventually('the second', () => world.last()?.length === 2)
    source.set(world.api, { '10.0.0.1': 'terminating', '10.0.0.2': 'ready' })
    await eventually('the first drains', () => world.last()?.[0] === '10.0.0.1:8000 draining')
    source.set(world.api, { '10.0.0.2': 'ready' })
    await eventually('the first is gone', () => world.last()?.length === 1)
    expect(world.last()).toEqual(['10.0.0.2:8000'])
    expect(world.failures).toEqual([])
    for (const { headers } of world.api.seen) expect(headers.authorization).toBe('Bearer first-token')
  })

  it('tells nothing twice', async () => {
    const world = await follow(source, { '10.0.0.1': 'ready' })
    world.start()
    await eventually('the watches', () => world.api.watchCount === source.watches)
    source.set(world.api, { '10.0.0.1': 'ready' })
    source.set(world.api, { '10.0.0.1': 'ready', '10.0.0.2': 'starting' })
    source.set(world.api, { '10.0.0.1': 'ready', '10.0.0.3': 'ready' })
    await eventually('the third', () => world.last()?.length === 2)
    expect(world.lists).toEqual([['10.0.0.1:8000'], ['10.0.0.1:8000', '10.0.0.3:8000']])
  })

  it('watches on when the server ends a watch, with the token as it is then', async () => {
    const world = await follow(source, { '10.0.0.1': 'ready' })
    world.start()
    await eventually('the watches', () => world.api.watchCount === source.watches)
    writeFileSync(world.tokenPath, 'second-token\n')
    world.api.endWatches()
    await eventually('others', () => world.api.seen.length === 3 * source.watches && world.api.watchCount > 0)
    expect(world.api.seen.at(-1)?.headers.authorization).toBe('Bearer second-token')
    expect(world.api.seen.slice(2 * source.watches).map(({ query }) => query.get('watch'))).not.toContain(null)
    source.set(world.api, { '10.0.0.1': 'ready', '10.0.0.2': 'ready' })
    await eventually('the second', () => world.last()?.length === 2)
    expect(world.failures).toEqual([])
  })

  it('lists again when it has missed events', async () => {
    const world = await follow(source, { '10.0.0.1': 'ready' })
    world.start()
    await eventually('the watches', () => world.api.watchCount === source.watches)
    world.api.oldestVersion = 1_000
    world.api.endWatches()
    await eventually('watches end', () => world.api.watchCount === 0)
    for (let i = 0; i < 100; i++) world.api.bookmark()
    source.set(world.api, { '10.0.0.2': 'ready' })
    await eventually('what there is now', () => world.last()?.[0] === '10.0.0.2:8000')
    expect(world.last()).toEqual(['10.0.0.2:8000'])
  })

  it('says why it cannot, tells nobody meanwhile, and goes on', async () => {
    const world = await follow(source, { '10.0.0.1': 'ready' })
    world.api.refusal = 403
    world.start()
    await eventually('a failure', () => world.failures.length > 1)
    expect(world.lists).toEqual([])
    expect(world.failures[0]).toBe('Kubernetes could not be asked: the API server answered 403')
    expect(JSON.stringify(world.failures)).not.toContain('token')
    world.api.refusal = undefined
    await eventually('the first', () => world.last()?.length === 1)
  })

  it('keeps what it knows while the server is away', async () => {
    const world = await follow(source, { '10.0.0.1': 'ready' })
    world.start()
    await eventually('the watches', () => world.api.watchCount === source.watches)
    world.api.refusal = 500
    world.api.endWatches()
    await eventually('a failure', () => world.failures.length > 0)
    expect(world.lists).toEqual([['10.0.0.1:8000']])
  })
})

describe('an InferencePool', () => {
  const started = async (pool: ReturnType<typeof poolOf> | undefined) => {
    const world = await follow(inferencePool, undefined)
    if (pool !== undefined) world.api.put(POOLS, pool)
    world.api.put(PODS, podOf('10.0.0.1', 'ready', { app: 'vllm', size: 'large' }))
    world.api.put(PODS, podOf('10.0.0.2', 'ready', { app: 'vllm', size: 'small' }))
    world.api.put(PODS, podOf('10.0.0.9', 'ready', { app: 'database' }))
    world.start()
    return world
  }

  it('has an engine for each of its ports, and follows its labels', async () => {
    const world = await started(poolOf({ app: 'vllm' }, [8_000, 8_001]))
    await eventually('the list', () => world.lists.length === 1)
    expect(world.last()).toEqual(['10.0.0.1:8000', '10.0.0.1:8001', '10.0.0.2:8000', '10.0.0.2:8001'])
    world.api.put(POOLS, poolOf({ app: 'vllm' }, [8_000]))
    await eventually('one port', () => world.last()?.length === 2)
    world.api.put(POOLS, poolOf({ size: 'large', app: 'vllm' }, [8_000]))
    await eventually('one pod', () => world.last()?.length === 1)
    expect(world.last()).toEqual(['10.0.0.1:8000'])
    await eventually('the old question is over', () => world.api.watchCount === 2)
    expect(world.api.seen.at(-1)?.query.get('labelSelector')).toBe('app=vllm,size=large')
  })

  it.each([
    ['is not there', undefined],
    ['selects nobody', poolOf({}, [8_000])],
    ['has engines that do not speak HTTP/1.1', poolOf({ app: 'vllm' }, [8_000], { appProtocol: 'kubernetes.io/h2c' })],
  ])('that %s has no engines, and says so', async (how, pool) => {
    const world = await started(pool)
    await eventually('a list', () => world.lists.length > 0)
    expect([world.lists, world.failures]).toEqual([[[]], [`InferencePool chat ${how}`]])
    // No question about pods was asked: an empty selector would have been all of them.
    expect(world.api.seen.some(({ path }) => path === PODS)).toBe(false)
    world.api.put(POOLS, poolOf({ app: 'vllm' }, [8_000]))
    await eventually('the pods', () => world.last()?.length === 2)
  })

  it('that is deleted has none any more', async () => {
    const world = await started(poolOf({ app: 'vllm' }, [8_000]))
    await eventually('the watches', () => world.api.watchCount === 2)
    world.api.delete(POOLS, 'chat')
    await eventually('nobody', () => world.last()?.length === 0)
    expect(world.failures).toEqual(['InferencePool chat was deleted'])
    await eventually('pods are not asked for', () => world.api.watchCount === 1)
  })
})
