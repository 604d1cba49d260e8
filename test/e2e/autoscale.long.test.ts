import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import {
  ACME_KEY,
  authorization,
  METRICS_KEY,
  startPlatform,
  type TestPlatform,
  upstreamTree,
} from '../support/start-platform.ts'

/** Engines as processes that the leader starts and ends by a command: from none to one, to four, and to none again. */
const CLI = join(import.meta.dirname, '../../bin/spillway.mjs')
const SCRIPT = join(import.meta.dirname, '../support/scale-engines.mjs')
const POOL = 'sim-local'
/** The rule reads metrics that are up to 15 s old every 15 s, and engines start slowly on a busy machine. */
const WAIT_MS = 180_000

let folder: string
let platform: TestPlatform | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-autoscale-'))
})

afterEach(async () => {
  await platform?.close()
  platform = undefined
  for (const pid of pids()) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended already.
    }
  }
  rmSync(folder, { recursive: true, force: true })
})

const pids = (): number[] =>
  readdirSync(folder).flatMap((name) =>
    name.endsWith('.pid') ? [Number(readFileSync(join(folder, name), 'utf8'))] : [],
  )

const calls = (): string[] => {
  try {
    return readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n')
  } catch {
    return []
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer()
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      return server
    }),
  )
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server: Server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

const signals = async (): Promise<Record<string, number>> => {
  const root = platform?.address ?? ''
  const answer = await fetch(`${root}/autoscale/${POOL}`, { headers: authorization(METRICS_KEY) })
  expect(answer.status).toBe(200)
  return (await answer.json()) as Record<string, number>
}

const ask = (maxTokens: number): Promise<Response> =>
  fetch(`${platform?.baseURL}/chat/completions`, {
    method: 'POST',
    headers: { ...authorization(ACME_KEY), 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'sim',
      stream: true,
      max_tokens: maxTokens,
      messages: [{ role: 'user', content: 'Tell me a story.' }],
    }),
  })

it(
  'wakes a sleeping pool once, follows demand to four engines, and lets them go',
  async () => {
    const ports = await freePorts(4)
    const autoscale = {
      writer: 'spillway',
      minWarm: 0,
      max: 4,
      idleToZeroMs: 3_000,
      coldStartMs: 2_000,
      // By requests: how much work a machine that is busy with other tests can offer in a second is not known.
      rule: 'hpa-queue',
      queueTarget: 2,
      actuator: {
        kind: 'command',
        command: [process.execPath, SCRIPT, folder, CLI, ...ports.map(String)],
        timeoutMs: 10_000,
      },
    }
    const tree = upstreamTree(
      ports.map((port) => `http://127.0.0.1:${port}/v1`),
      { server: { keepAliveMs: 100 } },
    )
    const [pool] = tree['pools'] as Record<string, unknown>[]
    platform = await startPlatform({ ...tree, pools: [{ ...pool, autoscale }] })
    expect(await signals()).toMatchObject({ ready: 0 })

    // Five clients come at once: one call wakes the pool, and all of them wait for it with comments on the line.
    const answers = await Promise.all(Array.from({ length: 5 }, () => ask(8)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    for (const text of texts) expect(text).toContain('[DONE]')
    expect(texts[0]).toMatch(/^:/)
    expect(calls()[0]).toBe('0 1')
    expect(calls().filter((call) => call === '0 1')).toHaveLength(1)
    expect(await signals()).toMatchObject({ activation: 1 })

    let isOver = false
    const busy = Array.from({ length: 24 }, async () => {
      while (!isOver) await ask(400).then((answer) => answer.text())
    })
    try {
      await eventually('four engines are ready', async () => (await signals())['ready'] === 4 || undefined, WAIT_MS)
    } finally {
      isOver = true
      await Promise.all(busy)
    }
    expect(pids()).toHaveLength(4)

    await eventually('nobody is left', () => (pids().length === 0 ? true : undefined), WAIT_MS)
    expect(calls().at(-1)?.endsWith(' 0')).toBe(true)
    await eventually('and it is known', async () => (await signals())['ready'] === 0 || undefined, WAIT_MS)
    const orders = platform.entries.flatMap((entry) => (entry.kind === 'scale-ordered' ? [entry] : []))
    expect(orders.every(({ outcome }) => outcome === 'done')).toBe(true)
    expect(orders.at(-1)).toMatchObject({ to: 0 })
    expect((await signals())['coldStartSeconds']).not.toBe(2)
  },
  3 * WAIT_MS,
)

it('tells signals to those who may read metrics, and to nobody else', async () => {
  platform = await startPlatform()
  const root = platform.address
  await eventually('signals', async () => ((await signals())['desired'] === 1 ? true : undefined))
  const all = await fetch(`${root}/autoscale`, { headers: authorization(METRICS_KEY) })
  expect(await all.json()).toMatchObject({ pools: [{ pool: POOL, desired: 1, ready: 1 }] })
  for (const key of [ACME_KEY, 'sk-nobody'])
    for (const path of ['/autoscale', `/autoscale/${POOL}`])
      expect((await fetch(root + path, { headers: authorization(key) })).status).toBeGreaterThanOrEqual(401)
  const none = await fetch(`${root}/autoscale/none`, { headers: authorization(METRICS_KEY) })
  expect([none.status, await none.json()]).toMatchObject([404, { error: { code: 'no_such_pool' } }])
  expect(await platform.metric('spillway_autoscale_desired_replicas', { pool: POOL })).toBe(1)
})
