import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from './eventually.ts'
import { freePort, type RedisServer, startRedis } from './servers.ts'

/** Several Redis servers that belong together: a cluster, or a master with a replica and the sentinels that watch them. */

export interface RedisFleet {
  readonly servers: readonly RedisServer[]
  readonly urls: readonly string[]
  close(): Promise<void>
}

/** Three masters. A cluster's second port is its first plus 10,000, and must be none of outgoing connections either. */
export async function startRedisCluster(): Promise<RedisFleet> {
  const servers: RedisServer[] = []
  for (let i = 0; i < 3; i++) {
    const port = await freePort(22_000)
    servers.push(await startRedis({ port, args: ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000'] }))
  }
  const nodes = servers.map(({ port }) => `127.0.0.1:${port}`)
  const made = spawnSync('redis-cli', ['--cluster', 'create', ...nodes, '--cluster-yes'], { encoding: 'utf8' })
  if (made.status !== 0) throw new Error(`no cluster: ${made.stdout} ${made.stderr}`)
  await eventually('all slots are served', () =>
    servers.every(({ port }) => redisCli(port, 'cluster', 'info').includes('cluster_state:ok')),
  )
  return fleetOf(servers, servers)
}

export const SENTINEL_MASTER = 'leases'

/** A master, its replica, and three sentinels, of which two must agree that the master is gone. */
export async function startRedisSentinels(): Promise<RedisFleet & { readonly master: RedisServer }> {
  const master = await startRedis()
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] })
  await eventually('the replica follows', () => redisCli(master.port, 'info', 'replication').includes('state=online'))
  const folder = mkdtempSync(join(tmpdir(), 'spillway-sentinels-'))
  const sentinels: RedisServer[] = []
  for (let i = 0; i < 3; i++) {
    const port = await freePort()
    const file = join(folder, `${port}.conf`)
    const lines = [
      `sentinel monitor ${SENTINEL_MASTER} 127.0.0.1 ${master.port} 2`,
      `sentinel down-after-milliseconds ${SENTINEL_MASTER} 500`,
      `sentinel failover-timeout ${SENTINEL_MASTER} 5000`,
    ]
    writeFileSync(file, `${lines.join('\n')}\n`)
    sentinels.push(await startRedis({ port, file, args: ['--sentinel'] }))
  }
  await eventually('the sentinels know each other', () =>
    sentinels.every(({ port }) => /sentinels=3/.test(redisCli(port, 'info', 'sentinel'))),
  )
  const fleet = fleetOf([replica, ...sentinels], sentinels)
  return {
    ...fleet,
    master,
    async close() {
      await fleet.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export const redisCli = (port: number, ...words: readonly string[]): string =>
  spawnSync('redis-cli', ['-h', '127.0.0.1', '-p', String(port), ...words], { encoding: 'utf8' }).stdout

function fleetOf(servers: readonly RedisServer[], named: readonly RedisServer[]): RedisFleet {
  return {
    servers,
    urls: named.map(({ url }) => url),
    async close() {
      for (const server of servers) await server.close()
    },
  }
}
