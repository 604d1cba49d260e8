import { hash } from 'node:crypto'
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
  type OnRedisError,
  type RedisCluster,
  type RedisLogin,
} from '../redis/redis-client.ts'
import {
  type LeaseCall,
  leaveCall,
  readRoomReply,
  readSaltReply,
  readTakeReply,
  roomCall,
  saltCall,
  takeCall,
} from './lease-calls.ts'
import { LEASE_FUNCTIONS, leaseScript } from './lease-functions.ts'

/**
 * The lease store in Redis or Valkey: one server, a cluster, or a server behind sentinels.
 *
 * From Redis 7 on it uses functions, which are loaded on every master when a call says that they are not there: at the
 * start, after `FUNCTION FLUSH`, after a failover to a server that never had them. Then the call is made once more. A server
 * without functions, or one that forbids them to this user, gets the same text as a script (`EVALSHA`), sent whole
 * whenever the server does not have it.
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

interface Keyed {
  keys: string[]
  arguments: string[]
}

/** The little that is asked of a client of any kind. */
interface FunctionClient {
  readonly isReady: boolean
  connect(): Promise<unknown>
  fCall(name: string, call: Keyed): Promise<unknown>
  evalSha(sha: string, call: Keyed): Promise<unknown>
  eval(script: string, call: Keyed): Promise<unknown>
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
  /** The server has no functions, or not for this user. */
  #usesScripts = false
  #problem: string | undefined
  #isClosed = false

  constructor(options: RedisSharingOptions) {
    this.#client = makeFunctionClient(options, (problem) => {
      this.#problem = problem
    })
    this.#clock = options.clock
    this.#cell = options.cell ?? 'spillway'
    this.#shardCount = options.shardCount
  }

  /** Why the last call had no answer; undefined when it had one. */
  get problem(): string | undefined {
    return this.#problem
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

  salt(offered: string): Promise<string | undefined> {
    return this.#ask(saltCall(`${this.#cell}:rooms`, offered), readSaltReply)
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
      // The client of one server goes on connecting for ever; a call waits for it as long as for an answer.
      if (!this.#client.isReady) await withinTime(this.#clock, this.#clock.now() + CONNECT_US_MAX, this.#connected())
      if (!this.#client.isReady) return undefined
      const answer = read(await (this.#usesScripts ? this.#callScript(call) : this.#callFunction(call)))
      this.#problem = undefined
      return answer
    } catch (error) {
      this.#problem = String(error)
      return undefined
    }
  }

  /** The clients of a cluster and of sentinels give up: the next call begins again. */
  #connected(): Promise<unknown> {
    this.#connecting ??= this.#client.connect().catch((error: unknown) => {
      this.#problem = String(error)
      this.#connecting = undefined
    })
    return this.#connecting
  }

  async #callFunction(call: LeaseCall): Promise<unknown> {
    try {
      return await this.#client.fCall(call.name, call)
    } catch (error) {
      if (isFunctionless(error)) return this.#fallBack(call)
      if (!hasWords(error, 'Function not found')) throw error
    }
    // Sixteen shards find out at the same time: one load is enough.
    this.#loading ??= this.#client.load().finally(() => {
      this.#loading = undefined
    })
    try {
      await this.#loading
    } catch (error) {
      if (isFunctionless(error)) return this.#fallBack(call)
      throw error
    }
    return this.#client.fCall(call.name, call)
  }

  #fallBack(call: LeaseCall): Promise<unknown> {
    this.#usesScripts = true
    return this.#callScript(call)
  }

  async #callScript(call: LeaseCall): Promise<unknown> {
    const { text, sha } = scriptOf(call.name)
    try {
      return await this.#client.evalSha(sha, call)
    } catch (error) {
      if (!hasWords(error, 'NOSCRIPT')) throw error
      return this.#client.eval(text, call)
    }
  }
}

/** How long a call waits for a connection: a call of the slice book is given up after a quarter of it. */
const CONNECT_US_MAX = 1_000_000

const LOAD = ['FUNCTION', 'LOAD', 'REPLACE', LEASE_FUNCTIONS]

const hasWords = (error: unknown, words: string): boolean => error instanceof Error && error.message.includes(words)

/** Redis before 7 does not know the command; an access list may forbid it. */
const isFunctionless = (error: unknown): boolean => hasWords(error, 'unknown command') || hasWords(error, 'NOPERM')

const scripts = new Map<string, { readonly text: string; readonly sha: string }>()

function scriptOf(name: string): { readonly text: string; readonly sha: string } {
  const known = scripts.get(name)
  if (known !== undefined) return known
  const text = leaseScript(name)
  const made = { text, sha: hash('sha1', text) }
  scripts.set(name, made)
  return made
}

function makeFunctionClient(options: RedisSharingOptions, onError: OnRedisError): FunctionClient {
  const { urls, kind = 'server', masterName = 'mymaster', login = {} } = options
  switch (kind) {
    case 'server': {
      const client = makeRedisClient(urls[0] ?? '', login, onError)
      return functionClient(client, () => client.sendCommand(LOAD))
    }
    case 'sentinel': {
      const sentinel = makeRedisSentinel(urls, masterName, login, onError)
      return functionClient(sentinel, () => sentinel.sendCommand(false, LOAD))
    }
    case 'cluster': {
      const cluster = makeRedisCluster(urls, login, onError)
      return functionClient(cluster, () => loadOnAll(cluster))
    }
  }
}

/** A function is known only to the master that it was loaded on. A master that is away gets it when a call misses it. */
async function loadOnAll(cluster: RedisCluster): Promise<void> {
  const loads = await Promise.allSettled(
    cluster.masters.map(async (master) => (await cluster.nodeClient(master)).sendCommand(LOAD)),
  )
  const failed = loads.find((load) => load.status === 'rejected')
  if (failed !== undefined && loads.every(({ status }) => status === 'rejected')) throw failed.reason
}

type AnyClient = Omit<FunctionClient, 'load' | 'close'> & { destroy(): unknown }

function functionClient(client: AnyClient, load: () => Promise<unknown>): FunctionClient {
  return {
    get isReady() {
      return client.isReady
    },
    connect: () => client.connect(),
    fCall: (name, call) => client.fCall(name, call),
    evalSha: (sha, call) => client.evalSha(sha, call),
    eval: (script, call) => client.eval(script, call),
    load,
    close: () => void client.destroy(),
  }
}
