import { secondsToUs, US_PER_S } from '../base/clock.ts'
import type { VirtualClock } from '../base/virtual-clock.ts'
import type { Settled } from '../domain/entry.ts'
import type { Request } from '../domain/request.ts'
import { ControlLoop } from '../lifecycle/control-loop.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { Journal } from '../lifecycle/ports.ts'
import { serveRequest } from '../lifecycle/serve-request.ts'
import type { Serve } from './clients/client.ts'

/**
 * One region's gateway, or one of several that share a region's engines: the platform that would run there, with its own
 * control loop. A gateway can be lost, which ends all its requests; when it is back it is a new process without memory.
 */
const TICK_US = US_PER_S

/** What a gateway shares with others, as long as its process lives. */
export interface GatewaySharing {
  start(): void
  /** The process is gone, and says nothing more. */
  lose(): void
  /** The run is over: stops when nothing runs any more. */
  stop(): void
}

export interface GatewayProcess {
  readonly platform: Platform
  readonly sharing?: GatewaySharing
}

export class SimulatedGateway {
  readonly region: string
  readonly #clock: VirtualClock
  readonly #makeProcess: () => GatewayProcess
  #process: GatewayProcess
  #loop: ControlLoop
  /** Requests on their way from another region, of which the platform knows nothing yet. */
  comingCount = 0
  #isUp = true

  constructor(region: string, clock: VirtualClock, makeProcess: () => GatewayProcess) {
    this.region = region
    this.#clock = clock
    this.#makeProcess = makeProcess
    this.#process = makeProcess()
    this.#loop = new ControlLoop(this.platform, TICK_US)
  }

  get platform(): Platform {
    return this.#process.platform
  }

  get isUp(): boolean {
    return this.#isUp
  }

  start(): void {
    void this.#loop.start()
    this.#process.sharing?.start()
  }

  stop(isAnythingLive?: () => boolean): void {
    this.#loop.stop(isAnythingLive)
    this.#process.sharing?.stop()
  }

  lose(): void {
    this.#isUp = false
    this.#process.sharing?.lose()
    this.#loop.stop()
    const { platform } = this
    void platform.drain()
    platform.cancelAll('shutting-down')
    // A process that is gone bills nothing more: the one that comes after it begins its own books. Its tickets with a turn
    // end in this instant, before the timer; what has no turn may still wait for a lookup, and costs nothing.
    this.#clock.at(this.#clock.now(), () => platform.costs.finish())
  }

  recover(): void {
    if (this.#isUp) return
    this.#isUp = true
    this.#process = this.#makeProcess()
    this.#loop = new ControlLoop(this.platform, TICK_US)
    this.start()
  }

  get clock(): VirtualClock {
    return this.#clock
  }
}

/** Round trips between regions, in microseconds; 0 at home. */
export type RoundTrips = (from: string, to: string) => number

/**
 * How clients of a region reach a gateway: their own, or, while that is lost, the nearest one that is up, as a name
 * server would send them. If none is up the connection is refused, which is journalled here because no gateway can.
 */
export function serveFrom(
  home: string,
  gateways: readonly SimulatedGateway[],
  roundTrips: RoundTrips,
  journal: Journal,
): Serve {
  const byDistance = gateways.toSorted((a, b) => roundTrips(home, a.region) - roundTrips(home, b.region))
  return async (request, cancellation, sink) => {
    const gateway = byDistance.find(({ isUp }) => isUp)
    if (gateway === undefined) {
      const settled = connectionRefused(request, journal)
      if (settled.refusal !== undefined) sink.fail(settled.refusal)
      return settled
    }
    const awayUs = roundTrips(home, gateway.region)
    if (awayUs > 0) {
      gateway.comingCount++
      await gateway.clock.sleep(awayUs)
      gateway.comingCount--
    }
    return serveRequest(gateway.platform, request, cancellation, sink)
  }
}

function connectionRefused(request: Request, journal: Journal): Settled {
  const { id: ticketId, tenant, key, model, band, arrivedAt: at, arrivedAt, isStreamed } = request
  const stamp = { at, ticketId, tenantId: tenant.id, keyId: key.id, model, band }
  journal.record({ ...stamp, kind: 'arrived', promptTokens: 0, isStreamed })
  const because = 'no gateway answers'
  const settled: Settled = {
    ...stamp,
    kind: 'settled',
    servedModel: model,
    releaseId: undefined,
    poolId: undefined,
    replicaId: undefined,
    bid: request.bid,
    rung: 'full',
    outcome: 'failed',
    because,
    refusal: { code: 'shutting-down', because, blame: 'platform', retryAfterUs: secondsToUs(1) },
    usage: { promptTokens: 0, cachedTokens: 0, outputTokens: 0 },
    cost: 0,
    attempts: 0,
    arrivedAt,
    admittedAt: undefined,
    grantedAt: undefined,
    firstTokenAt: undefined,
    lastTokenAt: undefined,
    deadlineAt: request.deadlineAt,
    gaps: undefined,
    isKept: undefined,
  }
  journal.record(settled)
  return settled
}
