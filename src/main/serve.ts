import packageJson from '../../package.json' with { type: 'json' }
import { assemble } from '../assembly/assemble.ts'
import { makeLiveBackends } from '../assembly/live-backends.ts'
import { makeLiveStore } from '../assembly/live-store.ts'
import { type Clock, msToUs } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import { makePrefixSalt, makeRequestIds } from '../base/live-ids.ts'
import type { Io, Running } from '../base/running.ts'
import type { Config } from '../config/schema.ts'
import { toKeys, toTenants } from '../config/to-domain.ts'
import { makeLiveControl } from '../control/live-control.ts'
import { reloadTenants } from '../control/reload.ts'
import { closeServer, LAST_WORDS_US, listen } from '../gateway/http-listen.ts'
import { type HttpServerOptions, makeHttpServer } from '../gateway/http-server.ts'
import { metricsRoute } from '../gateway/routes/operate.ts'
import { TenantDirectory } from '../gateway/tenant-directory.ts'
import { ControlLoop } from '../lifecycle/control-loop.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { LiveJournal } from '../telemetry/journal.ts'
import { makeLiveTelemetry } from '../telemetry/live-telemetry.ts'
import { makeLiveRetrieval } from './live-retrieval.ts'
import { liveRoutes } from './live-routes.ts'
import { logFormat, logLevel } from './log-options.ts'
import { welcome } from './welcome.ts'

/**
 * The live server: the platform of `assemble`, with real time and real sockets.
 *
 * The server stops in four steps. Readiness turns off, so that balancers look elsewhere; the listener closes; running
 * answers may finish for `shutdownGraceMs`; the others then end with an error frame.
 */

/** Time between two ticks. A lost replica is noticed sooner by failed attempts. */
const TICK_US = 1_000_000

/** A running server, with what its own process may see of it. */
export interface Served extends Running {
  readonly platform: Platform
  readonly journal: LiveJournal
  /** Applies new terms of tenants; returns how many tenants changed. */
  reload(config: Config): number
}

export async function serve(config: Config, io: Io, clock: Clock = new LiveClock()): Promise<Served> {
  const telemetry = makeLiveTelemetry({
    version: packageJson.version,
    level: logLevel(config.logging.level),
    format: logFormat(config.logging.format),
  })
  const { journal } = telemetry
  const backends = await makeLiveBackends(config, clock)
  const store = await makeLiveStore(config, clock)
  const world = { clock, journal, store, complain: io.err, platform: (): Platform => platform }
  const retrieval = await makeLiveRetrieval(config, world)
  const platform: Platform = assemble(config, {
    clock,
    journal,
    backends,
    retriever: retrieval.retriever,
    answers: retrieval.answers,
    prefixSalt: makePrefixSalt(),
  })
  const onFault = (where: string, error: unknown): void =>
    journal.record({ kind: 'fault-seen', at: clock.now(), where, because: String(error), ticketId: undefined })
  const control = makeLiveControl({ config, clock, platform, journal, backends, store, onFault, complain: io.err })
  await control.discover()
  const loop = new ControlLoop(platform, TICK_US)
  await loop.start()

  const peers = config.regions.peers.flatMap(({ region, hash }) => (hash === undefined ? [] : [{ region, hash }]))
  const keys = new TenantDirectory(toTenants(config), toKeys(config), peers)
  const httpOptions: HttpServerOptions = { ...config.server, makeRequestId: makeRequestIds(), onFault }
  const metricsPage = metricsRoute(() => telemetry.metricsText())
  const hasOwnMetrics = config.server.metricsPort !== undefined
  const routes = liveRoutes({ config, clock, platform, backends, control, keys, telemetry, retrieval })
  if (!hasOwnMetrics) routes.push(metricsPage)
  const server = makeHttpServer(routes, httpOptions)
  const servers = [server]
  const address = await listen(server, config.server)
  if (config.server.metricsPort !== undefined) {
    const metricsServer = makeHttpServer([metricsPage], { ...httpOptions, basePath: '' })
    servers.push(metricsServer)
    await listen(metricsServer, {
      host: config.server.metricsHost ?? config.server.host,
      port: config.server.metricsPort,
    })
  }
  journal.record({ kind: 'platform-changed', at: clock.now(), state: 'ready', because: 'listening' })
  io.out(welcome(config, address))
  void control.registry.start()
  void retrieval.warmUp()

  return {
    address,
    platform,
    journal,
    reload(changed) {
      const count = reloadTenants(platform, keys, changed)
      const because = `configuration read again: ${count} tenants changed`
      journal.record({ kind: 'platform-changed', at: clock.now(), state: 'ready', because })
      return count
    },
    async close() {
      journal.record({ kind: 'platform-changed', at: clock.now(), state: 'draining', because: 'told to stop' })
      platform.stepDown()
      if (config.server.shutdownDelayMs > 0) await clock.sleep(msToUs(config.server.shutdownDelayMs))
      const answersEnded = platform.drain()
      const graceOver = clock.sleep(msToUs(config.server.shutdownGraceMs))
      void graceOver.then(() => platform.cancelAll('shutting-down'))
      const patienceEnded = graceOver.then(() => clock.sleep(LAST_WORDS_US))
      await Promise.all(servers.map((server) => closeServer(server, { answersEnded, patienceEnded })))
      await answersEnded
      loop.stop()
      await control.close()
      await Promise.all([backends.close(), retrieval.close()])
      await store.close()
      journal.record({ kind: 'platform-changed', at: clock.now(), state: 'stopped', because: 'all answers have ended' })
      await telemetry.close()
    },
  }
}
