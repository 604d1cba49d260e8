import { spawn, spawnSync } from 'node:child_process'
import { afterEach, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import { eventually, pause } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { LeaseFleet, type LeaseFleetOptions } from '../support/lease-fleet.ts'
import { makeNamespaces } from '../support/network-namespaces.ts'
import { redisCli, startRedisCluster } from '../support/redis-fleets.ts'
import { startRedis } from '../support/servers.ts'
import { SlowLink } from '../support/slow-link.ts'

/**
 * Four gateways, a process each, over a real Redis, offered twice their budget at a skew of 70/10/10/10, while something
 * breaks: what they admit together stays within law L4. Time is real, so nothing here asserts how fast something is.
 */
const why = missing('redis')
const clock = new LiveClock()
const LIMIT = { perMinute: 600_000, burst: 20_000 }
const RATE = LIMIT.perMinute / 60
const SHARES = [0.7, 0.1, 0.1, 0.1]
const REQUEST = 100
const SLICE = LIMIT.burst / (2 * SHARES.length)
const open: Array<{ close(): unknown }> = []

afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

function startFleet(options: Partial<LeaseFleetOptions> & Pick<LeaseFleetOptions, 'urls'>): LeaseFleet {
  const fleet = new LeaseFleet({
    cell: 'faults',
    limit: LIMIT,
    requestTokens: REQUEST,
    shares: SHARES,
    load: 2,
    ...options,
  })
  open.push(fleet)
  return fleet
}

/** L4 with every gateway cut off, and this many that begin. */
const bound = (joined = SHARES.length): number => LIMIT.burst + RATE + joined * SLICE + REQUEST

/** What is used of the rate over some seconds from now on. */
async function use(fleet: LeaseFleet, seconds = 3): Promise<number> {
  const fromAt = clock.now()
  await pause(seconds * 1_000)
  return fleet.rate(fromAt, clock.now()) / RATE
}

describe.skipIf(why !== undefined)(`a budget over a real Redis${why === undefined ? '' : `: ${why}`}`, () => {
  it('is used in full, and kept when Redis is stopped for 4 s', { timeout: 90_000 }, async () => {
    const redis = await startRedis()
    open.push(redis)
    const fleet = startFleet({ urls: [redis.url] })
    await fleet.ready()
    await pause(2_000)
    const before = await use(fleet, 5)
    redis.pause()
    const during = await use(fleet, 4)
    redis.resume()
    const resumedAt = clock.now()
    await fleet.ready()
    const after = await use(fleet, 5)
    // For the reader of a run: the use of the rate in each second after the return.
    const seconds = [0, 1, 2, 3, 4].map((i) => fleet.rate(resumedAt + i * 1e6, resumedAt + (i + 1) * 1e6) / RATE)
    expect(fleet.excess, JSON.stringify({ before, during, after, seconds })).toBeLessThanOrEqual(bound())
    for (const used of [before, during, after]) expect(used).toBeGreaterThan(0)
  })

  it('is kept when Redis is killed and comes back empty', { timeout: 90_000 }, async () => {
    const redis = await startRedis()
    const fleet = startFleet({ urls: [redis.url] })
    await fleet.ready()
    await pause(2_000)
    await redis.kill()
    await pause(2_000)
    open.push(await startRedis({ port: redis.port }))
    await fleet.ready()
    const after = await use(fleet)
    expect(fleet.excess, JSON.stringify({ after })).toBeLessThanOrEqual(bound())
    expect(after).toBeGreaterThan(0)
  })

  it('is kept when functions are flushed every second', { timeout: 90_000 }, async () => {
    const redis = await startRedis()
    open.push(redis)
    const fleet = startFleet({ urls: [redis.url] })
    await fleet.ready()
    for (let i = 0; i < 4; i++) {
      redisCli(redis.port, 'function', 'flush')
      await pause(1_000)
    }
    expect(fleet.excess).toBeLessThanOrEqual(bound())
    await fleet.ready()
  })

  it('is kept over a link of 200 ms, with one gateway behind it', { timeout: 90_000 }, async () => {
    const redis = await startRedis()
    open.push(redis)
    const link = await SlowLink.to(redis.port, { delayMs: 100, breakEvery: 1_000_000 })
    open.push(link)
    const slow = link.url.replace('http:', 'redis:')
    const fleet = startFleet({ urls: [slow, redis.url, redis.url, redis.url] })
    await fleet.ready()
    const used = await use(fleet, 5)
    expect(fleet.excess, JSON.stringify({ used })).toBeLessThanOrEqual(bound())
    expect(used).toBeGreaterThan(0)
  })

  it('is kept when gateways are paused, killed and replaced', { timeout: 90_000 }, async () => {
    const redis = await startRedis()
    open.push(redis)
    const fleet = startFleet({ urls: [redis.url] })
    await fleet.ready()
    await pause(1_000)
    fleet.signal(0, 'SIGSTOP')
    await pause(3_000)
    fleet.signal(0, 'SIGCONT')
    await pause(1_000)
    fleet.signal(1, 'SIGKILL')
    fleet.join(1)
    // The one that was killed is not forgotten yet.
    await fleet.ready(SHARES.length + 1)
    const used = await use(fleet)
    expect(fleet.excess, JSON.stringify({ used })).toBeLessThanOrEqual(bound(SHARES.length + 1))
    expect(used).toBeGreaterThan(0)
  })

  it('is kept over a cluster, one of whose nodes hangs', { timeout: 120_000 }, async () => {
    const cluster = await startRedisCluster()
    open.push(cluster)
    const fleet = startFleet({ urls: cluster.urls, kind: 'cluster' })
    await fleet.ready()
    for (const server of cluster.servers) {
      server.pause()
      await pause(2_000)
      server.resume()
      await eventually('the cluster is whole', () =>
        redisCli(server.port, 'cluster', 'info').includes('cluster_state:ok'),
      )
      await fleet.ready()
    }
    expect(fleet.excess).toBeLessThanOrEqual(bound())
  })

  it('is kept when the link of one gateway is dropped', { timeout: 120_000 }, async ({ skip }) => {
    skip(missing('ip') !== undefined, missing('ip'))
    const namespaces = makeNamespaces()
    if (typeof namespaces === 'string') {
      skip(`no network namespaces here: ${namespaces}`)
      return
    }
    open.push({ close: () => namespaces.remove() })
    const [near, far] = namespaces.sides
    const port = 6_399
    const [command, ...words] = [...far.prefix, 'redis-server', '--port', String(port), '--bind', '0.0.0.0']
    const redis = spawn(command, [...words, '--protected-mode', 'no', '--save', ''], { stdio: 'ignore' })
    open.push({ close: () => redis.kill('SIGKILL') })
    const url = `redis://${far.host}:${port}`
    const fleet = startFleet({ urls: [url], prefixes: [near.prefix, far.prefix, far.prefix, far.prefix] })
    await fleet.ready()
    await pause(1_000)
    const links = (state: 'up' | 'down') => {
      const script = `for one in /sys/class/net/*; do name=\${one##*/}; [ $name = lo ] || ip link set $name ${state}; done`
      const [first, ...rest] = [...near.prefix, 'sh', '-c', script]
      expect(spawnSync(first, rest).status).toBe(0)
    }
    links('down')
    await eventually('the gateway is alone', () => fleet.isSilent(0))
    await pause(4_000)
    links('up')
    await eventually('the gateway is back', () => !fleet.isSilent(0), 30_000)
    const used = await use(fleet)
    expect(fleet.excess, JSON.stringify({ used })).toBeLessThanOrEqual(bound())
    expect(used).toBeGreaterThan(0)
  })
})
