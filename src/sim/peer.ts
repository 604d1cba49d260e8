import { peerReport } from '../backends/peer-report.ts'
import { Cancellation } from '../base/cancellation.ts'
import type { Clock } from '../base/clock.ts'
import type { Delta, Usage } from '../domain/delta.ts'
import type { Settled } from '../domain/entry.ts'
import type { Replica } from '../domain/fleet.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { Request } from '../domain/request.ts'
import type { Key, Tenant } from '../domain/tenant.ts'
import { tellOutlooks } from '../lifecycle/fleet/tell-outlook.ts'
import type { Backend, Call, Ending, ReplicaReport, Sink } from '../lifecycle/ports.ts'
import { serveRequest } from '../lifecycle/serve-request.ts'
import type { ClientScripts } from './clients/scripts.ts'
import type { SimulatedGateway } from './gateway.ts'

/**
 * The gateway of another region, as seen from this one: the same story runs there, half a round trip away. The request
 * carries what live gateways send each other (`wire/region.ts`): the tenant, the deadline, one hop more.
 */
export interface PeerLink {
  readonly clock: Clock
  /** A function, because gateways that refer to each other cannot all be made first. */
  readonly there: () => SimulatedGateway
  readonly fromRegion: string
  readonly roundTripUs: number
  readonly scripts: ClientScripts
}

export class SimulatedPeer implements Backend {
  readonly #link: PeerLink
  readonly #behalf = new Map<string, { readonly tenant: Tenant; readonly key: Key }>()

  constructor(link: PeerLink) {
    this.#link = link
  }

  generate(call: Call): Promise<Ending> {
    return new Promise((resolve) => {
      new PeerCall(this.#link, call, this.#forwarded(call), resolve).start()
    })
  }

  async probe({ model }: Replica): Promise<ReplicaReport> {
    const { clock, there, roundTripUs } = this.#link
    await clock.sleep(roundTripUs)
    const gateway = there()
    if (!gateway.isUp) return { isReady: false, because: 'connection refused' }
    return peerReport(tellOutlooks(gateway.platform), model, roundTripUs)
  }

  #forwarded({ request, plan, lease }: Call): Request {
    const { fromRegion, there } = this.#link
    const isTrimmed = plan.segments.length < request.segments.length
    return {
      ...request,
      ...this.#onBehalf(request),
      // Every attempt is a ticket of its own in the other region.
      id: `${request.id}@${there().region}.${lease.id}`,
      segments: plan.segments,
      prefixHashes: isTrimmed ? [] : request.prefixHashes,
      outputTokensMax: plan.sentTokensMax,
      hops: (request.hops ?? 0) + 1,
      origin: request.origin ?? fromRegion,
    }
  }

  /** As in the live tenant directory: never degraded there, and counted against no key. */
  #onBehalf({ tenant }: Request): { tenant: Tenant; key: Key } {
    let known = this.#behalf.get(tenant.id)
    if (known === undefined) {
      const id = `${tenant.id}@${this.#link.fromRegion}`
      known = { tenant: { ...tenant, contract: 'reject' }, key: { id, tenantId: tenant.id, weight: 1, allowance: {} } }
      this.#behalf.set(tenant.id, known)
    }
    return known
  }
}

/** One request to the other region, and its answer on the way back. */
class PeerCall {
  readonly #link: PeerLink
  readonly #call: Call
  readonly #request: Request
  readonly #resolve: (ending: Ending) => void
  readonly #cancellation = new Cancellation()
  #forgetCancel = (): void => {}
  #isOver = false

  constructor(link: PeerLink, call: Call, request: Request, resolve: (ending: Ending) => void) {
    this.#link = link
    this.#call = call
    this.#request = request
    this.#resolve = resolve
  }

  start(): void {
    this.#forgetCancel = this.#call.cancellation.onCancel((because) => {
      this.#later(() => this.#cancellation.cancel(because))
      this.#end({ kind: 'cancelled' })
    })
    if (!this.#isOver) this.#later(() => void this.#arrive())
  }

  async #arrive(): Promise<void> {
    const { there, clock, scripts } = this.#link
    const gateway = there()
    if (this.#cancellation.isCancelled) return
    if (!gateway.isUp) {
      this.#later(() => this.#end({ kind: 'lost', because: 'connection refused' }))
      return
    }
    const request = { ...this.#request, arrivedAt: clock.now() }
    const known = scripts.copy(this.#call.request.id, request.id)
    if (!known) return
    const sink = this.#makeSink()
    const settled = await serveRequest(gateway.platform, request, this.#cancellation, sink)
    scripts.forget(request.id)
    this.#later(() => this.#end(endingOf(settled, sink.usage, gateway.isUp)))
  }

  #makeSink(): Sink & { usage: Usage | undefined } {
    const pass = (delta: Delta): void =>
      this.#later(() => {
        if (!this.#isOver) void this.#call.sink.write(delta)
      })
    return {
      usage: undefined,
      start() {},
      write(delta) {
        pass(delta)
        return undefined
      },
      finish(usage) {
        this.usage = usage
      },
      fail() {},
    }
  }

  /** Half a round trip from now. */
  #later(then: () => void): void {
    const { clock, roundTripUs } = this.#link
    clock.at(clock.now() + Math.ceil(roundTripUs / 2), then)
  }

  #end(ending: Ending): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#forgetCancel()
    this.#resolve(ending)
  }
}

/** The ending that an HTTP status would give: no room, a fault of the request, or lost. */
function endingOf({ outcome, refusal, because }: Settled, usage: Usage | undefined, isUp: boolean): Ending {
  if (outcome === 'completed') return { kind: 'finished', usage }
  if (outcome === 'cancelled') return { kind: 'cancelled' }
  if (outcome === 'failed' || refusal === undefined || !isUp) return { kind: 'lost', because }
  return { kind: 'refused', refusal: asReplica(refusal) }
}

function asReplica(refusal: Refusal): Refusal {
  if (refusal.blame === 'request') return { ...refusal, code: 'replica-rejected-request' }
  return { ...refusal, code: 'replica-refused', blame: 'platform' }
}
