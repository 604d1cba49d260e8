import pg from 'pg'
import { type CancelTimer, type Clock, msToUs, secondsToUs } from '../base/clock.ts'
import { NOTICE_CHANNEL, type Notice } from './database.ts'
import { makePgSocket } from './pg-socket.ts'

/**
 * Hears what other gateways write, on a connection of its own: a notice comes within milliseconds of the commit. Notices
 * may be lost (a broken connection, a pooler that does not pass them on), so whoever listens also looks from time to time;
 * after every new connection something may have been missed, which is a notice too.
 */
export interface NoticeOptions {
  readonly clock: Clock
  readonly url: string | (() => string)
  readonly onNotice: (notice: Notice) => void
}

const CONNECT_MS_MAX = 1_000
const RETRY_US = msToUs(250)
const RETRY_US_MAX = secondsToUs(10)
/** A connection that is silent may be cut: it is asked, and given up when it does not answer. */
const PROBE_US = secondsToUs(5)
const PROBE_ANSWER_US = secondsToUs(2)

export class PgNotices {
  readonly #options: NoticeOptions
  #client: pg.Client | undefined
  #failureCount = 0
  #isClosed = false
  #cancelTimer: CancelTimer = () => {}

  constructor(options: NoticeOptions) {
    this.#options = options
  }

  start(): void {
    void this.#connect()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer()
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => {})
  }

  async #connect(): Promise<void> {
    if (this.#isClosed) return
    const { url, onNotice } = this.#options
    const client = new pg.Client({
      connectionString: typeof url === 'string' ? url : url(),
      connectionTimeoutMillis: CONNECT_MS_MAX,
      keepAlive: true,
      application_name: 'spillway notices',
      stream: makePgSocket,
    })
    this.#client = client
    client.on('error', () => this.#lose(client))
    client.on('end', () => this.#lose(client))
    client.on('notification', ({ payload }) => {
      if (this.#client === client) onNotice((payload ?? 'anything') as Notice)
    })
    try {
      await client.connect()
      await client.query(`listen ${NOTICE_CHANNEL}`)
    } catch {
      this.#lose(client)
      return
    }
    if (this.#client !== client) return
    this.#failureCount = 0
    onNotice('anything')
    this.#later(PROBE_US, () => void this.#probe(client))
  }

  async #probe(client: pg.Client): Promise<void> {
    this.#later(PROBE_ANSWER_US, () => this.#lose(client))
    try {
      await client.query('select 1')
    } catch {
      this.#lose(client)
      return
    }
    if (this.#client === client) this.#later(PROBE_US, () => void this.#probe(client))
  }

  #lose(client: pg.Client): void {
    if (this.#client !== client || this.#isClosed) return
    this.#client = undefined
    void client.end().catch(() => {})
    const waitUs = Math.min(RETRY_US_MAX, RETRY_US * 2 ** Math.min(10, this.#failureCount++))
    this.#later(waitUs, () => void this.#connect())
  }

  #later(afterUs: number, fn: () => void): void {
    const { clock } = this.#options
    this.#cancelTimer()
    this.#cancelTimer = clock.at(clock.now() + afterUs, fn)
  }
}
