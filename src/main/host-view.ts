import { secondsToUs } from '../base/clock.ts'
import type { Control } from '../control/control.ts'
import type { Entry, Settled } from '../domain/entry.ts'
import type { OutputAsk, OutputPair } from '../domain/output-pair.ts'
import type { FleetAdmin } from '../gateway/fleet-admin.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { LiveTelemetry } from '../telemetry/live-telemetry.ts'
import type { RefusalsAsk } from '../telemetry/recent-refusals.ts'
import { refusalsAnywhere, storyAnywhere } from './ask-gateways.ts'
import { HostAdmin } from './host-admin.ts'
import type { LiveCell } from './live-cell.ts'
import { askOthers, type Seat } from './seat.ts'

/**
 * What operators see and change, whichever process of the host answers them: metrics are the whole host's, a request is
 * found where it was served, and a change that is kept in memory holds in all processes. A gateway that is the only one
 * answers by itself.
 */
export interface HostView {
  readonly admin: FleetAdmin
  /** Exemplars are shown by a gateway that is the only process of its host; sums over processes have none. */
  metricsText(hasExemplars: boolean): string | Promise<string>
  storyOf(ticketId: string): Promise<readonly Entry[] | undefined>
  refusals(ask: RefusalsAsk): Promise<readonly Settled[]>
  /** Of the processes of this host: texts do not go through a database. */
  outputs(ask: OutputAsk): Promise<readonly OutputPair[]>
}

export interface HostViewParts {
  readonly telemetry: LiveTelemetry
  readonly admin: FleetAdmin
  readonly cell: Pick<LiveCell, 'askOthers'>
  readonly outputs: (ask: OutputAsk) => readonly OutputPair[]
}

export function makeHostView(seat: Seat | undefined, { telemetry, admin, cell, outputs }: HostViewParts): HostView {
  // Gateways on one PostgreSQL ask each other through it, those of this host among them.
  const anywhere = {
    storyOf: (ticketId: string) => storyAnywhere(telemetry, cell.askOthers, ticketId),
    refusals: (ask: RefusalsAsk) => refusalsAnywhere(telemetry, cell.askOthers, ask),
  }
  if (seat === undefined)
    return {
      admin,
      metricsText: (hasExemplars) => telemetry.metricsText(hasExemplars),
      ...anywhere,
      outputs: (ask) => Promise.resolve(outputs(ask)),
    }
  const { line } = seat
  line.on('metrics', () => telemetry.metricsText())
  line.on('story', (ticketId: string) => telemetry.storyOf(ticketId))
  line.on('refusals', (ask: RefusalsAsk) => telemetry.refusals(ask))
  line.on('outputs', outputs)
  return {
    admin: new HostAdmin(admin, seat),
    async metricsText() {
      const own = telemetry.metricsText()
      try {
        return String(await line.ask('host-metrics', own, SCRAPE_US_MAX))
      } catch {
        // Without the supervisor these are the numbers that there are.
        return own
      }
    },
    ...(seat.hasStore ? onHost(seat, telemetry) : anywhere),
    outputs: async (ask) =>
      newest([outputs(ask), ...(await askOthers<readonly OutputPair[]>(seat, 'outputs', ask))], ask),
  }
}

/** The kept outputs of this process. A tenant's terms of now count: they may have been changed since. */
export function outputsOf({ outputs, world }: Platform, { tenancy }: Control): HostViewParts['outputs'] {
  const isAllowed = (tenantId: string): boolean => tenancy.tenancy.tree.tenants.get(tenantId)?.storing?.shadows === true
  return (ask) => outputs.list(world.clock.now(), ask, isAllowed)
}

/** The processes of a host with an embedded store have no other gateways beside them. */
function onHost(seat: Seat, telemetry: LiveTelemetry): Pick<HostView, 'storyOf' | 'refusals'> {
  return {
    async storyOf(ticketId) {
      return telemetry.storyOf(ticketId) ?? (await askOthers<readonly Entry[]>(seat, 'story', ticketId))[0]
    },
    async refusals(ask) {
      const others = await askOthers<readonly Settled[]>(seat, 'refusals', ask)
      return newest([telemetry.refusals(ask), ...others], ask)
    },
  }
}

const newest = <T extends { readonly at: number }>(
  lists: readonly (readonly T[])[],
  { limit }: { readonly limit: number },
): readonly T[] =>
  lists
    .flat()
    .sort((a, b) => b.at - a.at)
    .slice(0, limit)

/** Prometheus waits for ten seconds by default; the supervisor gives each process two. */
const SCRAPE_US_MAX = secondsToUs(5)
