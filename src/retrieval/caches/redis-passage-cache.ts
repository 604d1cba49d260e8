import { hash } from 'node:crypto'
import { RedisConnection, type RedisConnectionOptions } from '../../redis/redis-connection.ts'
import { type CachedPassages, type CacheKey, keyText, type PassageCache } from './passage-cache.ts'
import { forgetKeys, tenantName } from './redis-names.ts'

/**
 * Passages that all gateways share, in Redis or Valkey. Keys are hashes, so that a list of keys shows no questions.
 * Entries expire by themselves, and the server's own `maxmemory` policy bounds their number.
 */
export interface RedisCacheOptions extends RedisConnectionOptions {
  readonly ttlS: number
  readonly prefix?: string
}

/** Entries are kept past their time, for searches that are late: as long as `retriever.ts` accepts them. */
const STALE_RATIO = 12

export class RedisPassageCache implements PassageCache {
  readonly #options: RedisCacheOptions
  readonly #connection: RedisConnection

  constructor(options: RedisCacheOptions) {
    this.#options = options
    this.#connection = new RedisConnection(options)
  }

  async get(key: CacheKey): Promise<CachedPassages | undefined> {
    const text = await this.#connection.ask((client) => client.get(this.#name(key)))
    return typeof text === 'string' ? (JSON.parse(text) as CachedPassages) : undefined
  }

  set(key: CacheKey, entry: CachedPassages): void {
    const EX = this.#options.ttlS * STALE_RATIO
    this.#connection.tell((client) => client.set(this.#name(key), JSON.stringify(entry), { EX }))
  }

  async forgetTenant(tenantId: string): Promise<void> {
    await forgetKeys(this.#connection, `${this.#prefix(tenantId)}:*`)
  }

  close(): Promise<void> {
    return this.#connection.close()
  }

  #name(key: CacheKey): string {
    return `${this.#prefix(key.tenantId)}:${hash('sha256', keyText(key), 'hex')}`
  }

  #prefix(tenantId: string): string {
    return `${this.#options.prefix ?? 'spillway'}:passages:${tenantName(tenantId)}`
  }
}
