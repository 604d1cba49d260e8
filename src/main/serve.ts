import { assemble } from '../assembly/assemble.ts'
import { makeLiveBackends } from '../assembly/live-backends.ts'
import { type LiveStore, makeLineStore, makeLiveStore } from '../assembly/live-store.ts'
import { CacheSalts } from '../backends/cache-salts.ts'
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
import { gatewaysSecret } from './gateways-secret.ts'
import { makeHostView, outputsOf } from './host-view.ts'
import { makeLiveScaling } from './live-actuators.ts'
import { openLiveAudit } from './live-audit.ts'
import { startLedger } from './live-budgets.ts'
import { type LiveCell, makeLiveCell } from './live-cell.ts'
import { routesWithConsole } from './live-console.ts'
import { type LiveJobs, makeLiveJobs } from './live-jobs.ts'
import { openLiveLedger } from './live-ledger.ts'
import { openListeners, type ServerEnd, serverEndOf } from './live-listeners.ts'
import { startFileRecording } from './live-recording.ts'
import { type LiveRetrieval, makeLiveRetrieval } from './live-retrieval.ts'
import { makeLiveSafety } from './live-screening.ts'
import { makeLiveSharing } from './live-sharing.ts'
import { openTelemetry } from './live-telemetry.ts'
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
  const telemetry = openTelemetry(config, seat, { clock, complain: io.err })
  const { journal, tell, onFault } = voiceOf(telemetry.journal, clock)
  const recording = startFileRecording(config.record, { telemetry, clock, complain: io.err })
  const backends = await makeLiveBackends(config, clock, (scope) => cacheSalts.of(scope))
  const store = await openStore(config, clock, io, seat)
  const world = { clock, journal, store, complain: io.err, print: io.out, platform: (): Platform => platform }
  const retrieval = await makeLiveRetrieval(config, world)
  const cell = makeLiveCell(config, { clock, journal, store, control: (): Control => control })
  const twinKeeper = makeTwinKeeper(store, clock, io)
  const sharing = makeLiveSharing(config, { clock, journal }, await leaseStoreOf(config, clock, seat))
  const cacheSalts = new CacheSalts(gatewaysSecret('cache-salt', cell, sharing))
  const ledger = await openLiveLedger(config, world)
  const audit = await openLiveAudit(config, world)
  const kept = { ...keptBy(cell), twinKeeper, ...ledger.parts }
  const { screener, moderator, names } = makeLiveSafety(clock, journal)
  const scaling = makeLiveScaling(clock, () => control)
  const more = { screener, ...scaling, ...sharing.parts, ...audit.parts, prefixSalt: makePrefixSalt() }
  const platform: Platform = assemble(config, { clock, journal, backends, ...found(retrieval), ...kept, ...more })
  const control: Control = makeControl({
    founded: wantedOf(config, []),
    load,
    clock,
    platform,
    backends,
    ...factsOf(store),
    onTenantRemoved: (tenantId) => eraseTenant(tenantId, platform, archive),
    keeper: cell.keeper,
    onFault,
    onReloaded: (summary, reason) => audit.reloaded(summary, reason),
    complain: io.err,
  })
  audit.follow(() => control.wanted().settings)
  const [archive, jobs] = makeArchiveAndJobs(config, { ...world, control })
  await control.discover()
  const loop = new ControlLoop(platform, TICK_US)
  await Promise.all([loop.start(), sharing.start(platform)])
  const started = await startLedger(ledger, { config, clock, journal, platform, complain: io.err })

  const tokens = new TokenCounter({ clock })
  const host = makeHostView(seat, { telemetry, cell, admin: control.admin, outputs: outputsOf(platform, control) })
  const served = { platform, backends, control, retrieval, archive, sharing, cell, host, ledger, audit, moderator }
  const routes = routesWithConsole({ config, clock, tokens, names, telemetry, jobs, ...served })
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
  jobs.start({ ...served, routes, onFault })

  return {
    address,
    platform,
    journal,
    reload: (load, reason) => control.reload(load, reason),
    ...serverEndOf({ config, clock, platform, servers, telemetry, tell }, async () => {
      await endStory(platform, loop)
      await Promise.all([jobs.close(), twinKeeper.close(), archive.close(), control.close(), sharing.stop()])
      await cell.close()
      for (const thread of [tokens, names]) thread.close()
      await started.close()
      await Promise.all([backends.close(), retrieval.close(), audit.close()])
      await store.close()
      tell('stopped', 'all answers have ended')
      await recording.close()
      await telemetry.close()
    }),
  }
}

/** What the gateways of a cell keep together. */
const keptBy = ({ keeper, leadership, seconds }: LiveCell) => ({
  rolloutKeeper: keeper,
  leadership,
  ...(seconds && { seconds }),
})

/** What the platform needs of retrieval. */
const found = ({ retriever, answers }: LiveRetrieval) => ({ retriever, answers })

/** What is kept of a tenant that was removed goes, too. */
function eraseTenant(tenantId: string, { outputs }: Platform, archive: LiveArchive): void {
  outputs.forget(tenantId)
  void archive.eraseTenant(tenantId)
}

/** What the server says of itself in the journal. */
function voiceOf(journal: LiveJournal, clock: Clock) {
  return {
    journal,
    tell: (state: 'ready' | 'draining' | 'stopped', because: string): void =>
      journal.record({ kind: 'platform-changed', at: clock.now(), state, because }),
    onFault: (where: string, error: unknown): void =>
      journal.record({ kind: 'fault-seen', at: clock.now(), where, because: String(error), ticketId: undefined }),
  }
}

/** No tick comes any more; what was learned is kept, and open costs are told. */
async function endStory(platform: Platform, loop: ControlLoop): Promise<void> {
  loop.stop()
  keepTwins(platform)
  await platform.costs.whenDone()
}

/** Where administrators' changes are kept. */
const factsOf = ({ database, isInUse, isShared }: LiveStore) => ({
  registry: { store: new SqlRegistryStore(database), isInUse, isShared },
  tenancyStore: new SqlTenancyStore(database),
})

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

/** Jobs of the background put their answers into the archive. */
function makeArchiveAndJobs(config: Config, world: ArchiveWorld): readonly [LiveArchive, LiveJobs] {
  const archive = makeArchive(world)
  return [archive, makeLiveJobs(config, { ...world, archive })]
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
