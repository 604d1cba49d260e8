import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { TestFolder } from '../support/child.ts'
import { eventually, pause } from '../support/eventually.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { HOST_SOON_MS, Host, hostTree } from '../support/host.ts'
import { ACME_KEY, MODEL } from '../support/start-platform.ts'

/** Processes are replaced while clients stream and connect: nobody may notice. */
const folder = new TestFolder()
const WORDS = Array.from({ length: 60 }, (_, i) => `word${i} `)
let upstream: FakeUpstream
let host: Host

beforeAll(async () => {
  upstream = await FakeUpstream.start(answers({ words: WORDS, everyMs: 250 }))
  const tree = hostTree(upstream.url, 2, folder, {
    server: { shutdownGraceMs: 600_000 },
    pools: [
      {
        model: MODEL,
        backend: { kind: 'http-openai', timeoutMs: 600_000 },
        replicas: [upstream.url],
        limit: { kind: 'fixed', concurrencyMax: 256 },
      },
    ],
    tenants: [{ id: 'acme', slo: 'patient', keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] }],
    store: { path: 'memory:' },
    logging: { level: 'warn' },
  })
  host = await Host.start(folder.write('rolling.yaml', tree))
}, 3 * HOST_SOON_MS)
afterAll(async () => {
  await host?.child.end()
  await upstream.close()
  folder.remove()
})

async function stream(): Promise<string> {
  const body = { model: MODEL, stream: true, max_tokens: 100, messages: [{ role: 'user', content: 'Hello.' }] }
  const { status, text } = await host.post('/v1/chat/completions', body, ACME_KEY)
  return status === 200 ? text : `status ${status}: ${text}`
}

const restartCount = (): number => host.child.err.split('spillway: restarted').length - 1

async function restart(): Promise<void> {
  const before = restartCount()
  host.child.signal('SIGUSR1')
  await eventually('the restart ends', () => restartCount() > before, 5 * HOST_SOON_MS)
}

/** Connects, asks and reads the whole answer; what goes wrong is the result. */
function knock(): Promise<string> {
  const { hostname, port } = new URL(host.address)
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) })
    let text = ''
    socket.setEncoding('latin1')
    socket.on('connect', () => socket.write('GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'))
    socket.on('data', (part: string) => {
      text += part
    })
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    socket.on('close', () => resolve(text.startsWith('HTTP/1.1 200') ? 'ok' : `cut: ${text.slice(0, 40)}`))
  })
}

describe('a rolling restart of two processes', { timeout: 20 * HOST_SOON_MS }, () => {
  it('breaks none of 200 streams', async () => {
    const pidsBefore = host.pids()
    const streams = Array.from({ length: 200 }, () => stream())
    await eventually('all streams have begun', () => upstream.openAnswers >= 200, HOST_SOON_MS)
    await restart()
    const ended = await Promise.all(streams)
    expect(ended.filter((text) => !text.trimEnd().endsWith('data: [DONE]') || !text.includes('word59'))).toEqual([])
    expect(host.pids().filter((pid) => pidsBefore.includes(pid))).toEqual([])
  })

  it('refuses and resets none of 10,000 connections over ten restarts', async () => {
    let isOver = false
    const outcomes = new Map<string, number>()
    const note = (outcome: string): unknown => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    const client = async (): Promise<void> => {
      while (!isOver || (outcomes.get('ok') ?? 0) < 10_000) {
        note(await knock())
        // The pace of a balancer's checks; ten clients make some hundreds a second.
        await pause(10)
      }
    }
    const clients = Array.from({ length: 10 }, client)
    for (let i = 0; i < 10; i++) await restart()
    isOver = true
    await Promise.all(clients)
    expect([...outcomes.keys()]).toEqual(['ok'])
    expect(outcomes.get('ok')).toBeGreaterThanOrEqual(10_000)
  })
})
