import packageJson from '../../package.json' with { type: 'json' }
import { assemble } from '../assembly/assemble.ts'
import { breathe, makeLiveBackends } from '../assembly/live-backends.ts'
import { type LiveStore, makeLiveStore } from '../assembly/live-store.ts'
import { TokenCounter } from '../backends/live-token-counter.ts'
import { type Clock, msToUs } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import { makeIds, makePrefixSalt, makeRequestIds } from '../base/live-ids.ts'
import type { Io, Running } from '../base/running.ts'
import type { Config } from '../config/schema.ts'
import { type Control, makeControl } from '../control/control.ts'
import { LiveArchive } from '../control/live-archive.ts'
import { StoreTwinKeeper } from '../control/store-twin-keeper.ts'
import { wantedOf } from '../control/wanted.ts'
import { ANTHROPIC_ERRORS } from '../gateway/anthropic-errors.ts'
import type { AdminReason, AdminReloadAnswer } from '../gateway/fleet-admin.ts'
import { closeServer, LAST_WORDS_US, listen } from '../gateway/http-listen.ts'
import { type HttpServer, type HttpServerOptions, makeHttpServer, type Route } from '../gateway/http-server.ts'
import { Ingress } from '../gateway/ingress.ts'
import { metricsRoute } from '../gateway/routes/operate.ts'
import { ControlLoop } from '../lifecycle/control-loop.ts'
import { keepTwins, recallTwins } from '../lifecycle/learning/keep-twins.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { SqlArchiveStore } from '../store/sql-archive-store.ts'
import { SqlRegistryStore } from '../store/sql-registry-store.ts'
import { SqlTenancyStore } from '../store/sql-tenancy-store.ts'
import { SqlTwinStore } from '../store/sql-twin-store.ts'
import type { LiveJournal } from '../telemetry/journal.ts'
import { type LiveTelemetry, makeLiveTelemetry } from '../telemetry/live-telemetry.ts'
import { makeLiveCell } from './live-cell.ts'
import { openLiveFrontDoor } from './live-front-door.ts'
import { startLiveIdentity } from './live-identity.ts'
import { openLiveLedger } from './live-ledger.ts'
import { startFileRecording } from './live-recording.ts'
import { makeLiveRetrieval } from './live-retrieval.ts'
import { liveRoutes } from './live-routes.ts'
import { makeLiveSharing, openLeaseStore } from './live-sharing.ts'
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
  /** Takes up other settings, whole or not at all; answers what changed and what needs a restart. */
  reload(load: () => Config, reason: AdminReason): Promise<AdminReloadAnswer>
}

/** `load` reads the configuration again, for `POST /admin/v1/reload`. */
export async function serve(
  config: Config,
  io: Io,
  clock: Clock = new LiveClock(),
  load?: () => Config,
): Promise<Served> {
  const telemetry = makeTelemetry(config)
  const { journal } = telemetry
  const tell = (state: 'ready' | 'draining' | 'stopped', because: string): void =>
    journal.record({ kind: 'platform-changed', at: clock.now(), state, because })
  const onFault = (where: string, error: unknown): void =>
    journal.record({ kind: 'fault-seen', at: clock.now(), where, because: String(error), ticketId: undefined })
  const recording = startFileRecording(config.record, { telemetry, clock, complain: io.err })
  const backends = await makeLiveBackends(config, clock)
  const store = await makeLiveStore(config, clock, io.err)
  const world = { clock, journal, store, complain: io.err, platform: (): Platform => platform }
  const retrieval = await makeLiveRetrieval(config, world)
  const cell = makeLiveCell(config, { clock, journal, store, control: (): Control => control })
  const { keeper, leadership } = cell
  const twinKeeper = makeTwinKeeper(store, clock, io)
  const sharing = makeLiveSharing(config, { clock, journal }, await openLeaseStore(config, clock))
  const ledger = await openLiveLedger(config, world)
  const kept = { rolloutKeeper: keeper, twinKeeper, leadership, ...(ledger.books && { books: ledger.books }) }
  const { retriever, answers } = retrieval
  const parts = { clock, journal, backends, retriever, answers, ...kept, ...sharing.parts }
  const platform: Platform = assemble(config, { ...parts, prefixSalt: makePrefixSalt() })
  const control: Control = makeControl({
    founded: wantedOf(config, []),
    load,
    clock,
    platform,
    backends,
    registry: { store: new SqlRegistryStore(store.database), isInUse: store.isInUse, isShared: store.isShared },
    tenancyStore: new SqlTenancyStore(store.database),
    onTenantRemoved: (tenantId) => void archive.eraseTenant(tenantId),
    keeper,
    onFault,
    onReloaded: (summary) => tell('ready', `configuration read again: ${summary}`),
    complain: io.err,
  })
  const archive = makeArchive({ store, clock, journal, complain: io.err, control })
  await control.discover()
  const loop = new ControlLoop(platform, TICK_US)
  await Promise.all([loop.start(), sharing.start(platform)])

  const tokens = new TokenCounter({ clock })
  const live = { config, clock, platform, backends, control, telemetry }
  const routes = liveRoutes({ ...live, tokens, retrieval, archive, sharing, cell })
  const { servers, address } = await openListeners({ config, clock, control, routes, telemetry, onFault, io })
  tell('ready', 'listening')
  io.out(welcome(config, address))
  void Promise.all([control.registry.start(), control.tenancy.tenancy.start()])
  void twinKeeper.start(() => recallTwins(platform))
  void retrieval.warmUp()
  void ledger.start()
  cell.start(platform, telemetry)

  return {
    address,
    platform,
    journal,
    reload: (load, reason) => control.reload(load, reason),
    async close() {
      tell('draining', 'told to stop')
      await finishAnswers({ config, clock, platform, servers, onAnswersEnded: () => telemetry.endRecordings() })
      loop.stop()
      keepTwins(platform)
      await Promise.all([twinKeeper.close(), archive.close(), control.close(), sharing.stop()])
      await cell.close()
      tokens.close()
      await ledger.close()
      await Promise.all([backends.close(), retrieval.close()])
      await store.close()
      tell('stopped', 'all answers have ended')
      await recording.close()
      await telemetry.close()
    },
  }
}

function makeTelemetry({ logging }: Config): LiveTelemetry {
  const { level, format } = logging
  return makeLiveTelemetry({ version: packageJson.version, level: logLevel(level), format: logFormat(format) })
}

function makeTwinKeeper({ database, isInUse, isDurable }: LiveStore, clock: Clock, io: Io): StoreTwinKeeper {
  return new StoreTwinKeeper({ clock, store: new SqlTwinStore(database), isInUse, isDurable, complain: io.err })
}

interface ArchiveWorld {
  readonly store: LiveStore
  readonly clock: Clock
  readonly journal: LiveJournal
  readonly complain: (problem: string) => void
  readonly control: Control
}

function makeArchive({ store, control, ...world }: ArchiveWorld): LiveArchive {
  const { tenancy } = control.tenancy
  return new LiveArchive({
    ...world,
    store: new SqlArchiveStore(store.database),
    isInUse: store.isInUse,
    census: { isComplete: () => tenancy.isComplete, has: (tenantId) => tenancy.tree.tenants.has(tenantId) },
  })
}

interface ListenerParts {
  readonly config: Config
  readonly clock: Clock
  readonly control: Control
  readonly routes: readonly Route[]
  readonly telemetry: LiveTelemetry
  readonly onFault: HttpServerOptions['onFault']
  readonly io: Io
}

/** The front door, and a second listener for `/metrics` where it has a port of its own. */
async function openListeners({
  config,
  clock,
  control,
  routes,
  telemetry,
  onFault,
  io,
}: ListenerParts): Promise<{ readonly servers: readonly HttpServer[]; readonly address: string }> {
  const { ingress: limits, ...server } = config.server
  const tokens = await startLiveIdentity(config, clock, io.err)
  const { host, metricsHost = host, metricsPort, bodyBytesMax } = server
  const options: HttpServerOptions = { ...server, makeRequestId: makeRequestIds(), onFault, tokens }
  const { journal } = telemetry
  const text = (): string => telemetry.metricsText()
  const withKey = metricsRoute(text, (exchange) => control.metricsReaders.refuse(exchange))
  const ingress = new Ingress({
    clock,
    limits,
    bodyBytesMax,
    breathe,
    salt: makeIds()(),
    onRefused: (code, count) => journal.record({ kind: 'ingress-refused', at: clock.now(), code, count }),
  })
  const frontDoor = makeHttpServer(metricsPort === undefined ? [...routes, withKey] : routes, {
    ...options,
    ingress,
    errorsUnder: { '/v1/messages': ANTHROPIC_ERRORS },
  })
  openLiveFrontDoor(frontDoor, { config, clock, makeRequestId: options.makeRequestId, complain: io.err })
  frontDoor.once('close', () => tokens?.close())
  const scheme = server.tls.certificates.length > 0 ? 'https' : 'http'
  const address = await listen(frontDoor, { ...server, scheme })
  if (metricsPort === undefined) return { servers: [frontDoor], address }
  const metrics = makeHttpServer([metricsRoute(text)], { ...options, basePath: '' })
  await listen(metrics, { host: metricsHost, port: metricsPort })
  return { servers: [frontDoor, metrics], address }
}

/** Readiness off, listeners closed, answers finished; what is left after the grace is called off. */
async function finishAnswers({
  config: { server },
  clock,
  platform,
  servers,
  onAnswersEnded,
}: {
  readonly config: Config
  readonly clock: Clock
  readonly platform: Platform
  readonly servers: readonly HttpServer[]
  readonly onAnswersEnded: () => void
}): Promise<void> {
  platform.stepDown()
  if (server.shutdownDelayMs > 0) await clock.sleep(msToUs(server.shutdownDelayMs))
  const answersEnded = platform.drain()
  void answersEnded.then(onAnswersEnded)
  const graceOver = clock.sleep(msToUs(server.shutdownGraceMs))
  void graceOver.then(() => platform.cancelAll('shutting-down'))
  const patienceEnded = graceOver.then(() => clock.sleep(LAST_WORDS_US))
  await Promise.all(servers.map((one) => closeServer(one, { answersEnded, patienceEnded })))
  await answersEnded
}
