import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { missing } from '../support/installed.ts'
import { startRedis, type TestServer } from '../support/servers.ts'
import { authorization, MODEL, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'

/** Two gateways that share one engine's slots over a real Redis. */

const why = missing('redis')
const SLOTS = 8
const TURN_MS = 60
const keyOf = (tenant: string): string => `sk-${tenant}-0123456789abcdef0123456789abcdef`

let redis: TestServer | undefined
const open: Array<{ close(): Promise<void> }> = []

beforeAll(async () => {
  if (why === undefined) redis = await startRedis()
}, 30_000)
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})
afterAll(() => redis?.close())

describe.skipIf(why !== undefined)(`room of two gateways${why === undefined ? '' : `: ${why}`}`, () => {
  it('is never more than the engine\u2019s, and tenants of different gateways share it', {
    timeout: 60_000,
  }, async () => {
    let [running, most] = [0, 0]
    const answer = answers()
    const upstream = await FakeUpstream.start(async (call) => {
      running++
      most = Math.max(most, running)
      await sleep(TURN_MS)
      running--
      await answer(call)
    })
    open.push(upstream)
    const tenants = ['a', 'b'].map((id) => ({
      id,
      slo: 'patient',
      keys: [{ id: `${id}-1`, hash: hashKey(keyOf(id)) }],
    }))
    const sharing = { redis: { url: redis!.url }, name: 'e2e-room' }
    const tree = upstreamTree([upstream.url], { tenants, sharing }, SLOTS)
    const gateways: TestPlatform[] = []
    for (let i = 0; i < 2; i++) {
      const gateway = await startPlatform(tree)
      open.push(gateway)
      gateways.push(gateway)
    }
    const done = [0, 0]
    let isOver = false
    // Each tenant has three times the engine's slots waiting, at a gateway of its own.
    const clients = gateways.flatMap((gateway, i) =>
      Array.from({ length: 3 * SLOTS }, async () => {
        while (!isOver) {
          const response = await fetch(`${gateway.address}/v1/chat/completions`, {
            method: 'POST',
            headers: { ...authorization(keyOf(i === 0 ? 'a' : 'b')), 'content-type': 'application/json' },
            body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'Hello.' }], max_tokens: 8 }),
          })
          await response.arrayBuffer()
          if (response.status === 200) done[i] = (done[i] ?? 0) + 1
        }
      }),
    )
    while ((done[0] ?? 0) + (done[1] ?? 0) < 400) await sleep(20)
    isOver = true
    await Promise.all(clients)
    expect(most).toBeLessThanOrEqual(SLOTS)
    expect(most).toBeGreaterThan(SLOTS / 2)
    const [a = 0, b = 0] = done
    expect((a + b) ** 2 / (2 * (a * a + b * b))).toBeGreaterThan(0.98)
  })
})
