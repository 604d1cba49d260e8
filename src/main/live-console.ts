import { type Clock, msToUs, secondsToUs } from '../base/clock.ts'
import { makeIds, makeSecretPart } from '../base/live-ids.ts'
import { withinTime } from '../base/within-time.ts'
import { isLoopback } from '../config/demo.ts'
import type { Config } from '../config/schema.ts'
import { CellFeed } from '../console/cell-feed.ts'
import { ConsoleDelta } from '../console/console-delta.ts'
import { ConsoleFeed } from '../console/console-feed.ts'
import type { ConsoleView } from '../console/console-view.ts'
import { makePageFiles } from '../console/fs-console-files.ts'
import { type LiveRecording, LiveWhatIf } from '../console/live-what-if.ts'
import { ViewerPlaces } from '../console/viewer-places.ts'
import type { Route } from '../gateway/http-server.ts'
import { type ConsoleTeller, consoleRoutes } from '../gateway/routes/console.ts'
import { replayTree } from '../sim/scenario/replay-scenario.ts'
import type { LiveJournal } from '../telemetry/journal.ts'
import { type ConsolePeers, makeConsolePeers } from './console-peers.ts'
import { gatewaysSecret } from './gateways-secret.ts'
import { liveRoutes, type RouteParts } from './live-routes.ts'

const SECOND_US = secondsToUs(1)
/** A page that opens waits this long for other gateways; the next second has them. */
const FIRST_LOOK_US = msToUs(400)

interface ConsoleWorld extends RouteParts {
  readonly config: Config
}

/** All routes of the gateway, and the console's where it is wanted: its calls are those of the other routes. */
export function routesWithConsole(parts: ConsoleWorld): readonly Route[] {
  const { config, clock, control, telemetry, cell, sharing } = parts
  const routes = liveRoutes(parts)
  if (!config.console.enabled) return routes
  const { server } = config
  const own = new ConsoleFeed()
  telemetry.journal.subscribe(own)
  const feed = new CellFeed(own, makeIds()())
  const peers = makeConsolePeers({ clock, feed, cell, sharing })
  whenStopping(telemetry.journal, 'console-peers', () => peers.close())
  const common = gatewaysSecret('console', cell, sharing)
  const console = consoleRoutes({
    clock,
    keys: control.tenants,
    admins: control.admins,
    feed: makeTeller({ journal: telemetry.journal, clock, feed, peers }),
    files: makePageFiles(),
    secret: common,
    makeId: makeSecretPart,
    whatIf: makeWhatIf(
      telemetry.journal,
      clock,
      recordingOf(config, () => control.wanted().settings),
    ),
    api: routes.filter(({ path }) => CALLED.test(path)),
    basePath: server.basePath,
    isLoopback: isLoopback(server.host),
    isSecure: server.tls.certificates.length > 0,
  })
  return [...routes, ...console]
}

/** What pages may call with a session: administration, and what a tenant may see of itself. No model. */
const CALLED = /^\/(admin\/v1|spillway|v1\/spillway|health)(\/|$)/

/** The recording that this server keeps, and the platform to play it on. Hashes of keys stay here. */
function recordingOf({ record }: Config, settings: () => Config): LiveRecording | undefined {
  const { path } = record
  if (path === undefined) return undefined
  return {
    path,
    scenario: (durationS) => withoutKeys(replayTree(settings(), { name: 'recorded-hour', durationS }).tree),
  }
}

/** The simulator gives a key to each tenant that names none. */
function withoutKeys(tree: Readonly<Record<string, unknown>>): object {
  const platform = tree['platform'] as { readonly tenants: readonly Readonly<Record<string, unknown>>[] }
  const tenants = platform.tenants.map(({ keys: _keys, ...tenant }) => tenant)
  return { ...tree, platform: { ...platform, tenants } }
}

/** A simulation ends when the server begins to stop: nobody should wait for it. */
function makeWhatIf(journal: LiveJournal, clock: Clock, recording: LiveRecording | undefined): LiveWhatIf {
  const whatIf = new LiveWhatIf({ clock, ...(recording && { recording }) })
  whenStopping(journal, 'what-if', () => whatIf.close())
  return whatIf
}

function whenStopping(journal: LiveJournal, name: string, stop: () => void): void {
  journal.subscribe({
    name,
    kinds: new Set(['platform-changed'] as const),
    take: (entry) => {
      if (entry.kind === 'platform-changed' && entry.state !== 'ready') stop()
    },
  })
}

interface Watching {
  readonly tenantId: string | undefined
  readonly send: (json: string) => void
}

interface TellerParts {
  readonly journal: LiveJournal
  readonly clock: Clock
  readonly feed: CellFeed
  readonly peers: ConsolePeers
}

/** The feed on real time: told once a second while somebody looks, spelled once for operators and once for each tenant. */
function makeTeller({ journal, clock, feed, peers }: TellerParts): ConsoleTeller {
  const viewers = new Set<Watching>()
  const places = new ViewerPlaces()
  let cancel: (() => void) | undefined
  let toldEvent = 0
  const view = (tenantId: string | undefined, sinceEvent: number): ConsoleView => {
    const now = clock.now()
    return tenantId === undefined ? feed.view(now, sinceEvent) : feed.ofTenant(now, tenantId, sinceEvent)
  }
  const deltas = new ConsoleDelta()
  /** Operators are many and get the same; a tenant's view is small. */
  const spell = (tenantId: string | undefined): string =>
    tenantId === undefined ? deltas.spell(view(undefined, toldEvent)) : JSON.stringify(view(tenantId, toldEvent))
  const askPeers = (what: 'view' | 'history', tenantId?: string): Promise<void> => {
    const watched = [...viewers].flatMap((viewer) => viewer.tenantId ?? [])
    return peers.ask({ what, tenants: [...new Set(tenantId === undefined ? watched : [tenantId, ...watched])] })
  }
  const tell = (): void => {
    journal.drain()
    const spelled = new Map<string | undefined, string>()
    for (const { tenantId, send } of viewers) {
      const json = spelled.get(tenantId) ?? spell(tenantId)
      spelled.set(tenantId, json)
      send(json)
    }
    toldEvent = feed.lastEvent
    void askPeers('view')
    schedule()
  }
  const schedule = (): void => {
    cancel = clock.at(clock.now() + SECOND_US, tell)
  }
  return {
    async snapshot(tenantId) {
      await withinTime(clock, clock.now() + FIRST_LOOK_US, askPeers('view', tenantId))
      journal.drain()
      return JSON.stringify(view(tenantId, 0))
    },
    async history() {
      await withinTime(clock, clock.now() + SECOND_US, askPeers('history'))
      return JSON.stringify(feed.history(clock.now()))
    },
    takePlace: (viewer) => places.take(viewer),
    watch: (tenantId, send) => {
      const watching = { tenantId, send }
      viewers.add(watching)
      // The newcomer's snapshot may be newer than what the next message would leave out.
      if (tenantId === undefined) deltas.restart()
      if (cancel === undefined) {
        toldEvent = feed.lastEvent
        schedule()
      }
      return () => {
        viewers.delete(watching)
        if (viewers.size > 0) return
        cancel?.()
        cancel = undefined
      }
    },
  }
}
