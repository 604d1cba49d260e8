import { createClient } from 'redis'
import { type Clock, msToUs } from '../../base/clock.ts'
import type { Breaker } from '../breaker.ts'
import { withinTime } from '../within-time.ts'

/**
 * One connection to Redis or Valkey, for caches: asked within a hard limit, and left alone after failures. A cache that is
 * slower than what it stands before is none. It connects with the first question, and again by itself.
 */
export interface RedisConnectionOptions {
  readonly clock: Clock
  readonly url: string
  readonly breaker: Breaker
  readonly usMax?: number
}

/** A round trip takes a tenth of a millisecond; a search takes ten. */
const US_MAX = msToUs(10)

/** Commands on their way. A server that has stopped reading must not fill our memory. */
const COMMANDS_MAX = 1_000

/** A server that says nothing for this long while we wait is cut off, and connected to again. */
const SILENCE_MS_MAX = 2_000

export type RedisClient = ReturnType<typeof makeClient>

export class RedisConnection {
  readonly #options: RedisConnectionOptions
  #client: RedisClient | undefined
  #connecting: Promise<unknown> | undefined
  #isClosed = false

  constructor(options: RedisConnectionOptions) {
    this.#options = options
  }

  /** What it says in time; undefined when it does not, or is left alone. */
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

  /** Nobody waits for this; when it cannot be said at once it is not said. */
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
    const client = makeClient(this.#options.url)
    // The breaker tells what matters; the client connects again by itself.
    client.on('error', () => {})
    this.#client = client
    this.#connecting = client.connect().catch(() => {})
    return { client, connecting: this.#connecting }
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
