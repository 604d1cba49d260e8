import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { missing } from '../support/installed.ts'
import { startRedis, type TestServer } from '../support/servers.ts'
import {
  ACME_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  upstreamTree,
} from '../support/start-platform.ts'

/** Gateways that keep one tenant's limits together, over a real Redis. */

const why = missing('redis')
const CHAT = '/v1/chat/completions'
const chat = {
  model: MODEL,
  messages: [{ role: 'user' as const, content: 'Hello there. How are you?' }],
  max_tokens: 8,
}

let redis: TestServer | undefined
const open: Array<{ close(): Promise<void> }> = []
let cells = 0

beforeAll(async () => {
  if (why === undefined) redis = await startRedis()
}, 30_000)
afterEach(async () => {
  redis?.resume()
  for (const one of open.splice(0).toReversed()) await one.close()
})
afterAll(() => redis?.close())

const tenants = (allowance: Tree): Tree[] => [
  { id: 'acme', slo: 'patient', allowance, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
]

async function startGateways(count: number, allowance: Tree, sharing: Tree = {}): Promise<TestPlatform[]> {
  const upstream = await FakeUpstream.start(answers())
  open.push(upstream)
  const tree = upstreamTree([upstream.url], {
    tenants: tenants(allowance),
    sharing: { redis: { url: redis!.url }, name: `e2e${++cells}`, ...sharing },
  })
  const gateways: TestPlatform[] = []
  for (let i = 0; i < count; i++) {
    const gateway = await startPlatform(tree)
    open.push(gateway)
    gateways.push(gateway)
  }
  return gateways
}

const ask = (gateway: TestPlatform): Promise<Response> => postJson(gateway.address + CHAT, chat)

describe.skipIf(why !== undefined)(`limits over two gateways${why === undefined ? '' : `: ${why}`}`, () => {
  it('hold for both together', { timeout: 30_000 }, async () => {
    const [a, b] = (await startGateways(2, { requests: { perMinute: 6, burst: 40 } })) as [TestPlatform, TestPlatform]
    const statuses: number[] = []
    for (let i = 0; i < 40; i++) {
      statuses.push((await ask(a)).status, (await ask(b)).status)
    }
    const admitted = statuses.filter((status) => status === 200).length
    expect(statuses.every((status) => status === 200 || status === 429)).toBe(true)
    // Half of the burst is in the store at first, and some drips in; each alone would have let 40 through.
    expect(admitted).toBeGreaterThanOrEqual(20)
    expect(admitted).toBeLessThanOrEqual(42)
    const refused = await ask(a)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after-ms'))).toBeGreaterThan(1_000)
    await eventually('both say the same', async () => {
      const said = await Promise.all(
        [a, b].map(async (one) => (await ask(one)).headers.get('x-ratelimit-remaining-requests')),
      )
      return said[0] === '0' && said[1] === '0'
    })
  })
})
