import packageJson from '../../package.json' with { type: 'json' }
import { assemble } from '../assembly/assemble.ts'
import { makeLiveBackends } from '../assembly/live-backends.ts'
import { type LiveStore, makeLineStore, makeLiveStore } from '../assembly/live-store.ts'
import { TokenCounter } from '../backends/live-token-counter.ts'
import type { Clock } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import { makePrefixSalt } from '../base/live-ids.ts'
import type { Io, Running } from '../base/running.ts'
import type { Config } from '../config/schema.ts'
import { type Control, makeControl } from '../control/control.ts'
import { LiveArchive } from '../control/live-archive.ts'
import { StoreTwinKeeper } from '../control/store-twin-keeper.ts'
import { wantedOf } from '../control/wanted.ts'
import type { AdminReason, AdminReloadAnswer } from '../gateway/fleet-admin.ts'
import { ControlLoop } from '../lifecycle/control-loop.ts'
import { keepTwins, recallTwins } from '../lifecycle/learning/keep-twins.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { SqlArchiveStore } from '../store/sql-archive-store.ts'
import { SqlRegistryStore } from '../store/sql-registry-store.ts'
import { SqlTenancyStore } from '../store/sql-tenancy-store.ts'
import { SqlTwinStore } from '../store/sql-twin-store.ts'
import type { LiveJournal } from '../telemetry/journal.ts'
import { type LiveTelemetry, makeLiveTelemetry } from '../telemetry/live-telemetry.ts'
import { makeHostView } from './host-view.ts'
import { startLedger } from './live-budgets.ts'
import { makeLiveCell } from './live-cell.ts'
import { openLiveLedger } from './live-ledger.ts'
import { openListeners, type ServerEnd, serverEndOf } from './live-listeners.ts'
import { startFileRecording } from './live-recording.ts'
import { type LiveRetrieval, makeLiveRetrieval } from './live-retrieval.ts'
import { liveRoutes } from './live-routes.ts'
import { makeLiveSharing } from './live-sharing.ts'
import { logFormat, logLevel } from './log-options.ts'
import { leaseStoreOf, type Seat, takeSeat } from './seat.ts'
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
export interface Served extends Running, ServerEnd {
  readonly platform: Platform
  readonly journal: LiveJournal
  /** Takes up other settings, whole or not at all; answers what changed and what needs a restart. */
  reload(load: () => Config, reason: AdminReason): Promise<AdminReloadAnswer>
}

/** `load` reads the configuration again, for `POST /admin/v1/reload`; `seat` is given to one of several processes. */
export async function serve(
  config: Config,
  io: Io,
  clock: Clock = new LiveClock(),
  load?: () => Config,
  seat?: Seat,
): Promise<Served> {
  const telemetry = openTelemetry(config, seat)
  const { journal } = telemetry
  const { tell, onFault } = voiceOf(journal, clock)
  const recording = startFileRecording(config.record, { telemetry, clock, complain: io.err })
  const backends = await makeLiveBackends(config, clock)
  const store = await openStore(config, clock, io, seat)
  const world = { clock, journal, store, complain: io.err, platform: (): Platform => platform }
  const retrieval = await makeLiveRetrieval(config, world)
  const cell = makeLiveCell(config, { clock, journal, store, control: (): Control => control })
  const { keeper, leadership, seconds } = cell
  const twinKeeper = makeTwinKeeper(store, clock, io)
  const sharing = makeLiveSharing(config, { clock, journal }, await leaseStoreOf(config, clock, seat))
  const ledger = await openLiveLedger(config, world)
  const kept = { rolloutKeeper: keeper, twinKeeper, leadership, ...ledger.parts, ...(seconds && { seconds }) }
  const parts = { clock, journal, backends, ...found(retrieval), ...kept, ...sharing.parts }
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
  const started = await startLedger(ledger, { config, clock, journal, platform, complain: io.err })

  const tokens = new TokenCounter({ clock })
  const host = makeHostView(seat, { telemetry, admin: control.admin, cell })
  const served = { platform, backends, control, retrieval, archive, sharing, cell, host, ledger }
  const routes = liveRoutes({ config, clock, tokens, telemetry, ...served })
  const lookUp = () => Promise.all([control.registry.start(), control.tenancy.tenancy.start()])
  if (seat !== undefined) await takeSeat(seat, { clock, control, lookUp })
  const opening = { config, clock, control, routes, telemetry, host, onFault, io, seat }
  const { servers, address } = await openListeners(opening)
  tell('ready', 'listening')
  if (seat === undefined) io.out(welcome(config, address))
  if (seat === undefined) void lookUp()
  void twinKeeper.start(() => recallTwins(platform))
  void retrieval.warmUp()
  cell.start(platform, telemetry)

  return {
    address,
    platform,
    journal,
    reload: (load, reason) => control.reload(load, reason),
    ...serverEndOf({ config, clock, platform, servers, telemetry, tell }, async () => {
      loop.stop()
      keepTwins(platform)
      await platform.costs.whenDone()
      await Promise.all([twinKeeper.close(), archive.close(), control.close(), sharing.stop()])
      await cell.close()
      tokens.close()
      await started.close()
      await Promise.all([backends.close(), retrieval.close()])
      await store.close()
      tell('stopped', 'all answers have ended')
      await recording.close()
      await telemetry.close()
    }),
  }
}

function openTelemetry({ logging }: Config, seat: Seat | undefined): LiveTelemetry {
  const { version } = packageJson
  const process = seat?.number
  return makeLiveTelemetry({ version, level: logLevel(logging.level), format: logFormat(logging.format), process })
}

/** What the platform needs of retrieval. */
const found = ({ retriever, answers }: LiveRetrieval) => ({ retriever, answers })

/** What the server says of itself in the journal. */
function voiceOf(journal: LiveJournal, clock: Clock) {
  return {
    tell: (state: 'ready' | 'draining' | 'stopped', because: string): void =>
      journal.record({ kind: 'platform-changed', at: clock.now(), state, because }),
    onFault: (where: string, error: unknown): void =>
      journal.record({ kind: 'fault-seen', at: clock.now(), where, because: String(error), ticketId: undefined }),
  }
}

/** The embedded database has one owner: the supervisor, where there is one. */
async function openStore(config: Config, clock: Clock, io: Io, seat: Seat | undefined): Promise<LiveStore> {
  if (seat?.hasStore === true) return makeLineStore(seat.line, config, { clock, complain: io.err })
  return makeLiveStore(config, clock, io.err)
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
