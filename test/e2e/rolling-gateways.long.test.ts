import { Agent, request } from 'node:http'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { CheckedBalancer } from '../support/checked-balancer.ts'
import { Child, TestFolder } from '../support/child.ts'
import { eventually, pause } from '../support/eventually.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { freePort } from '../support/servers.ts'
import { ACME_KEY, authorization, MODEL, testTree } from '../support/start-platform.ts'

/**
 * Two gateways behind a balancer are stopped with SIGTERM and started again, one after the other, while 200 streams run
 * and clients come and go, on connections of their own and on kept ones. Each gateway says "not ready", goes on accepting
 * for `shutdownDelayMs`, and lets its streams end: no stream breaks and no connection is refused.
 */
const STREAMS = 200
const WORDS = Array.from({ length: 60 }, (_, i) => `word${i} `)
/** A busy machine starts a process in half a minute. */
const SOON_MS = 180_000
/** The balancer asks ten times a second; the machine may be busy. */
const DELAY_MS = 5_000

const folder = new TestFolder()
const children = new Map<number, Child>()
let upstream: FakeUpstream
let balancer: CheckedBalancer
let front = ''
let ports: number[] = []

function startGateway(port: number): void {
  const tree = testTree({
    server: { port, shutdownDelayMs: DELAY_MS, shutdownGraceMs: 600_000 },
    models: [{ name: MODEL }],
    pools: [
      {
        model: MODEL,
        backend: { kind: 'http-openai', timeoutMs: 600_000 },
        replicas: [upstream.url],
        limit: { kind: 'fixed', concurrencyMax: 2 * STREAMS },
      },
    ],
    tenants: [{ id: 'acme', slo: 'patient', keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] }],
    store: { path: 'memory:' },
    logging: { level: 'warn' },
  })
  const config = folder.write(`gateway-${port}.yaml`, tree)
  children.set(port, new Child({ env: { SPILLWAY_CONFIG: config, PORT: '' } }))
}

const isServing = (port: number) => eventually(`${port} is ready`, () => balancer.isReady(port), SOON_MS)

beforeAll(async () => {
  upstream = await FakeUpstream.start(answers({ words: WORDS, everyMs: 250 }))
  ports = [await freePort(), await freePort()]
  for (const port of ports) startGateway(port)
  balancer = new CheckedBalancer(ports)
  front = await balancer.start()
  for (const port of ports) await isServing(port)
}, 2 * SOON_MS)
afterAll(async () => {
  for (const child of children.values()) await child.end()
  await balancer?.close()
  await upstream?.close()
  folder.remove()
})

/** One request; what goes wrong is the result. */
function ask(path: string, body: object | undefined, agent: Agent | false): Promise<string> {
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = {
    ...authorization(ACME_KEY),
    ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  }
  return new Promise((resolve) => {
    const asked = request(front + path, { method: body === undefined ? 'GET' : 'POST', headers, agent }, (response) => {
      let received = ''
      response.setEncoding('utf8').on('data', (part: string) => {
        received += part
      })
      response.on('error', (error: NodeJS.ErrnoException) => resolve(`broken: ${error.code}`))
      response.on('end', () => resolve(response.statusCode === 200 ? received : `status ${response.statusCode}`))
    })
    asked.on('error', (error: NodeJS.ErrnoException) => resolve(`failed: ${error.code}`))
    asked.end(text)
  })
}

const streamed = { model: MODEL, stream: true, max_tokens: 100, messages: [{ role: 'user', content: 'Hello.' }] }
const isWhole = (text: string): boolean => text.includes('word59') && text.trimEnd().endsWith('data: [DONE]')

it('breaks none of 200 streams and refuses no connection', { timeout: 10 * SOON_MS }, async () => {
  let isOver = false
  const outcomes = new Map<string, number>()
  /** Streams that begin anew as long as gateways are replaced: 200 run at any time. */
  const client = async (): Promise<void> => {
    do {
      const text = await ask('/v1/chat/completions', streamed, false)
      const outcome = isWhole(text) ? 'whole' : `torn: ${text.slice(0, 60)}…${text.slice(-60)}`
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    } while (!isOver)
  }
  /** Short questions on one kept connection, as long as the server keeps it. */
  const caller = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (!isOver) {
      const text = await ask('/v1/models', undefined, agent)
      const outcome = text.includes(MODEL) ? 'listed' : `not listed: ${text.slice(0, 80)}`
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      await pause(50)
    }
    agent.destroy()
  }
  const clients = [...Array.from({ length: STREAMS }, client), ...Array.from({ length: 4 }, caller)]
  await eventually('all streams have begun', () => upstream.openAnswers >= STREAMS, SOON_MS)
  for (const port of ports) {
    const child = children.get(port) as Child
    child.signal('SIGTERM')
    expect(await child.exited(SOON_MS)).toBe(0)
    startGateway(port)
    await isServing(port)
  }
  isOver = true
  await Promise.all(clients)
  expect([...outcomes.keys()].sort()).toEqual(['listed', 'whole'])
  expect(outcomes.get('whole')).toBeGreaterThanOrEqual(2 * STREAMS)
  expect(balancer.refusedCount).toBe(0)
})
