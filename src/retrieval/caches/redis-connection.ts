import { createClient } from 'redis'
import { type Clock, msToUs } from '../../base/clock.ts'
import type { Breaker } from '../breaker.ts'
import { withinTime } from '../within-time.ts'

/**
 * One connection to Redis or Valkey, for caches: every command has a hard time limit, and a breaker leaves the server
 * alone after failures, because a cache must be faster than what it caches. The connection opens with the first
 * command, and reopens by itself.
 */
export interface RedisConnectionOptions {
  readonly clock: Clock
  readonly url: string
  readonly breaker: Breaker
  readonly usMax?: number
}

/** Time limit of a command: a round trip takes a tenth of a millisecond, a search ten. */
const US_MAX = msToUs(10)

/** Commands in flight. A server that has stopped reading must not fill our memory. */
const COMMANDS_MAX = 1_000

/** A server that is silent for this long while a command waits is disconnected, and connected again. */
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
    const client = makeClient(this.#options.url)
    // The breaker reports failures; the client reconnects by itself.
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
