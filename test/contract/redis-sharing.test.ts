import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Excess } from '../../bench/experiments/kit/shared-limits-world.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { Renewals } from '../../src/lifecycle/sharing/renewals.ts'
import type { LeasedBucket } from '../../src/policy/sharing/leased-bucket.ts'
import { SliceBook } from '../../src/policy/sharing/slice-book.ts'
import { makeRedisClient } from '../../src/redis/redis-client.ts'
import { RedisSharing } from '../../src/sharing/redis-sharing.ts'
import { eventually, pause } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { startRedis, type TestServer } from '../support/servers.ts'

/**
 * Three gateways over a real Redis that is stopped, emptied and loses its functions: what they admit together stays
 * within law L4, and no call hangs. Time is real, so nothing here asserts how fast something is.
 */
const why = missing('redis')
const clock = new LiveClock()
const limit = { perMinute: 600_000, burst: 6_000 }
const PER_SECOND = limit.perMinute / 60
const COUNT = 3
let redis: TestServer | undefined
let fleet: Gateway[] = []
let cells = 0

interface Gateway {
  readonly book: SliceBook
  readonly renewals: Renewals
  readonly sharing: RedisSharing
  readonly bucket: LeasedBucket
}

beforeAll(async () => {
  if (why === undefined) redis = await startRedis()
}, 30_000)
afterEach(async () => {
  redis?.resume()
  await Promise.all(fleet.map(({ renewals }) => renewals.stop()))
  for (const { sharing } of fleet) sharing.close()
  fleet = []
})
afterAll(() => redis?.close())

async function startFleet(): Promise<void> {
  const cell = `test${++cells}`
  const options = { shardCount: 2 }
  for (let i = 0; i < COUNT; i++) {
    const sharing = new RedisSharing({ clock, urls: [redis!.url], cell, shardCount: 2 })
    const book = new SliceBook(clock.now(), `g${i}`, options)
    const renewals = new Renewals(clock, sharing, book)
    fleet.push({ book, sharing, renewals, bucket: book.bucket(clock.now(), 'tenant:t:tokens', limit) })
    await renewals.start()
  }
  await eventually('every gateway knows of all', () => fleet.every(({ book }) => book.gatewayCount === COUNT))
}

/** Offers more than the budget at every gateway until the time is over. */
async function load(forMs: number): Promise<{ admitted: number; excess: number; byGateway: number[] }> {
  const excess = new Excess(limit)
  const byGateway = fleet.map(() => 0)
  const endAt = clock.now() + forMs * 1_000
  while (clock.now() < endAt) {
    for (const [i, { bucket }] of fleet.entries()) {
      for (let k = 0; k < 4; k++) {
        const now = clock.now()
        if (bucket.fitsAt(now, 20) !== now) break
        bucket.take(now, 20)
        byGateway[i] = (byGateway[i] ?? 0) + 20
        excess.spend(now, 20)
      }
    }
    await pause(3)
  }
  return { admitted: byGateway.reduce((a, b) => a + b), excess: excess.most, byGateway }
}

/** B, one `ttl` of every gateway that is cut off, a slice for each that began. */
const BOUND = limit.burst + PER_SECOND + COUNT * (limit.burst / (2 * COUNT))

const withClient = async <T>(use: (client: ReturnType<typeof makeRedisClient>) => Promise<T>): Promise<T> => {
  const client = makeRedisClient(redis!.url)
  await client.connect()
  try {
    return await use(client)
  } finally {
    client.destroy()
  }
}

describe.skipIf(why !== undefined)(`gateways over a real Redis${why === undefined ? '' : `: ${why}`}`, () => {
  it('share a budget, and each gets some of it', { timeout: 60_000 }, async () => {
    await startFleet()
    const { excess, byGateway } = await load(2_000)
    expect(excess).toBeLessThanOrEqual(BOUND)
    for (const admitted of byGateway) expect(admitted).toBeGreaterThan(0)
  })

  it('keep the budget while Redis is stopped, and use it again afterwards', { timeout: 60_000 }, async () => {
    await startFleet()
    const loaded = load(6_000)
    await pause(1_000)
    redis!.pause()
    await eventually('all are on their own', () => fleet.every(({ book }) => book.silence(clock.now()).shardCount > 0))
    // A request that is larger than its slice is not held up.
    const [{ bucket, renewals }] = fleet as [Gateway]
    expect(bucket.askFor(clock.now(), 2_000) && (await renewals.fetch([bucket]))).toBe(false)
    await pause(2_000)
    redis!.resume()
    const { excess, admitted } = await loaded
    expect(excess).toBeLessThanOrEqual(BOUND)
    expect(admitted).toBeGreaterThan(PER_SECOND)
    await eventually('all are heard', () => fleet.every(({ book }) => book.silence(clock.now()).shardCount === 0))
  })

  it('keep the budget when Redis loses everything, functions too', { timeout: 60_000 }, async () => {
    await startFleet()
    const loaded = load(4_000)
    await pause(1_000)
    await withClient(async (client) => {
      await client.sendCommand(['FUNCTION', 'FLUSH'])
      await client.flushAll()
    })
    await pause(1_000)
    await withClient((client) => client.sendCommand(['FUNCTION', 'FLUSH']))
    const { excess } = await loaded
    expect(excess).toBeLessThanOrEqual(BOUND)
    await eventually('all are heard', () => fleet.every(({ book }) => book.silence(clock.now()).shardCount === 0))
    const keys = await withClient((client) => client.keys(`{test${cells}:*`))
    expect(keys.length).toBeGreaterThan(2)
  })

  it('name prompts with one secret, the first that was offered', { timeout: 60_000 }, async () => {
    await startFleet()
    const offered = fleet.map(({ sharing }, i) => sharing.salt(`of g${i}`))
    const heard = new Set(await Promise.all(offered))
    expect(heard.size).toBe(1)
    expect(['of g0', 'of g1', 'of g2']).toContain([...heard][0])
    await withClient((client) => client.sendCommand(['FUNCTION', 'FLUSH']))
    expect(new Set([await fleet[2]?.sharing.salt('of a new one')])).toEqual(heard)
  })

  it('leave when they stop, and others have the whole at once', { timeout: 60_000 }, async () => {
    await startFleet()
    const [first, ...rest] = fleet as [Gateway, ...Gateway[]]
    for (const { renewals } of rest) await renewals.stop()
    const count = await eventually('one is left', () => first.book.gatewayCount === 1 && first.book.gatewayCount)
    expect(count).toBe(1)
  })

  it('do not hang without a Redis', { timeout: 60_000 }, async () => {
    const sharing = new RedisSharing({ clock, urls: ['redis://127.0.0.1:1'], shardCount: 1 })
    const book = new SliceBook(clock.now(), 'g', { shardCount: 1 })
    const renewals = new Renewals(clock, sharing, book)
    await renewals.start()
    const bucket = book.bucket(clock.now(), 't', limit)
    const now = clock.now()
    expect(bucket.fitsAt(now, 10)).toBe(now)
    expect(await sharing.take(0, { id: 'g', epoch: '', told: 0, ttlMs: 1_000, forgetMs: 1_000 }, [])).toBeUndefined()
    await renewals.stop()
    sharing.close()
  })
})
