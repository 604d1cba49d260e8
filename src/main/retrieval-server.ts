import packageJson from '../../package.json' with { type: 'json' }
import { makeLiveStore } from '../assembly/live-store.ts'
import { type Clock, msToUs } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import { makeRequestIds } from '../base/live-ids.ts'
import type { Io, Running } from '../base/running.ts'
import { ConfigError } from '../config/config-error.ts'
import type { Config } from '../config/schema.ts'
import { listen } from '../gateway/http-listen.ts'
import { makeHttpServer } from '../gateway/http-server.ts'
import { healthRoute, metricsRoute, readyRoute, type ToldReadiness } from '../gateway/routes/operate.ts'
import { refuseOtherKeys, retrievalRoutes } from '../gateway/routes/retrieval.ts'
import { makeLiveTelemetry } from '../telemetry/live-telemetry.ts'
import { makeLiveRetrieval } from './live-retrieval.ts'
import { logFormat, logLevel } from './log-options.ts'
import { StoreReadiness } from './store-readiness.ts'

/**
 * `spillway retrieval`: corpora and searches in a process of their own, for gateways with `retrieval.url`.
 *
 * It is ready while its store answers: without the store it finds nothing. Without the embedder it searches by words,
 * and without Redis it keeps passages in its own memory; both are told beside readiness and change nothing about it.
 */
export async function serveRetrieval(config: Config, io: Io, clock: Clock = new LiveClock()): Promise<Running> {
  const { apiKey, listenHost: host, listenPort: port } = config.retrieval
  if (apiKey === undefined) {
    throw new ConfigError([
      'retrieval.apiKey is missing. Set RETRIEVAL_KEY here and at the gateways, 16 characters or more.',
    ])
  }
  const telemetry = makeLiveTelemetry({
    version: packageJson.version,
    level: logLevel(config.logging.level),
    format: logFormat(config.logging.format),
  })
  const { journal } = telemetry
  // This process is what `retrieval.url` points to.
  const { url: _, ...retrievalConfig } = config.retrieval
  const own: Config = { ...config, retrieval: retrievalConfig }
  const store = await makeLiveStore(own, clock, io.err)
  const away = new Set<string>()
  const onPart = (what: string, isAway: boolean): unknown => (isAway ? away.add(what) : away.delete(what))
  const retrieval = await makeLiveRetrieval(own, { clock, journal, store, complain: io.err, onPart })
  const stored = new StoreReadiness({ clock, database: store.database })
  let isClosing = false
  const readiness = async (): Promise<ToldReadiness> => {
    if (isClosing) return { isReady: false, because: 'shutting down' }
    const told = await stored.ask()
    return away.size === 0 ? told : { ...told, because: `${told.because}; away: ${[...away].join(', ')}` }
  }
  const { ingress: _noIngress, cors: _noPages, ...serverOptions } = config.server
  const { bodyBytesMax } = serverOptions
  const server = makeHttpServer(
    [
      ...retrievalRoutes({ ...retrieval, apiKey, bodyBytesMax: Math.max(bodyBytesMax, 64 * 1024 * 1024) }),
      healthRoute(),
      readyRoute(readiness),
      metricsRoute(
        (hasExemplars) => telemetry.metricsText(hasExemplars),
        (exchange) => refuseOtherKeys(apiKey, exchange),
      ),
    ],
    {
      ...serverOptions,
      basePath: '',
      makeRequestId: makeRequestIds(),
      onFault: (where, error) =>
        journal.record({ kind: 'fault-seen', at: clock.now(), where, because: String(error), ticketId: undefined }),
    },
  )
  const address = await listen(server, { host, port })
  io.out(`Retrieval listens on ${address}. Gateways reach it with RETRIEVAL_URL=${address} and the same RETRIEVAL_KEY.`)
  void retrieval.warmUp()
  return {
    address,
    async close() {
      isClosing = true
      server.open.leave()
      if (serverOptions.shutdownDelayMs > 0) await clock.sleep(msToUs(serverOptions.shutdownDelayMs))
      const closed = server.open.close()
      server.open.closeWaiting()
      await Promise.race([closed, clock.sleep(1_000_000)])
      server.open.closeAll()
      await retrieval.close()
      await store.close()
      await telemetry.close()
    },
  }
}
