import { mkdtempSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { json, type Reply, ScriptedServer } from '../../test/support/scripted-server.ts'
import { LiveClock } from '../base/live-clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { compareEndpoints, type Endpoint } from './discovery.ts'
import { type DnsAnswer, DnsDiscovery, NoSuchName } from './dns-discovery.ts'
import { IN_CLUSTER, readTokenFile } from './http-kube-watch.ts'
import { KubernetesDiscovery } from './http-kubernetes.ts'
import { LiveDnsResolver } from './live-dns.ts'

const idsOf = (endpoints: readonly Endpoint[]): string[] => endpoints.map(({ id }) => id)
const address = { scheme: 'http', path: '/v1' } as const

describe('changes', () => {
  it('are who came, who went and who is different', () => {
    const endpoint = (id: string, state: Endpoint['state'] = 'ready'): Endpoint => ({ id, url: `http://${id}`, state })
    const changes = compareEndpoints([endpoint('a'), endpoint('b')], [endpoint('b', 'draining'), endpoint('c')])
    expect([changes.added, changes.removed, changes.changed].map(idsOf)).toEqual([['c'], ['a'], ['b']])
  })
})

describe('DNS', () => {
  /** Answers as scripted, one after the other; the last one stays. */
  async function follow(
    script: readonly (readonly DnsAnswer[] | Error)[],
    seconds: number,
    record: 'address' | 'service' = 'address',
  ) {
    const clock = new VirtualClock()
    const failures: string[] = []
    const lists: { atS: number; urls: string[] }[] = []
    let asked = 0
    const answer = (): Promise<readonly DnsAnswer[]> => {
      const next = script[Math.min(asked++, script.length - 1)]!
      return next instanceof Error ? Promise.reject(next) : Promise.resolve(next)
    }
    const options = {
      ...address,
      name: 'vllm.pools',
      record,
      port: 8_000,
      clock,
      onFailure: (b: string) => void failures.push(b),
    }
    const discovery = new DnsDiscovery({ ...options, resolver: { addresses: answer, services: answer } })
    const stop = discovery.watch((list) => lists.push({ atS: clock.now() / 1e6, urls: list.map(({ url }) => url) }))
    await clock.run(seconds * 1e6)
    stop()
    return { lists, failures, asked }
  }
  const at = (host: string, ttlS: number | undefined = 5): DnsAnswer => ({ host, ttlS })

  it('tells the list, and again when it changes, as often as the time to live says', async () => {
    const { lists, asked } = await follow([[at('10.0.0.1')], [at('10.0.0.1')], [at('10.0.0.2'), at('10.0.0.1')]], 11)
    expect(lists).toEqual([
      { atS: 0, urls: ['http://10.0.0.1:8000/v1'] },
      { atS: 10, urls: ['http://10.0.0.1:8000/v1', 'http://10.0.0.2:8000/v1'] },
    ])
    expect(asked).toBe(3)
  })

  it('keeps what it knows while nobody answers, and believes an empty answer when it is repeated', async () => {
    const broken = Object.assign(new Error('x'), { code: 'ESERVFAIL' })
    const { lists, failures } = await follow(
      [[at('10.0.0.1')], broken, new NoSuchName('x'), [at('10.0.0.1')], new NoSuchName('x')],
      60,
    )
    expect(lists.map(({ urls }) => urls.length)).toEqual([1, 0])
    expect(failures).toEqual(['vllm.pools could not be resolved: ESERVFAIL'])
  })

  it('does not hammer a name without time to live, and has brackets for IPv6', async () => {
    const { asked, lists } = await follow([[at('fd00::1', 0)]], 9)
    expect(asked).toBeLessThanOrEqual(5)
    expect(lists[0]?.urls).toEqual(['http://[fd00::1]:8000/v1'])
  })

  it('takes ports from service records', async () => {
    const { lists } = await follow([[{ host: 'pod-0.vllm', port: 8_001, ttlS: undefined }]], 1, 'service')
    expect(lists[0]?.urls).toEqual(['http://pod-0.vllm:8001/v1'])
  })

  it('tells a name server that is not there from a name that is not', async () => {
    const resolver = new LiveDnsResolver(['127.0.0.1:9'])
    await expect(resolver.addresses('vllm.pools')).rejects.not.toBeInstanceOf(NoSuchName)
  })
})

describe('Kubernetes', () => {
  const tokenPath = join(mkdtempSync(join(tmpdir(), 'spillway-')), 'token')
  writeFileSync(tokenPath, 'pod-token\n')

  it('knows where a pod finds its credentials', () => expect(IN_CLUSTER.tokenPath).toMatch(/serviceaccount/))

  const PATH = '/apis/discovery.k8s.io/v1/namespaces/ml/endpointslices'
  const slice = (
    name: string,
    version: string,
    addresses: readonly string[],
    conditions: object = { ready: true },
  ) => ({
    metadata: { name, resourceVersion: version },
    ports: [
      { name: 'metrics', port: 9_000 },
      { name: 'http', port: 8_000 },
    ],
    endpoints: addresses.map((one) => ({ addresses: [one], conditions, zone: 'a' })),
  })

  interface Follow {
    readonly lists: Endpoint[][]
    readonly failures: string[]
    readonly server: ScriptedServer
    readonly send: (event: object) => void
    readonly hangUp: () => void
    readonly stop: () => Promise<void>
  }

  async function follow(list: Reply): Promise<Follow> {
    let watcher: ServerResponse | undefined
    const reply: Reply = (asked, res) => {
      if (asked.query.get('watch') !== '1') return list(asked, res)
      watcher = res
      res.writeHead(200, { 'content-type': 'application/json' })
      res.flushHeaders()
    }
    const server = await ScriptedServer.start({ [`GET ${PATH}`]: reply })
    const lists: Endpoint[][] = []
    const failures: string[] = []
    const discovery = new KubernetesDiscovery({
      ...address,
      apiUrl: server.url,
      namespace: 'ml',
      service: 'vllm',
      port: 'http',
      token: readTokenFile(tokenPath),
      clock: new LiveClock(),
      onFailure: (because) => failures.push(because),
    })
    const unwatch = discovery.watch((endpoints) => lists.push([...endpoints]))
    return {
      lists,
      failures,
      server,
      send: (event) => void watcher?.write(`${JSON.stringify(event)}\n`),
      hangUp: () => {
        watcher?.end()
        watcher = undefined
      },
      stop: async () => {
        unwatch()
        await discovery.close()
        await server.close()
      },
    }
  }

  it('lists, then follows', async () => {
    const { lists, send, stop, server } = await follow(
      json({
        metadata: { resourceVersion: '7' },
        items: [slice('s1', '5', ['10.0.0.1']), slice('s2', '6', ['10.0.0.2'])],
      }),
    )
    await eventually('the watch', () => server.seen.length === 2)
    expect(idsOf(lists[0]!)).toEqual(['10.0.0.1:8000', '10.0.0.2:8000'])
    expect(lists[0]?.[0]).toMatchObject({ url: 'http://10.0.0.1:8000/v1', state: 'ready', zone: 'a' })
    expect(server.seen[1]?.query.get('resourceVersion')).toBe('7')
    expect(server.seen[1]?.query.get('labelSelector')).toBe('kubernetes.io/service-name=vllm')
    expect(server.seen[1]?.headers.authorization).toBe('Bearer pod-token')
    send({ type: 'MODIFIED', object: slice('s1', '8', ['10.0.0.1', '10.0.0.3']) })
    await eventually('one more', () => lists.length === 2)
    send({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '9' } } })
    send({
      type: 'MODIFIED',
      object: slice('s2', '10', ['10.0.0.2'], { ready: false, serving: true, terminating: true }),
    })
    await eventually('one drains', () => lists.length === 3)
    expect(lists[2]?.map(({ state }) => state)).toEqual(['ready', 'draining', 'ready'])
    send({ type: 'DELETED', object: slice('s2', '11', []) })
    await eventually('one less', () => lists.length === 4)
    expect(idsOf(lists[3]!)).toEqual(['10.0.0.1:8000', '10.0.0.3:8000'])
    await stop()
  })

  it('watches on from where the server closed, and lists again when that is too old', async () => {
    const { send, hangUp, stop, server } = await follow(
      json({ metadata: { resourceVersion: '7' }, items: [slice('s1', '5', ['10.0.0.1'])] }),
    )
    await eventually('the watch', () => server.seen.length === 2)
    send({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '42' } } })
    // What was sent before the end is read before it.
    hangUp()
    await eventually('another watch', () => server.seen.length === 3)
    expect(server.seen[2]?.query.get('resourceVersion')).toBe('42')
    send({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })
    await eventually('another list', () => server.seen.length === 5)
    expect(server.seen[3]?.query.get('watch')).toBeNull()
    await stop()
  })

  it('says nothing while the server refuses, and why', async () => {
    const { lists, failures, stop } = await follow(json({ message: 'forbidden' }, 403))
    await eventually('a failure', () => failures.length > 0)
    expect(lists).toEqual([])
    expect(failures[0]).toBe('Kubernetes could not be asked: the API server answered 403')
    await stop()
  })
})
