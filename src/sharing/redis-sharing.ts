import type { Clock } from '../base/clock.ts'
import { withinTime } from '../base/within-time.ts'
import type { Sharing } from '../lifecycle/sharing-ports.ts'
import type { Account, ShardAnswer } from '../policy/sharing/lease-shard.ts'
import type { RoomAnswer, RoomAsk } from '../policy/sharing/room-grants.ts'
import type { Membership } from '../policy/sharing/shard-clock.ts'
import {
  makeRedisClient,
  makeRedisCluster,
  makeRedisSentinel,
  type RedisCluster,
  type RedisLogin,
} from '../redis/redis-client.ts'
import { type LeaseCall, leaveCall, readRoomReply, readTakeReply, roomCall, takeCall } from './lease-calls.ts'
import { LEASE_FUNCTIONS } from './lease-functions.ts'

/**
 * The lease store in Redis 7 or Valkey: one server, a cluster, or a server behind sentinels. The functions are loaded on
 * every master when a call says that they are not there: at the start, after `FUNCTION FLUSH`, after a failover to a server
 * that never had them. Then the call is made once more.
 *
 * Only one server is tested. A cluster of one node gave no answers in a first try, and sentinels were not tried: no setting
 * may offer either before a test does.
 *
 * No call throws, and none waits for ever: a connection on which nothing comes is closed after two seconds, which ends its
 * calls (`redis-client.ts`). Without a connection a call ends after a second. There is no breaker: the slice book calls at most
 * once per shard and 250 ms, and a store that is back must be used again within a second.
 */
export interface RedisSharingOptions {
  readonly clock: Clock
  /** One address, or the root nodes of a cluster, or the sentinels. */
  readonly urls: readonly string[]
  readonly kind?: 'server' | 'cluster' | 'sentinel'
  /** What the sentinels call the master. */
  readonly masterName?: string
  readonly login?: RedisLogin
  /** Tells apart platforms that use one Redis. */
  readonly cell?: string
  readonly shardCount: number
}

/** The little that is asked of a client of any kind. */
interface FunctionClient {
  readonly isReady: boolean
  connect(): Promise<unknown>
  call(call: LeaseCall): Promise<unknown>
  load(): Promise<unknown>
  close(): void
}

export class RedisSharing implements Sharing {
  readonly #client: FunctionClient
  readonly #clock: Clock
  readonly #cell: string
  readonly #shardCount: number
  #connecting: Promise<unknown> | undefined
  #loading: Promise<unknown> | undefined
  #isClosed = false

  constructor(options: RedisSharingOptions) {
    this.#client = makeFunctionClient(options)
    this.#clock = options.clock
    this.#cell = options.cell ?? 'spillway'
    this.#shardCount = options.shardCount
  }

  take(shard: number, member: Membership, accounts: readonly Account[]): Promise<ShardAnswer | undefined> {
    return this.#ask(takeCall(this.#tag(shard), member, accounts), readTakeReply)
  }

  room(
    member: Membership,
    told: { readonly topic: string; readonly text: string },
    asks: readonly RoomAsk[],
  ): Promise<RoomAnswer | undefined> {
    return this.#ask(roomCall(`${this.#cell}:rooms`, member, told, asks), (reply) => readRoomReply(reply, asks.length))
  }

  async leave(gatewayId: string): Promise<void> {
    const tags = Array.from({ length: this.#shardCount }, (_, shard) => this.#tag(shard))
    await Promise.all([...tags, `${this.#cell}:rooms`].map((tag) => this.#ask(leaveCall(tag, gatewayId), () => true)))
  }

  close(): void {
    this.#isClosed = true
    this.#client.close()
  }

  #tag(shard: number): string {
    return `${this.#cell}:s${shard}`
  }

  async #ask<T>(call: LeaseCall, read: (reply: unknown) => T): Promise<T | undefined> {
    if (this.#isClosed) return undefined
    try {
      this.#connecting ??= this.#client.connect()
      // The client goes on connecting for ever; a call waits for it as long as for an answer.
      if (!this.#client.isReady) await withinTime(this.#clock, this.#clock.now() + CONNECT_US_MAX, this.#connecting)
      if (!this.#client.isReady) return undefined
      return read(await this.#callLoaded(call))
    } catch {
      return undefined
    }
  }

  async #callLoaded(call: LeaseCall): Promise<unknown> {
    try {
      return await this.#client.call(call)
    } catch (error) {
      if (!(error instanceof Error) || !error.message.includes('Function not found')) throw error
      // Sixteen shards find out at the same time: one load is enough.
      this.#loading ??= this.#client.load().finally(() => {
        this.#loading = undefined
      })
      await this.#loading
      return this.#client.call(call)
    }
  }
}

/** How long a call waits for a connection: a call of the slice book is given up after a quarter of it. */
const CONNECT_US_MAX = 1_000_000

const LOAD = ['FUNCTION', 'LOAD', 'REPLACE', LEASE_FUNCTIONS]

function makeFunctionClient({ urls, kind = 'server', masterName, login = {} }: RedisSharingOptions): FunctionClient {
  if (kind === 'cluster') return clusterClient(makeRedisCluster(urls, login))
  if (kind === 'sentinel') {
    const sentinel = makeRedisSentinel(urls, masterName ?? 'mymaster', login)
    return {
      get isReady() {
        return sentinel.isReady
      },
      connect: () => sentinel.connect(),
      call: (call) => sentinel.fCall(call.name, call),
      load: () => sentinel.sendCommand(false, LOAD),
      close: () => void sentinel.destroy(),
    }
  }
  const client = makeRedisClient(urls[0] ?? '', login)
  return {
    get isReady() {
      return client.isReady
    },
    connect: () => client.connect(),
    call: (call) => client.fCall(call.name, call),
    load: () => client.sendCommand(LOAD),
    close: () => client.destroy(),
  }
}

const clusterClient = (cluster: RedisCluster): FunctionClient => ({
  get isReady() {
    return cluster.isOpen
  },
  connect: () => cluster.connect(),
  call: (call) => cluster.fCall(call.name, call),
  // A function is known only to the master that it was loaded on.
  load: () => Promise.all(cluster.masters.map(async (master) => (await cluster.nodeClient(master)).sendCommand(LOAD))),
  close: () => cluster.destroy(),
})
