import { hash } from 'node:crypto'
import { createClient } from 'redis'
import { type Clock, msToUs } from '../../base/clock.ts'
import type { Breaker } from '../breaker.ts'
import { withinTime } from '../within-time.ts'
import { type CachedPassages, type CacheKey, keyText, type PassageCache } from './passage-cache.ts'

/**
 * Passages that all gateways share, in Redis or Valkey. It is asked within a hard limit and left alone after failures: a
 * cache that is slower than the search behind it is none. Keys are hashes, so that nobody who lists them reads
 * questions; entries expire by themselves, and the server's own `maxmemory` policy bounds how much there is.
 */
export interface RedisCacheOptions {
  readonly clock: Clock
  readonly url: string
  readonly ttlS: number
  readonly breaker: Breaker
  readonly prefix?: string
  readonly getUsMax?: number
}

/** A round trip takes a tenth of a millisecond; a search takes ten. */
const GET_US_MAX = msToUs(10)

/** Entries are kept past their time, to help out when a search is late: as long as `retriever.ts` would take them. */
const STALE_RATIO = 12

/** Commands on their way. A server that has stopped reading must not fill our memory. */
const COMMANDS_MAX = 1_000

/** A server that says nothing for this long while we wait is cut off, and connected to again. */
const SILENCE_MS_MAX = 2_000

type Client = ReturnType<typeof makeClient>

export class RedisPassageCache implements PassageCache {
  readonly #options: RedisCacheOptions
  #client: Client | undefined
  #connecting: Promise<unknown> | undefined
  #isClosed = false

  constructor(options: RedisCacheOptions) {
    this.#options = options
  }

  async get(key: CacheKey): Promise<CachedPassages | undefined> {
    const { clock, breaker } = this.#options
    const now = clock.now()
    if (!breaker.mayTry(now)) return undefined
    const waited = await withinTime(clock, now + (this.#options.getUsMax ?? GET_US_MAX), this.#read(key))
    if (waited.kind !== 'done') {
      breaker.failed(clock.now())
      return undefined
    }
    breaker.succeeded(clock.now())
    return waited.value
  }

  set(key: CacheKey, entry: CachedPassages): void {
    const { breaker, ttlS } = this.#options
    if (breaker.state === 'open' || this.#isClosed) return
    const { client } = this.#connected()
    if (!client.isReady) return
    client.set(this.#name(key), JSON.stringify(entry), { EX: ttlS * STALE_RATIO }).catch(() => {})
  }

  close(): Promise<void> {
    this.#isClosed = true
    this.#client?.destroy()
    return Promise.resolve()
  }

  async #read(key: CacheKey): Promise<CachedPassages | undefined> {
    const { client, connecting } = this.#connected()
    if (!client.isReady) await connecting
    const text = await client.get(this.#name(key))
    return typeof text === 'string' ? (JSON.parse(text) as CachedPassages) : undefined
  }

  #connected(): { client: Client; connecting: Promise<unknown> } {
    if (this.#client !== undefined && this.#connecting !== undefined) {
      return { client: this.#client, connecting: this.#connecting }
    }
    const client = makeClient(this.#options.url)
    // The breaker tells what matters; the client connects again by itself.
    client.on('error', () => {})
    this.#client = client
    this.#connecting = client.connect().catch(() => {})
    return { client, connecting: this.#connecting }
  }

  #name(key: CacheKey): string {
    return `${this.#options.prefix ?? 'spillway'}:passages:${hash('sha256', keyText(key), 'hex')}`
  }
}

function makeClient(url: string) {
  return createClient({
    url,
    disableOfflineQueue: true,
    commandsQueueMaxLength: COMMANDS_MAX,
    socket: {
      connectTimeout: 1_000,
      socketTimeout: SILENCE_MS_MAX,
      reconnectStrategy: (attempts) => Math.min(1_000, 50 * 2 ** Math.min(attempts, 5)),
    },
  })
}
