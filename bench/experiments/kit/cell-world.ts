import { assemble } from '../../../src/assembly/assemble.ts'
import { Cancellation } from '../../../src/base/cancellation.ts'
import { secondsToUs, US_PER_S } from '../../../src/base/clock.ts'
import { Rng } from '../../../src/base/rng.ts'
import { VirtualClock } from '../../../src/base/virtual-clock.ts'
import { toTenants } from '../../../src/config/to-domain.ts'
import type { Settled } from '../../../src/domain/entry.ts'
import type { Request } from '../../../src/domain/request.ts'
import type { Key, Tenant } from '../../../src/domain/tenant.ts'
import { ControlLoop } from '../../../src/lifecycle/control-loop.ts'
import type { Platform } from '../../../src/lifecycle/platform.ts'
import { serveRequest } from '../../../src/lifecycle/serve-request.ts'
import { SimSink, segmentsOf } from '../../../src/sim/clients/client.ts'
import { drawExponential, drawTokens } from '../../../src/sim/clients/draw.ts'
import { ClientScripts } from '../../../src/sim/clients/scripts.ts'
import { callersOf, configOf } from '../../../src/sim/scenario/scenario-config.ts'
import { replicasOf } from '../../../src/sim/simulate.ts'
import { SimulatedFleet } from '../../../src/sim/world.ts'
import { azureShape } from './azure-shape.ts'

/**
 * Many cells on one virtual clock. Each is a whole platform with its own fleet, as it would run; nothing is shared
 * between them. Before them stand routers that know of a cell only what it published a while ago.
 */
export interface Cell {
  readonly index: number
  readonly platform: Platform
  readonly fleet: SimulatedFleet
}

/** What a cell says of itself, once a second: how much work stands before one of its replicas, and whether it is there. */
export interface Gauge {
  readonly isUp: boolean
  /** Predicted cost queued and held, per ready replica. */
  readonly load: number
}

export interface CellWorld {
  readonly clock: VirtualClock
  readonly cells: readonly Cell[]
  readonly scripts: ClientScripts
  readonly callers: ReadonlyArray<{ readonly tenant: Tenant; readonly key: Key }>
}

export const CELLS = 16
export const REPLICAS_PER_CELL = 4
const TENANTS = 200

export async function makeCells(seed: number, count = CELLS): Promise<CellWorld> {
  const clock = new VirtualClock()
  const scripts = new ClientScripts()
  const base = azureShape(1, 1)
  const scenario = {
    ...base,
    platform: {
      ...base.platform,
      tenants: Array.from({ length: TENANTS }, (_, i) => ({ id: `t${i}`, slo: 'steady' })),
    },
  }
  const { config, groupOf } = configOf(scenario, seed)
  const cells = Array.from({ length: count }, (_, index): Cell => {
    const fleet = new SimulatedFleet(clock, replicasOf(config), scripts)
    const platform = assemble(config, { clock, journal: { record: () => {} }, backends: fleet })
    void new ControlLoop(platform, US_PER_S).start()
    return { index, platform, fleet }
  })
  await clock.run(clock.now() + 1)
  if (toTenants(config).length !== TENANTS) throw new Error('every cell knows every tenant')
  return { clock, cells, scripts, callers: callersOf(config, groupOf) }
}

export function gaugeOf({ platform }: Cell): Gauge {
  const facts = platform.policies.dispatcher.poolFacts(platform.pools[0]!.id)
  const ready = facts?.readyReplicaCount ?? 0
  return { isUp: ready > 0, load: ((facts?.queuedCost ?? 0) + (facts?.heldCost ?? 0)) / Math.max(1, ready) }
}

/** Everybody's replicas in one cell are gone, and back later. */
export function loseCell({ clock }: CellWorld, { fleet }: Cell, fromS: number, toS: number): void {
  clock.at(secondsToUs(fromS), () => {
    for (const replica of fleet.all()) replica.crash()
  })
  clock.at(secondsToUs(toS), () => {
    for (const replica of fleet.all()) replica.recover()
  })
}

export interface Demand {
  readonly ratePerS: (atS: number) => number
  /** Tenant `hot` sends this many times its part. */
  readonly hotFactor: (atS: number) => number
  readonly untilS: number
}

export type Route = (request: Request, outputTokens: number) => Promise<void>

/** Requests come whether or not anybody has been served; tenants by Zipf's law. The same for every router. */
export function sendAll(world: CellWorld, demand: Demand, seed: number, route: Route): void {
  const rng = Rng.stream(seed, 'cells')
  const parts = Array.from({ length: TENANTS }, (_, rank) => 1 / (rank + 10))
  const total = parts.reduce((sum, part) => sum + part, 0)
  const { prompt, output } = azureShape(1, 1).workload[0]!
  let count = 0
  const next = (atUs: number): void => {
    const atS = atUs / US_PER_S
    const hotExtra = (parts[0]! / total) * (demand.hotFactor(atS) - 1)
    const rate = demand.ratePerS(atS) * (1 + hotExtra)
    const at = atUs + Math.max(1, secondsToUs(drawExponential(rng) / rate))
    if (at >= secondsToUs(demand.untilS)) return
    world.clock.at(at, () => {
      const tenantIndex = pick(parts, total, hotExtra, rng)
      const { tenant, key } = world.callers[tenantIndex]!
      const promptTokens = drawTokens(prompt, rng)
      const request = makeRequest(`r${count++}`, at, { tenant, key, promptTokens })
      void route(request, drawTokens(output, rng))
      next(at)
    })
  }
  next(world.clock.now())
}

function pick(parts: readonly number[], total: number, hotExtra: number, rng: Rng): number {
  let left = rng.next() * total * (1 + hotExtra) - total * hotExtra
  if (left < 0) return 0
  for (let i = 0; i < parts.length; i++) {
    left -= parts[i]!
    if (left <= 0) return i
  }
  return parts.length - 1
}

function makeRequest(
  id: string,
  arrivedAt: number,
  { tenant, key, promptTokens }: { tenant: Tenant; key: Key; promptTokens: number },
): Request {
  return {
    id,
    tenant,
    key,
    kind: 'chat',
    model: 'large',
    segments: segmentsOf(promptTokens, undefined),
    prefixHashes: [],
    outputTokensMax: undefined,
    choiceCount: 1,
    isStreamed: true,
    band: 'standard',
    bid: 0,
    slo: tenant.slo,
    arrivedAt,
    deadlineAt: arrivedAt + tenant.slo.totalUs,
    text: undefined,
  }
}

/** One try at one cell, through its own front door. */
export async function askCell({ scripts }: CellWorld, cell: Cell, request: Request, output: number): Promise<Settled> {
  scripts.expect(request.id, output)
  const settled = await serveRequest(cell.platform, request, new Cancellation(), new SimSink())
  scripts.forget(request.id)
  return settled
}
