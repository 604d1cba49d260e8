import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { FakeDns } from '../support/fake-dns.ts'
import { FakeKubeApi } from '../support/fake-kube-api.ts'
import { answers, FakeUpstream, gated, WORDS } from '../support/fake-upstream.ts'
import { json, type Reply, ScriptedServer } from '../support/scripted-server.ts'
import { MODEL, postJson, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** Replicas that nobody listed: found by DNS and by Kubernetes, while requests come. */
const chat = { model: MODEL, messages: [{ role: 'user', content: 'Hello?' }] }

const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function started<T extends { close(): Promise<unknown> }>(starting: Promise<T>): Promise<T> {
  const one = await starting
  closers.push(() => one.close())
  return one
}

const startWith = (discover: object): Promise<TestPlatform> =>
  started(
    startPlatform(
      testTree({
        pools: [
          {
            model: MODEL,
            backend: { kind: 'http-openai', timeoutMs: 5_000, discover },
            limit: { kind: 'fixed', concurrencyMax: 64 },
          },
        ],
      }),
    ),
  )

const replicas = (platform: TestPlatform): string[] =>
  platform.platform.pools.flatMap((pool) => pool.replicas.map(({ id }) => id)).sort()

const ready = (platform: TestPlatform): number => platform.platform.turnstile.view().readyReplicas

async function ask(platform: TestPlatform): Promise<number> {
  const response = await postJson(`${platform.baseURL}/chat/completions`, chat)
  await response.text()
  return response.status
}

const told = (platform: TestPlatform): string[] => {
  platform.journal.drain()
  return platform.entries.flatMap((entry) => (entry.kind === 'fleet-changed' ? [`${entry.what} ${entry.name}`] : []))
}

describe('DNS', () => {
  const name = 'vllm.ml.svc.cluster.local'

  it('replicas come, drain and go with the name; a broken or empty answer loses nobody', {
    timeout: 60_000,
  }, async () => {
    const dns = await started(FakeDns.start())
    const first = await started(FakeUpstream.start())
    const port = Number(new URL(first.url).port)
    const second = await started(FakeUpstream.start(answers(), { host: '127.0.0.2', port }))
    dns.table.set(name, ['127.0.0.1'])
    const platform = await startWith({ dns: { name, port, everyMs: 100, servers: [dns.address] } })
    const pool = `${MODEL}-local`
    const ids = [`${pool}-127.0.0.1:${port}`, `${pool}-127.0.0.2:${port}`]
    expect(replicas(platform)).toEqual([ids[0]])
    expect(await ask(platform)).toBe(200)
    expect(platform.platform.policies.health.kindOf(ids[0]!)).toBe('steady')

    dns.table.set(name, ['127.0.0.1', '127.0.0.2'])
    await eventually('the second is used', () => ready(platform) === 2)
    expect(platform.platform.policies.health.kindOf(ids[1]!)).toMatch(/warming|steady/)

    // The first answers slowly, and goes while it does: its answer is whole.
    first.behaviour = answers({ everyMs: 100 })
    const all = [ask(platform), ask(platform), ask(platform), ask(platform)]
    await eventually('the first is answering', () => first.openAnswers > 0)
    dns.table.set(name, ['127.0.0.2'])
    expect(await Promise.all(all)).toEqual([200, 200, 200, 200])
    await eventually('the first is gone', () => replicas(platform).length === 1)
    expect(told(platform)).toContain(`replica-removed ${ids[0]}`)

    // A server failure, silence and then nobody at all: whoever answers its probe is still used.
    dns.isBroken = true
    await eventually('it was asked', () => platform.entries.some((entry) => entry.kind === 'fault-seen'))
    dns.isBroken = false
    dns.table.delete(name)
    const asked = dns.askedCount
    await eventually('it was told that nobody is there', () => dns.askedCount > asked + 6)
    expect(replicas(platform)).toEqual([ids[1]])
    expect(await ask(platform)).toBe(200)

    second.isHealthy = false
    await second.close()
    closers.splice(closers.length - 2, 1)
    await eventually('what does not answer either is gone', () => replicas(platform).length === 0, 30_000)
    expect(await ask(platform)).toBe(503)
  })

  it('a name server that is not there does not keep the door shut', { timeout: 60_000 }, async () => {
    const dns = await started(FakeDns.start())
    dns.isMute = true
    const platform = await startWith({ dns: { name, port: 1, everyMs: 100, servers: [dns.address] } })
    expect(await ask(platform)).toBe(503)
    expect((await fetch(`${platform.address}/health`)).status).toBe(200)
    expect((await fetch(`${platform.address}/health/ready`)).status).toBe(503)
  })
})

describe('Kubernetes', () => {
  const PATH = '/apis/discovery.k8s.io/v1/namespaces/ml/endpointslices'
  const folder = mkdtempSync(join(tmpdir(), 'spillway-k8s-'))

  const slice = (port: number, version: string, endpoints: ReadonlyArray<readonly [string, object]>) => ({
    metadata: { name: 'vllm-abc', resourceVersion: version },
    ports: [{ name: 'http', port }],
    endpoints: endpoints.map(([address, conditions]) => ({ addresses: [address], conditions })),
  })
  const READY = { ready: true, serving: true, terminating: false }
  const TERMINATING = { ready: false, serving: true, terminating: true }

  it('follows the endpoints of a service, and drains a pod that is terminating', { timeout: 60_000 }, async () => {
    const tokenFile = join(folder, 'token')
    writeFileSync(tokenFile, 'pod-token\n')
    closers.push(() => rmSync(folder, { recursive: true, force: true }))
    const first = await started(FakeUpstream.start())
    const port = Number(new URL(first.url).port)
    const second = await started(FakeUpstream.start(answers(), { host: '127.0.0.2', port }))
    let watcher: ServerResponse | undefined
    const reply: Reply = (asked, res) => {
      if (asked.query.get('watch') !== '1') {
        const items = [slice(port, '1', [['127.0.0.1', READY]])]
        return json({ metadata: { resourceVersion: '1' }, items })(asked, res)
      }
      watcher = res
      res.writeHead(200, { 'content-type': 'application/json' })
      res.flushHeaders()
    }
    const api = await started(ScriptedServer.start({ [`GET ${PATH}`]: reply }))
    const send = (type: string, object: object): void => void watcher?.write(`${JSON.stringify({ type, object })}\n`)

    const kubernetes = { service: 'vllm', namespace: 'ml', port: 'http', apiUrl: api.url, tokenFile }
    const platform = await startWith({ kubernetes })
    const id = (host: string): string => `${MODEL}-local-${host}:${port}`
    expect(replicas(platform)).toEqual([id('127.0.0.1')])
    expect(api.seen[0]?.headers.authorization).toBe('Bearer pod-token')
    expect(await ask(platform)).toBe(200)

    await eventually('the watch', () => watcher !== undefined)
    const both = [
      ['127.0.0.1', READY],
      ['127.0.0.2', READY],
    ] as const
    send('MODIFIED', slice(port, '2', both))
    await eventually('the second is used', () => ready(platform) === 2)

    const { behaviour, openGate } = gated()
    first.behaviour = behaviour
    const seenCount = (): number => first.seen.length + second.seen.length
    const before = seenCount()
    const running = Array.from({ length: 6 }, () => postJson(`${platform.baseURL}/chat/completions`, chat))
    // Whatever was granted before the news has arrived, so that nothing more may.
    await eventually('all have arrived', () => seenCount() === before + 6)
    expect(first.openAnswers).toBeGreaterThan(0)
    send('MODIFIED', slice(port, '3', [['127.0.0.1', TERMINATING], both[1]]))
    await eventually('it drains', () => platform.platform.policies.health.kindOf(id('127.0.0.1')) === 'draining')
    const seen = first.seen.length
    send('MODIFIED', slice(port, '4', [both[1]]))
    for (let i = 0; i < 5; i++) expect(await ask(platform)).toBe(200)
    expect(first.seen.length).toBe(seen)
    openGate()
    for (const answer of await Promise.all(running)) {
      const body = (await answer.json()) as { choices: Array<{ message: { content: string } }> }
      expect(body.choices[0]?.message.content).toBe(WORDS.join(''))
    }
    await eventually('the first is gone', () => replicas(platform).length === 1)
    expect(replicas(platform)).toEqual([id('127.0.0.2')])

    // The service has no endpoints, they say: the pod that answers is still used.
    send('MODIFIED', slice(port, '5', []))
    send('MODIFIED', slice(port, '6', [both[1], ['127.0.0.3', READY]]))
    await eventually('both events were heard', () => replicas(platform).includes(id('127.0.0.3')))
    expect(told(platform).filter((what) => what.includes('127.0.0.2'))).toEqual([`replica-added ${id('127.0.0.2')}`])
    expect(await ask(platform)).toBe(200)
  })

  it('follows the pods of an InferencePool, and drains one that is terminating', { timeout: 60_000 }, async () => {
    const tokenFile = join(mkdtempSync(join(tmpdir(), 'spillway-k8s-')), 'token')
    writeFileSync(tokenFile, 'pod-token\n')
    const first = await started(FakeUpstream.start())
    const port = Number(new URL(first.url).port)
    await started(FakeUpstream.start(answers(), { host: '127.0.0.2', port }))
    const [pools, pods] = [
      '/apis/inference.networking.k8s.io/v1/namespaces/ml/inferencepools',
      '/api/v1/namespaces/ml/pods',
    ]
    const api = await started(FakeKubeApi.start([pools, pods]))
    const labels = { app: 'vllm' }
    const pod = (address: string, more: object = {}) => ({
      metadata: { name: `pod-${address}`, labels, ...more },
      status: { podIP: address, conditions: [{ type: 'Ready', status: 'True' }] },
    })
    const pool = {
      metadata: { name: 'chat' },
      spec: { selector: { matchLabels: labels }, targetPorts: [{ number: port }] },
    }
    api.put(pools, pool)
    api.put(pods, pod('127.0.0.1'))
    const platform = await startWith({ inferencePool: { pool: 'chat', namespace: 'ml', apiUrl: api.url, tokenFile } })
    const id = (host: string): string => `${MODEL}-local-${host}:${port}`
    expect(replicas(platform)).toEqual([id('127.0.0.1')])
    expect(await ask(platform)).toBe(200)
    api.put(pods, pod('127.0.0.2'))
    await eventually('the second is used', () => ready(platform) === 2)
    api.put(pods, pod('127.0.0.1', { deletionTimestamp: '2026-11-16T10:00:00Z' }))
    await eventually('it drains', () => platform.platform.policies.health.kindOf(id('127.0.0.1')) === 'draining')
    api.delete(pods, 'pod-127.0.0.1')
    await eventually('it is gone', () => replicas(platform).length === 1)
    expect(await ask(platform)).toBe(200)
  })
})
