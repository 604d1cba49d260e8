import { type Clock, type Instant, msToUs } from '../base/clock.ts'
import { withinTime } from '../base/within-time.ts'
import { makeRedisClient, type RedisClient } from './redis-client.ts'

/**
 * One connection to Redis or Valkey, for caches: every command has a hard time limit, and a breaker leaves the server
 * alone after failures, because a cache must be faster than what it caches. The connection opens with the first
 * command, and reopens by itself.
 */
export interface RedisConnectionOptions {
  readonly clock: Clock
  readonly url: string
  readonly breaker: ConnectionBreaker
  readonly usMax?: number
}

/** What decides whether a server is asked at all; told how each question ended. */
interface ConnectionBreaker {
  readonly state: 'open' | 'closed'
  mayTry(now: Instant): boolean
  succeeded(now: Instant): void
  failed(now: Instant): void
}

/** Time limit of a command: a round trip takes a tenth of a millisecond, a search ten. */
const US_MAX = msToUs(10)

export class RedisConnection {
  readonly #options: RedisConnectionOptions
  #client: RedisClient | undefined
  #connecting: Promise<unknown> | undefined
  #isClosed = false

  constructor(options: RedisConnectionOptions) {
    this.#options = options
  }

  /** The server's reply in time; undefined when there is none, or the breaker is open. */
  async ask<T>(question: (client: RedisClient) => Promise<T>): Promise<T | undefined> {
    const { clock, breaker, usMax = US_MAX } = this.#options
    const now = clock.now()
    if (this.#isClosed || !breaker.mayTry(now)) return undefined
    const waited = await withinTime(clock, now + usMax, this.#connected(question))
    if (waited.kind !== 'done') {
      breaker.failed(clock.now())
      return undefined
    }
    breaker.succeeded(clock.now())
    return waited.value
  }

  /** Sends a command without waiting for its result; dropped when it cannot be sent at once. */
  tell(command: (client: RedisClient) => Promise<unknown>): void {
    if (this.#options.breaker.state === 'open' || this.#isClosed) return
    const { client } = this.#open()
    if (client.isReady) command(client).catch(() => {})
  }

  close(): Promise<void> {
    this.#isClosed = true
    this.#client?.destroy()
    return Promise.resolve()
  }

  async #connected<T>(question: (client: RedisClient) => Promise<T>): Promise<T> {
    const { client, connecting } = this.#open()
    if (!client.isReady) await connecting
    return question(client)
  }

  #open(): { client: RedisClient; connecting: Promise<unknown> } {
    if (this.#client !== undefined && this.#connecting !== undefined) {
      return { client: this.#client, connecting: this.#connecting }
    }
    const client = makeRedisClient(this.#options.url)
    this.#client = client
    this.#connecting = client.connect().catch(() => {})
    return { client, connecting: this.#connecting }
  }
}
