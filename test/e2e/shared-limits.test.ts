import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { answers, FakeUpstream, hangs } from '../support/fake-upstream.ts'
import { missing } from '../support/installed.ts'
import { startRedis, type TestServer } from '../support/servers.ts'
import {
  ACME_KEY,
  authorization,
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

async function startGateways(
  count: number,
  allowance: Tree,
  sharing: Tree = {},
  behaviour = answers(),
): Promise<TestPlatform[]> {
  const upstream = await FakeUpstream.start(behaviour)
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

const readyOf = async (gateway: TestPlatform): Promise<{ status: string; because: string }> =>
  (await (await fetch(`${gateway.address}/health/ready`)).json()) as { status: string; because: string }

const ask = (gateway: TestPlatform): Promise<Response> => postJson(gateway.address + CHAT, chat)

const knowEachOther = (gateways: readonly TestPlatform[]): Promise<true> =>
  eventually('each knows that they are two', async () => {
    const told = await Promise.all(gateways.map(readyOf))
    return told.every(({ because }) => because.includes('shared by 2 gateways'))
  })

describe.skipIf(why !== undefined)(`limits over two gateways${why === undefined ? '' : `: ${why}`}`, () => {
  it('hold for both together', async () => {
    // One more in twenty seconds: two at most while this runs.
    const [a, b] = (await startGateways(2, { requests: { perMinute: 3, burst: 40 } })) as [TestPlatform, TestPlatform]
    await knowEachOther([a, b])
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

  it('let a request through that is larger than its slice, and tell the truth of one that never fits', async () => {
    const [a] = (await startGateways(2, { tokens: { perMinute: 60, burst: 4_000 } })) as [TestPlatform]
    // A gateway that has not heard of the other yet has a larger slice, and fetches nothing.
    await knowEachOther([a])
    const long = (words: number) =>
      postJson(a.address + CHAT, { ...chat, messages: [{ role: 'user', content: 'word '.repeat(words) }] })
    // Slices are 1,000 tokens, and half of the burst is in the store.
    // On a busy machine the store may answer after the 20 ms that a request waits: then the client is told to come back.
    await eventually('it is let through', async () => (await long(1_800)).status === 200)
    const never = await long(5_200)
    expect(never.status).toBe(429)
    expect(never.headers.get('retry-after')).toBeNull()
    // Answered or late, as the machine has it: a late one is in time for the next try.
    const fetches = async (outcome: string) => (await a.metric('spillway_sharing_fetches_total', { outcome })) ?? 0
    await eventually('the fetch is counted', async () => (await fetches('answered')) + (await fetches('late')) >= 1)
  })

  it('are known at both within a renewal', async () => {
    const [a, b] = (await startGateways(2, { requests: { perMinute: 1, burst: 100 } })) as [TestPlatform, TestPlatform]
    await knowEachOther([a, b])
    const remaining = async (one: TestPlatform) =>
      Number((await ask(one)).headers.get('x-ratelimit-remaining-requests'))
    const before = await remaining(b)
    for (let i = 0; i < 10; i++) await ask(a)
    const after = await eventually('b knows', async () => {
      const left = await remaining(b)
      return left <= before - 10 && left
    })
    expect(after).toBeLessThanOrEqual(before - 10)
  })

  it('are at the safe share where Redis is away from the start, and the server says so', async () => {
    const [alone] = (await startGateways(
      1,
      { requests: { perMinute: 600, burst: 160 } },
      {
        redis: { url: 'redis://:hidden-word@127.0.0.1:1' },
      },
    )) as [TestPlatform]
    const ready = await readyOf(alone)
    expect(ready.status).toBe('ready')
    expect(ready.because).toContain('the lease store has been silent')
    expect((await ask(alone)).status).toBe(200)
    expect(await alone.metric('spillway_sharing_silent_shards')).toBe(4)
    const told = await eventually('a report', () => alone.entries.find((entry) => entry.kind === 'sharing-reported'))
    expect(told).toMatchObject({ silentShardCount: 4, gatewayCount: 16 })
    expect(alone.printed).not.toContain('hidden-word')
  })

  it('hold for requests at once, too', async () => {
    const [a, b] = (await startGateways(2, { concurrencyMax: 6 }, {}, hangs)) as [TestPlatform, TestPlatform]
    await knowEachOther([a, b])
    const calls = new AbortController()
    const statuses: number[] = []
    const call = (one: TestPlatform): void => {
      const headers = { 'content-type': 'application/json', ...authorization() }
      fetch(one.address + CHAT, { method: 'POST', headers, body: JSON.stringify(chat), signal: calls.signal }).then(
        ({ status }) => void statuses.push(status),
        () => {},
      )
    }
    for (let i = 0; i < 12; i++) for (const one of [a, b]) call(one)
    const running = () => a.platform.liveCount + b.platform.liveCount
    await eventually('the others are refused', () => statuses.length >= 17)
    expect(statuses.every((status) => status === 429)).toBe(true)
    // Six, and a place on credit for each gateway.
    expect(running()).toBeLessThanOrEqual(8)
    expect(running()).toBeGreaterThanOrEqual(2)
    calls.abort()
    await eventually('all have ended', () => running() === 0)
  })

  it('are shared again when Redis is back, and left when a gateway stops', async () => {
    const [a, b] = (await startGateways(2, { requests: { perMinute: 600, burst: 160 } })) as [
      TestPlatform,
      TestPlatform,
    ]
    redis!.pause()
    await eventually(
      'both are alone',
      async () => (await readyOf(a)).because.includes('silent') && (await readyOf(b)).because.includes('silent'),
    )
    expect((await ask(a)).status).toBe(200)
    redis!.resume()
    await eventually(
      'both are back',
      async () =>
        (await readyOf(a)).because.includes('shared by 2') && (await readyOf(b)).because.includes('shared by 2'),
    )
    await b.close()
    open.splice(open.indexOf(b), 1)
    await eventually('one is left', async () => (await readyOf(a)).because.includes('shared by 1 '))
  })

  it('refuse a strict tenant when the store has forgotten this gateway', async () => {
    const upstream = await FakeUpstream.start(answers())
    open.push(upstream)
    const gateway = await startPlatform(
      upstreamTree([upstream.url], {
        tenants: [{ ...tenants({ requests: { perMinute: 600, burst: 100 } })[0], strict: true }],
        sharing: { redis: { url: 'redis://127.0.0.1:1' }, forgetMs: 10_000 },
      }),
    )
    open.push(gateway)
    expect((await ask(gateway)).status).toBe(200)
    const refused = await eventually(
      'it is refused',
      async () => {
        const response = await ask(gateway)
        return response.status === 503 && response
      },
      25_000,
    )
    expect(await refused.json()).toMatchObject({ error: { code: 'limits_unknown' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  })
})
