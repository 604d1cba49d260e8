import packageJson from '../../package.json' with { type: 'json' }
import { msToUs } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import type { Config } from '../config/schema.ts'
import { toKeys, toModels, toTenants } from '../config/to-domain.ts'
import type { Caller, KeyDirectory } from '../gateway/authenticate.ts'
import { type HttpServerOptions, makeHttpServer, type Route } from '../gateway/http-server.ts'
import { ModelDirectory } from '../gateway/model-directory.ts'
import { openApiDocument } from '../gateway/openapi.ts'
import { corporaRoutes } from '../gateway/routes/corpora.ts'
import { generateRoutes } from '../gateway/routes/generate.ts'
import { modelRoutes } from '../gateway/routes/models.ts'
import { metricsRoute, operateRoutes } from '../gateway/routes/operate.ts'
import type { RequestRules } from '../gateway/to-request.ts'
import { ControlLoop } from '../lifecycle/control-loop.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { estimateTokens } from '../policy/planning/estimate.ts'
import type { LiveJournal } from '../telemetry/journal.ts'
import { makeLiveTelemetry } from '../telemetry/live-telemetry.ts'
import { assemble } from './assemble.ts'
import { closeServer, listen } from './listen.ts'
import { makeLiveBackends } from './live-backends.ts'
import { makeRequestIds } from './live-ids.ts'
import { makeLiveRetrieval } from './live-retrieval.ts'
import { logFormat, logLevel } from './log-options.ts'
import type { Io, Running } from './running.ts'
import { welcome } from './welcome.ts'

/**
 * The live server: real time, real sockets, the same platform as everywhere.
 *
 * It stops in four steps. Readiness turns off, so that balancers look elsewhere; the listener closes; running answers
 * may finish for `shutdownGraceMs`; what is left then ends with an error frame.
 */

/** How often replicas are looked at. A lost one is noticed sooner by the requests that it fails. */
const TICK_US = 1_000_000

/** After the grace, error frames have this long to reach their readers. */
const LAST_WORDS_US = 500_000

/** A server that runs, and what can be seen of it from inside its process. */
export interface Served extends Running {
  readonly platform: Platform
  readonly journal: LiveJournal
}

export async function serve(config: Config, io: Io): Promise<Served> {
  const clock = new LiveClock()
  const telemetry = makeLiveTelemetry({
    version: packageJson.version,
    level: logLevel(config.logging.level),
    format: logFormat(config.logging.format),
  })
  const { journal, metrics } = telemetry
  const backends = await makeLiveBackends(config, clock)
  const retrieval = await makeLiveRetrieval(config, { clock, journal, complain: io.err })
  const platform = assemble(config, { clock, journal, backends, retriever: retrieval.retriever })
  const loop = new ControlLoop(platform, TICK_US)
  await loop.start()

  const models = new ModelDirectory(
    toModels(config).map((model) => ({ model, features: backends.featuresOf(model.name) })),
  )
  const keys = keyDirectory(config)
  const httpOptions: HttpServerOptions = {
    ...config.server,
    makeRequestId: makeRequestIds(),
    onFault: (where, error) =>
      journal.record({ kind: 'fault-seen', at: clock.now(), where, because: String(error), ticketId: undefined }),
  }
  const metricsPage = metricsRoute(() => metrics.text())
  const hasOwnMetrics = config.server.metricsPort !== undefined
  const routes: Route[] = [
    ...generateRoutes({
      platform,
      clock,
      keys,
      rules: requestRules(config, models),
      bodyBytesMax: config.server.bodyBytesMax,
      stalledReaderUs: msToUs(config.server.stalledReaderMs),
    }),
    ...modelRoutes(models, keys),
    ...corporaRoutes({ corpora: retrieval.corpora, keys, bodyBytesMax: config.server.bodyBytesMax }),
    ...operateRoutes({
      readiness: () => readiness(platform),
      openApi: openApiDocument({ version: packageJson.version, basePath: config.server.basePath }),
    }),
    ...(hasOwnMetrics ? [] : [metricsPage]),
  ]
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
  void retrieval.warmUp()

  return {
    address,
    platform,
    journal,
    async close() {
      journal.record({ kind: 'platform-changed', at: clock.now(), state: 'draining', because: 'told to stop' })
      const answersEnded = platform.drain()
      const graceOver = clock.sleep(msToUs(config.server.shutdownGraceMs))
      void graceOver.then(() => platform.cancelAll('shutting-down'))
      const patienceEnded = graceOver.then(() => clock.sleep(LAST_WORDS_US))
      await Promise.all(servers.map((server) => closeServer(server, { answersEnded, patienceEnded })))
      await answersEnded
      loop.stop()
      await Promise.all([backends.close(), retrieval.close()])
      journal.record({ kind: 'platform-changed', at: clock.now(), state: 'stopped', because: 'all answers have ended' })
      await telemetry.close()
    },
  }
}

function requestRules({ limits, retrieval }: Config, models: ModelDirectory): RequestRules {
  const { choicesMax, promptTokensMax } = limits
  const { passagesDefault, passagesMax } = retrieval
  return { models, choicesMax, promptTokensMax, estimateTokens, passagesDefault, passagesMax }
}

function readiness(platform: Platform): { isReady: boolean; because: string } {
  if (platform.isDraining) return { isReady: false, because: 'shutting down' }
  const { readyReplicas } = platform.turnstile.view()
  if (readyReplicas === 0) return { isReady: false, because: 'no replica is ready' }
  return { isReady: true, because: `${readyReplicas} replicas are ready` }
}

function keyDirectory(config: Config): KeyDirectory {
  const tenants = new Map(toTenants(config).map((tenant) => [tenant.id, tenant]))
  const callers = new Map<string, Caller>()
  for (const { key, hash } of toKeys(config)) {
    const tenant = tenants.get(key.tenantId)
    if (tenant !== undefined) callers.set(hash.replace(/^sha256:/, ''), { tenant, key })
  }
  return { byHash: (digest) => callers.get(digest) }
}
