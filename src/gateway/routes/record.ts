import type { Clock } from '../../base/clock.ts'
import type { AdminDirectory } from '../admin-directory.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { adminRoute, refuse } from './admin.ts'

/**
 * `GET /admin/v1/recording`: a line of JSON for every request that ends, until the administrator hangs up. A reader that
 * is too slow loses lines, which the recording counts; nothing waits for it.
 */
export interface RecordDeps {
  readonly admins: AdminDirectory
  readonly clock: Clock
  /** An empty line at this interval, so that proxies keep the connection. */
  readonly keepAliveUs: number
  /** Begins a recording and returns how to end it; undefined when there are too many. */
  readonly record: (out: RecordingSink) => (() => void) | undefined
}

interface RecordingSink {
  write(line: string): boolean
  flush(): void
  end(): void
}

/** Bytes that may wait for a slow reader: some thousand requests. */
const UNREAD_BYTES_MAX = 1 << 20

export function recordRoute({ admins, clock, keepAliveUs, record }: RecordDeps): Route {
  return adminRoute(admins, 'GET', '/admin/v1/recording', ({ exchange }) => {
    const sink = new StreamSink(exchange)
    const stop = record(sink)
    if (stop === undefined) {
      const because = 'eight recordings run already'
      return refuse(exchange, { code: 'too-many-recordings', because, param: null })
    }
    sink.start()
    let stopKeepAlive = (): void => {}
    const keepAliveLater = (): void => {
      stopKeepAlive = clock.at(clock.now() + keepAliveUs, () => {
        sink.keepAlive()
        keepAliveLater()
      })
    }
    keepAliveLater()
    exchange.res.on('close', () => {
      stopKeepAlive()
      stop()
    })
    // Who asks for the headers alone gets no lines.
    if (exchange.req.method === 'HEAD') sink.end()
    return undefined
  })
}

class StreamSink implements RecordingSink {
  readonly #exchange: Exchange
  #gathered = ''

  constructor(exchange: Exchange) {
    this.#exchange = exchange
  }

  start(): void {
    const head = ['content-type', 'application/x-ndjson', 'cache-control', 'no-cache', 'x-accel-buffering', 'no']
    this.#exchange.res.writeHead(200, [...head, 'x-request-id', this.#exchange.id])
    this.#exchange.res.flushHeaders()
    this.flush()
  }

  write(line: string): boolean {
    const { res } = this.#exchange
    if (res.destroyed || res.writableLength + this.#gathered.length + line.length > UNREAD_BYTES_MAX) return false
    this.#gathered += line
    return true
  }

  flush(): void {
    const { res } = this.#exchange
    if (this.#gathered === '' || !res.headersSent || res.destroyed || res.writableEnded) return
    res.write(this.#gathered)
    this.#gathered = ''
  }

  keepAlive(): void {
    const { res } = this.#exchange
    if (res.writableLength === 0 && !res.destroyed && !res.writableEnded) res.write('\n')
  }

  end(): void {
    const { res } = this.#exchange
    if (!res.destroyed) res.end()
  }
}
