import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { Membership } from '../../src/policy/sharing/shard-clock.ts'
import { RedisSharing, type RedisSharingOptions } from '../../src/sharing/redis-sharing.ts'
import { TestAuthority } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { redisCli, SENTINEL_MASTER, startRedisCluster, startRedisSentinels } from '../support/redis-fleets.ts'
import { freePort, startRedis } from '../support/servers.ts'

/** The lease store over every kind of Redis: one server, a cluster, sentinels, TLS, passwords, servers without functions. */
const why = missing('redis', 'openssl')
const clock = new LiveClock()
const SHARDS = 8
const open: Array<{ close(): unknown }> = []

afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

const member = (id: string): Membership => ({ id, epoch: '', told: 0, ttlMs: 30_000, forgetMs: 60_000 })

function sharingOver(options: Omit<RedisSharingOptions, 'clock' | 'shardCount'>): RedisSharing {
  const sharing = new RedisSharing({ clock, shardCount: SHARDS, ...options })
  open.push(sharing)
  return sharing
}

const account = {
  name: 'tenant:t:tokens',
  birth: 1,
  perMinute: 60,
  half: 100,
  granted: 0,
  deposited: 0,
  epoch: '',
  need: 0,
}

/** Every shard answers, and two gateways see one budget. */
async function expectShared(sharing: RedisSharing): Promise<void> {
  const take = (id: string, shard: number) => sharing.take(shard, member(id), [{ ...account, spent: 10, want: 5 }])
  await eventually('every shard answers', async () => {
    const beats = await Promise.all(Array.from({ length: SHARDS }, (_, shard) => sharing.take(shard, member('a'), [])))
    return beats.every((beat) => beat !== undefined)
  })
  for (let shard = 0; shard < SHARDS; shard++) {
    await take('a', shard)
    const answer = await take('b', shard)
    expect(answer?.gatewayCount, sharing.problem ?? `shard ${shard}`).toBe(2)
    expect(answer?.accounts[0]?.granted).toBe(15)
    expect(answer?.accounts[0]?.level).toBeLessThanOrEqual(70)
  }
  const asked = { name: 'tenant:t:concurrency', limit: 10, held: 1, granted: 1, target: 4, sequence: clock.now() }
  expect((await sharing.room(member('a'), { topic: 'permits', text: 'hello' }, [asked]))?.granted).toEqual([4])
  await sharing.leave('b')
  expect((await sharing.take(0, member('a'), []))?.gatewayCount).toBe(1)
}

describe.skipIf(why !== undefined)(`the lease store in Redis${why === undefined ? '' : `: ${why}`}`, () => {
  it('of one server with a password, in the address or apart', { timeout: 60_000 }, async () => {
    const server = await startRedis({ args: ['--requirepass', 's3cret word'] })
    open.push(server)
    await expectShared(sharingOver({ urls: [server.url], login: { password: 's3cret word' } }))
    const inAddress = server.url.replace('redis://', 'redis://default:s3cret%20word@')
    await expectShared(sharingOver({ urls: [inAddress], cell: 'other' }))
    const wrong = sharingOver({ urls: [server.url], login: { password: 'wrong' } })
    await eventually('it is told why', async () => {
      expect(await wrong.take(0, member('a'), [])).toBeUndefined()
      return wrong.problem?.includes('WRONGPASS')
    })
    expect(wrong.problem).not.toContain('wrong ')
  })

  it('of one server with TLS that asks for a certificate', { timeout: 60_000 }, async () => {
    const authority = new TestAuthority()
    open.push(authority)
    const [server, client] = [authority.issue('redis', '127.0.0.1', 'localhost'), authority.issue('gateway')]
    const port = await freePort()
    const files = ['--tls-cert-file', server.certFile, '--tls-key-file', server.keyFile]
    const words = ['--tls-port', String(port), '--tls-ca-cert-file', authority.caFile, ...files]
    const trust = ['--tls', '--cacert', authority.caFile, '--cert', client.certFile, '--key', client.keyFile]
    const started = await startRedis({
      port: await freePort(),
      args: [...words, '--port', '0'],
      cli: ['-p', String(port), ...trust],
    })
    open.push(started)
    const own = { cert: readFileSync(client.certFile, 'utf8'), key: readFileSync(client.keyFile, 'utf8') }
    const urls = [`rediss://127.0.0.1:${port}`]
    await expectShared(sharingOver({ urls, login: { tls: { ca: authority.ca, ...own } } }))
    const stranger = sharingOver({ urls, login: { tls: own } })
    expect(await stranger.take(0, member('a'), [])).toBeUndefined()
  })

  it('of a server without functions, by scripts', { timeout: 60_000 }, async () => {
    const server = await startRedis({ args: ['--rename-command', 'FCALL', '', '--rename-command', 'FUNCTION', ''] })
    open.push(server)
    const sharing = sharingOver({ urls: [server.url] })
    await expectShared(sharing)
    redisCli(server.port, 'script', 'flush')
    expect((await sharing.take(0, member('a'), []))?.gatewayCount).toBe(1)
  })

  it('of a server that forbids functions to this user, by scripts', { timeout: 60_000 }, async () => {
    const server = await startRedis()
    open.push(server)
    redisCli(server.port, 'acl', 'setuser', 'lease', 'on', '>pass', '~*', '+@all', '-function', '-fcall')
    const sharing = sharingOver({ urls: [server.url], login: { username: 'lease', password: 'pass' } })
    await expectShared(sharing)
    expect(sharing.problem).toBeUndefined()
  })

  it('of a cluster of three, whose functions are flushed', { timeout: 60_000 }, async () => {
    const cluster = await startRedisCluster()
    open.push(cluster)
    const sharing = sharingOver({ urls: cluster.urls.slice(0, 1), kind: 'cluster' })
    await expectShared(sharing)
    // Shards lie on more than one node: that is what a cluster is for.
    const spread = cluster.servers.filter(({ port }) => Number(redisCli(port, 'dbsize')) > 0)
    expect(spread.length).toBeGreaterThan(1)
    for (const { port } of cluster.servers) redisCli(port, 'function', 'flush')
    for (let shard = 0; shard < SHARDS; shard++) expect(await sharing.take(shard, member('a'), [])).toBeDefined()
  })

  it('behind sentinels, whose master dies', { timeout: 90_000 }, async () => {
    const fleet = await startRedisSentinels()
    open.push(fleet)
    const sharing = sharingOver({ urls: fleet.urls, kind: 'sentinel', masterName: SENTINEL_MASTER })
    await expectShared(sharing)
    await fleet.master.kill()
    const answer = await eventually(
      'the replica has taken over',
      async () => (await sharing.take(0, member('a'), [])) ?? false,
      45_000,
    )
    expect(answer.gatewayCount).toBeGreaterThanOrEqual(1)
  })

  it('that was away at the start, of every kind', { timeout: 60_000 }, async () => {
    const port = await freePort()
    const urls = [`redis://127.0.0.1:${port}`]
    const early = sharingOver({ urls })
    const cluster = sharingOver({ urls, kind: 'cluster' })
    const sentinel = sharingOver({ urls, kind: 'sentinel' })
    for (const one of [early, cluster, sentinel]) {
      expect(await one.take(0, member('a'), [])).toBeUndefined()
      expect(one.problem).toBeDefined()
    }
    open.push(await startRedis({ port }))
    await expectShared(early)
  })
})
