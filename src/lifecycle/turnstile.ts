import { assert } from '../base/assert.ts'
import type { CancelTimer, Clock, Instant } from '../base/clock.ts'
import type { Lease } from '../domain/fleet.ts'
import type { Placement } from '../domain/placement.ts'
import { meanCostOf } from '../domain/plan.ts'
import type { PredictedWait } from '../policy/admission/predicted-wait.ts'
import type { Dispatcher } from '../policy/dispatch/dispatcher.ts'
import type { ReplicaChange } from '../policy/dispatch/fleet-state.ts'
import type { Effect, Measured, Offer, Offered, RefusedCode } from '../policy/dispatch/offer.ts'
import type { ReplicaFacts } from '../policy/dispatch/replica-room.ts'
import type { Gauges } from '../policy/limits/ledger.ts'
import { type BacklogPart, shareOf } from './policies.ts'
import type { Admitted, Attempt, Ticket } from './ticket.ts'

/**
 * Where tickets wait for their turn. The dispatcher decides; this turns its decisions into awaited promises, arms the
 * one timer that it asks for, and takes a ticket out when its client has gone. Nothing else in the project does. It
 * also keeps each pool's wait predictor in step with who is queued, because it is here that tickets join and leave.
 *
 * A ticket that was granted a turn owns a lease from then on; whoever awaits `takeTurn` must give it back.
 */
export type Turn =
  | {
      readonly kind: 'granted'
      readonly lease: Lease
      readonly because: string
      readonly placement?: Placement | undefined
    }
  | { readonly kind: 'expired' | 'evicted'; readonly because: string }
  | { readonly kind: 'cancelled'; readonly because: string }

/** Why a ticket may not join. */
export interface NoPlace {
  readonly code: RefusedCode
  readonly because: string
}

interface Place {
  poolId: string
  backlog: BacklogPart
  /** Decided before anybody asked. */
  turn: Turn | undefined
  resolve: ((turn: Turn) => void) | undefined
  forgetCancel: () => void
}

export class Turnstile {
  readonly #clock: Clock
  readonly #dispatcher: Dispatcher
  readonly #waitOf: (poolId: string) => PredictedWait | undefined
  readonly #places = new Map<string, Place>()
  #wakeupAt: Instant | undefined
  #disarm: CancelTimer | undefined

  constructor(clock: Clock, dispatcher: Dispatcher, waitOf: (poolId: string) => PredictedWait | undefined) {
    this.#clock = clock
    this.#dispatcher = dispatcher
    this.#waitOf = waitOf
  }

  /** For people and tests: what waits and what runs, over all pools. */
  view(): { readonly waiting: number; readonly inFlight: number; readonly readyReplicas: number } {
    const { queuedCount, pools } = this.#dispatcher.view()
    let inFlight = 0
    let readyReplicas = 0
    for (const pool of pools) {
      inFlight += pool.heldCount
      for (const replica of pool.replicas) if (replica.isReady) readyReplicas++
    }
    return { waiting: queuedCount, inFlight, readyReplicas }
  }

  /** Joins its lane, or says why it may not. */
  join(ticket: Ticket, offer: Offer): NoPlace | undefined {
    return this.#enter(ticket, offer, false)
  }

  /** Joins the head of the lane once more, for another replica than the attempt's where there is another. */
  rejoin({ admitted, lease }: Attempt): NoPlace | undefined {
    const { ticket, offer, plan } = admitted
    ticket.phase = 'waiting'
    admitted.offer = { ...offer, estimate: plan.estimate, avoidReplicaId: lease.replica.id }
    return this.#enter(ticket, admitted.offer, true)
  }

  /** From the queue of one pool to the head of its lane in another. A ticket that has its turn already stays. */
  move(admitted: Admitted, poolId: string): void {
    const { ticket } = admitted
    const place = this.#places.get(ticket.id)
    if (place === undefined || place.turn !== undefined) return
    this.#withdraw(ticket.id, place)
    place.poolId = poolId
    admitted.sendTo(poolId)
    const now = this.#clock.now()
    this.#waitOf(poolId)?.join(now, place.backlog)
    const offered = this.#dispatcher.offerAgain(now, admitted.offer)
    this.#apply(offered.effects)
    if (offered.kind !== 'refused') return
    this.#waitOf(poolId)?.withdrawn(place.backlog)
    place.turn = { kind: 'evicted', because: `its pool was lost, and the other had no place: ${offered.because}` }
    place.resolve?.(place.turn)
  }

  /** The ticket's passages are there: it may have its turn, with the estimate of its plan as it is now. */
  ready(admitted: Admitted): void {
    const { ticket, plan, offer } = admitted
    const { estimate } = plan
    const place = this.#places.get(ticket.id)
    // The ticket has expired, was evicted or was cancelled meanwhile.
    if (place === undefined || place.turn !== undefined) return
    const wait = this.#waitOf(place.poolId)
    const now = this.#clock.now()
    wait?.withdrawn(place.backlog)
    place.backlog = { ...place.backlog, cost: estimate.cost }
    wait?.join(now, place.backlog)
    admitted.offer = { ...offer, estimate, isReady: true }
    this.#apply(this.#dispatcher.ready(now, ticket.id, estimate))
  }

  takeTurn(ticket: Ticket): Turn | Promise<Turn> {
    const place = this.#places.get(ticket.id)
    assert(place !== undefined, 'a ticket joins before it takes a turn')
    if (place.turn !== undefined) {
      this.#forget(ticket.id, place)
      return place.turn
    }
    return new Promise((resolve) => {
      place.resolve = (turn) => {
        this.#forget(ticket.id, place)
        resolve(turn)
      }
    })
  }

  /**
   * Its first token has come: so much of the backlog is worked off, and its replica has room for the next prompt. Told
   * with the first token and not with the last, because it is turns that those who wait are waiting for: at the start
   * of a burst nothing ends for seconds, and yet turns are given.
   */
  begin({ lease, plan, grantedAt }: Attempt): void {
    const { poolId } = lease.replica
    const now = this.#clock.now()
    const replicaCount = this.#dispatcher.poolFacts(poolId)?.readyReplicaCount ?? 0
    this.#waitOf(poolId)?.begun(now, {
      grantedAt,
      cost: meanCostOf(plan.estimate),
      shareUs: plan.estimate.shareUs,
      replicaCount,
    })
    this.#apply(this.#dispatcher.begin(now, lease.id))
  }

  /** Output so far, told when it is more than was predicted: fairness charges as it comes. */
  progress(lease: Lease, outputTokens: number): void {
    this.#apply(this.#dispatcher.progress(this.#clock.now(), lease.id, outputTokens))
  }

  giveBack(lease: Lease, measured: Measured): void {
    this.#apply(this.#dispatcher.release(this.#clock.now(), lease.id, measured))
  }

  /** Frees whatever a ticket still holds here: a place in the queue, or a turn that nobody came to take. */
  release(ticket: Ticket): void {
    const place = this.#places.get(ticket.id)
    if (place === undefined) return
    this.#forget(ticket.id, place)
    if (place.turn?.kind === 'granted') this.giveBack(place.turn.lease, NOTHING_SERVED)
    else if (place.turn === undefined) this.#withdraw(ticket.id, place)
  }

  addPool(poolId: string): void {
    this.#dispatcher.addPool(poolId)
  }

  /** Nothing waits there and nothing runs. */
  removePool(poolId: string): void {
    this.#dispatcher.removePool(poolId)
  }

  addReplica(facts: ReplicaFacts): void {
    this.#apply(this.#dispatcher.addReplica(this.#clock.now(), facts))
  }

  removeReplica(replicaId: string): void {
    this.#apply(this.#dispatcher.removeReplica(this.#clock.now(), replicaId))
  }

  replicaChanged(replicaId: string, change: ReplicaChange): void {
    this.#apply(this.#dispatcher.replicaChanged(this.#clock.now(), replicaId, change))
  }

  replicaReported(replicaId: string, gauges: Gauges): void {
    this.#apply(this.#dispatcher.report(this.#clock.now(), replicaId, gauges))
  }

  #enter(ticket: Ticket, offer: Offer, isAgain: boolean): NoPlace | undefined {
    const { request } = ticket
    const backlog = {
      share: shareOf(request),
      band: request.band,
      cost: meanCostOf(offer.estimate),
      shareUs: offer.estimate.shareUs,
    }
    const place: Place = { poolId: offer.poolId, backlog, turn: undefined, resolve: undefined, forgetCancel: nothing }
    this.#places.set(ticket.id, place)
    // Its client has gone already: it takes its `cancelled` turn without ever having been in the queue.
    if (ticket.cancellation.because !== undefined) {
      place.turn = { kind: 'cancelled', because: ticket.cancellation.because }
      return undefined
    }
    const now = this.#clock.now()
    this.#waitOf(offer.poolId)?.join(now, backlog)
    const offered: Offered = isAgain ? this.#dispatcher.offerAgain(now, offer) : this.#dispatcher.offer(now, offer)
    this.#apply(offered.effects)
    if (offered.kind === 'refused') {
      this.#waitOf(offer.poolId)?.withdrawn(backlog)
      this.#forget(ticket.id, place)
      return offered
    }
    // A turn granted at once leaves nothing to cancel here.
    if (place.turn === undefined) {
      place.forgetCancel = ticket.cancellation.onCancel((because) => this.#cancel(ticket.id, place, because))
    }
    return undefined
  }

  /** The client has gone. A turn already granted stays granted: its lease goes back when the backend says so. */
  #cancel(ticketId: string, place: Place, because: string): void {
    if (place.turn !== undefined) return
    this.#withdraw(ticketId, place)
    place.turn = { kind: 'cancelled', because }
    place.resolve?.(place.turn)
  }

  #withdraw(ticketId: string, place: Place): void {
    this.#waitOf(place.poolId)?.withdrawn(place.backlog)
    this.#apply(this.#dispatcher.withdraw(this.#clock.now(), ticketId))
  }

  #apply(effects: readonly Effect[]): void {
    for (let i = 0; i < effects.length; i++) {
      const effect = effects[i] as Effect
      const place = this.#places.get(effect.ticketId)
      assert(place !== undefined && place.turn === undefined, 'the dispatcher speaks only of tickets that wait')
      const wait = this.#waitOf(place.poolId)
      if (effect.kind === 'granted') wait?.granted(this.#clock.now(), place.backlog)
      else wait?.withdrawn(place.backlog)
      place.turn = effect
      place.resolve?.(effect)
    }
    this.#arm()
  }

  #forget(ticketId: string, place: Place): void {
    place.forgetCancel()
    if (this.#places.get(ticketId) === place) this.#places.delete(ticketId)
  }

  #arm(): void {
    const wakeupAt = this.#dispatcher.nextWakeupAt()
    if (wakeupAt === this.#wakeupAt) return
    this.#disarm?.()
    this.#wakeupAt = wakeupAt
    this.#disarm = wakeupAt === undefined ? undefined : this.#clock.at(wakeupAt, () => this.#wakeUp())
  }

  #wakeUp(): void {
    this.#wakeupAt = undefined
    this.#apply(this.#dispatcher.onWakeup(this.#clock.now()))
  }
}

const nothing = (): void => {}

const NOTHING_SERVED: Measured = { cost: 0, ending: 'cancelled', firstTokenUs: undefined }
