import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { ACME_KEY, MODEL, postJson, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** Clients that are refused as too late and come back when they were told, over HTTP. */
let platform: TestPlatform | undefined
afterEach(() => platform?.close())

interface Told {
  readonly error: { readonly code: string; readonly spillway: Record<string, unknown> }
}

it('find the room that was kept for them, and the others are told not to come back by themselves', {
  timeout: 90_000,
}, async () => {
  platform = await startPlatform(
    testTree({
      slos: [{ name: 'quick', ttftMs: 600, interTokenMs: 200, totalMs: 20_000 }],
      ladder: { enabled: false },
      tenants: [{ id: 'acme', slo: 'quick', keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] }],
    }),
  )
  const url = `${platform.address}/v1/chat/completions`
  const seen = { given: 0, none: 0 }
  let count = 0
  let isOver = false
  const ask = async (body: string): Promise<void> => {
    const response = await postJson(url, body)
    const text = await response.text()
    if (response.status === 200) return
    const { error } = JSON.parse(text) as Told
    if (error.code !== 'predicted_late') return
    const slot = error.spillway['return_slot'] as 'given' | 'none'
    seen[slot]++
    const headers = response.headers
    expect(headers.get('x-should-retry')).toBe(slot === 'given' ? null : 'false')
    expect(headers.has('retry-after-ms')).toBe(slot === 'given')
    expect(error.spillway['retry_after_ms']).toBeGreaterThan(0)
    // Who has no slot is a patient person: forty of them would do nothing but ask.
    await pause(slot === 'given' ? Number(headers.get('retry-after-ms')) : 200)
    if (slot === 'given' && !isOver) await ask(body)
  }
  /** As many at once as keep one engine full; every body is another one. */
  const client = async (): Promise<void> => {
    while (!isOver) {
      const content = `Question ${count++}. ${'word '.repeat(1_500)}`
      await ask(JSON.stringify({ model: MODEL, max_tokens: 60, messages: [{ role: 'user', content }] }))
    }
  }
  const clients = Array.from({ length: 40 }, client)
  const kept = () => platform!.metric('spillway_return_slots_total', { outcome: 'kept' })
  await eventually('somebody came back and was admitted', async () => ((await kept()) ?? 0) >= 3, 60_000)
  isOver = true
  await Promise.all(clients)
  expect(seen.given).toBeGreaterThanOrEqual(3)
})
