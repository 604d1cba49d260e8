import { assert } from '../base/assert.ts'
import type { CancelTimer, Clock, Instant } from '../base/clock.ts'
import type { Lease } from '../domain/fleet.ts'
import type { NoPlace } from '../domain/no-place.ts'
import type { Placement } from '../domain/placement.ts'
import type { PoolShare } from '../domain/pool-share.ts'
import type { CallOff, WasteOf } from '../policy/dispatch/call-off.ts'
import type { Dispatcher } from '../policy/dispatch/dispatcher.ts'
import type { ReplicaChange } from '../policy/dispatch/fleet-state.ts'
import type { Effect, Measured, Offer, Offered } from '../policy/dispatch/offer.ts'
import type { ReplicaFacts } from '../policy/dispatch/replica-room.ts'
import type { Gauges } from '../policy/limits/ledger.ts'
import type { Admitted, Attempt, Ticket } from './ticket.ts'

/**
 * Where tickets wait for their turn. The dispatcher decides; the turnstile turns its decisions into awaited promises,
 * arms the one timer that the dispatcher asks for, and withdraws a ticket whose client has gone. Nothing else in the
 * project calls the dispatcher's commands, and the turnstile keeps no book of its own: what waits is known there.
 *
 * A ticket that was granted a turn owns a lease from then on; the caller of `takeTurn` must give the lease back.
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

interface Place {
  /** The turn, when it was decided before `takeTurn` was called. */
  turn: Turn | undefined
  resolve: ((turn: Turn) => void) | undefined
  forgetCancel: () => void
  forgetReady: () => void
}

export class Turnstile {
  readonly #clock: Clock
  readonly #dispatcher: Dispatcher
  readonly #places = new Map<string, Place>()
  #wakeupAt: Instant | undefined
  #disarm: CancelTimer | undefined
  /** An online ticket that might have its turn now, and for which there is no room. */
  whenWaiting: (ticketId: string, promisedUs: number) => void = nothing

  constructor(clock: Clock, dispatcher: Dispatcher) {
    this.#clock = clock
    this.#dispatcher = dispatcher
  }

  /** What waits and what runs, over all pools; for people and tests. */
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

  /** The ticket joins its lane, or the reason why it may not is returned. */
  join(ticket: Ticket, offer: Offer): NoPlace | undefined {
    return this.#enter(ticket, offer, false)
  }

  /**
   * Joins the head of the lane once more, for another replica than the attempt's where there is another. With `readyAt`,
   * the ticket holds its place and has no turn before that instant.
   */
  rejoin({ admitted, lease, isCalledOff }: Attempt, readyAt?: Instant): NoPlace | undefined {
    const { ticket, offer, plan } = admitted
    const isReady = readyAt === undefined
    ticket.phase = 'waiting'
    // A replica whose turn was called off has done nothing wrong.
    const avoid = isCalledOff ? {} : { avoidReplicaId: lease.replica.id }
    admitted.offer = { ...offer, ...avoid, estimate: plan.estimate, isReady }
    const noPlace = this.#enter(ticket, admitted.offer, true)
    const place = this.#places.get(ticket.id)
    if (!isReady && place !== undefined && place.turn === undefined)
      place.forgetReady = this.#clock.at(readyAt, () => this.ready(admitted))
    return noPlace
  }

  /** From the queue of one pool to the head of its lane in another. A ticket that has its turn already stays. */
  move(admitted: Admitted, poolId: string): void {
    const { ticket } = admitted
    const place = this.#places.get(ticket.id)
    if (place === undefined || place.turn !== undefined) return
    this.#withdraw(ticket.id)
    admitted.sendTo(poolId)
    const offered = this.#dispatcher.offerAgain(this.#clock.now(), admitted.offer)
    this.#apply(offered.effects)
    if (offered.kind !== 'refused') return
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
    admitted.offer = { ...offer, estimate, isReady: true }
    this.#apply(this.#dispatcher.ready(this.#clock.now(), ticket.id, estimate))
    this.#tellWaiting(place, admitted.offer)
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

  /** The first token of the lease's answer has come: its replica has room for the next prompt. */
  begin(lease: Lease): void {
    this.#apply(this.#dispatcher.begin(this.#clock.now(), lease.id))
  }

  /** Output so far, told when it is more than was predicted: fairness charges the further tokens as they come. */
  progress(lease: Lease, outputTokens: number): void {
    this.#apply(this.#dispatcher.progress(this.#clock.now(), lease.id, outputTokens))
  }

  giveBack(lease: Lease, measured: Measured): void {
    this.#apply(this.#dispatcher.release(this.#clock.now(), lease.id, measured))
  }

  /** The offline leases that must go for this ticket to have its turn; the caller ends their attempts. */
  callOffFor(ticketId: string, wasteOf: WasteOf, tokensMax: number): CallOff | undefined {
    return this.#dispatcher.callOff(ticketId, wasteOf, tokensMax)
  }

  /** Frees whatever a ticket still holds here: a place in the queue, or a turn that was granted and not taken. */
  release(ticket: Ticket): void {
    const place = this.#places.get(ticket.id)
    if (place === undefined) return
    this.#forget(ticket.id, place)
    if (place.turn?.kind === 'granted') this.giveBack(place.turn.lease, NOTHING_SERVED)
    else if (place.turn === undefined) this.#withdraw(ticket.id)
  }

  addPool(poolId: string): void {
    this.#dispatcher.addPool(poolId)
  }

  /** The pool must be empty: nothing waits in it and nothing of it runs. */
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

  /** This gateway's part of a pool that several gateways share. */
  poolShared(poolId: string, share: PoolShare): void {
    this.#apply(this.#dispatcher.share(this.#clock.now(), poolId, share))
  }

  replicaReported(replicaId: string, gauges: Gauges): void {
    this.#apply(this.#dispatcher.report(this.#clock.now(), replicaId, gauges))
  }

  #enter(ticket: Ticket, offer: Offer, isAgain: boolean): NoPlace | undefined {
    const place: Place = { turn: undefined, resolve: undefined, forgetCancel: nothing, forgetReady: nothing }
    this.#places.set(ticket.id, place)
    // A ticket whose client has gone already takes its `cancelled` turn without joining the queue.
    if (ticket.cancellation.because !== undefined) {
      place.turn = { kind: 'cancelled', because: ticket.cancellation.because }
      return undefined
    }
    const now = this.#clock.now()
    const offered: Offered = isAgain ? this.#dispatcher.offerAgain(now, offer) : this.#dispatcher.offer(now, offer)
    this.#apply(offered.effects)
    if (offered.kind === 'refused') {
      this.#forget(ticket.id, place)
      return offered
    }
    // A turn granted at once leaves nothing to cancel here.
    if (place.turn === undefined) {
      place.forgetCancel = ticket.cancellation.onCancel((because) => this.#cancel(ticket.id, place, because))
    }
    this.#tellWaiting(place, offer)
    return undefined
  }

  #tellWaiting({ turn }: Place, { ticketId, tenant, band, isReady }: Offer): void {
    if (turn === undefined && isReady && band !== 'offline') this.whenWaiting(ticketId, tenant.slo.ttftUs)
  }

  /** The client has gone. A turn already granted stays granted: its lease goes back when the attempt ends. */
  #cancel(ticketId: string, place: Place, because: string): void {
    if (place.turn !== undefined) return
    this.#withdraw(ticketId)
    place.turn = { kind: 'cancelled', because }
    place.resolve?.(place.turn)
  }

  #withdraw(ticketId: string): void {
    this.#apply(this.#dispatcher.withdraw(this.#clock.now(), ticketId))
  }

  #apply(effects: readonly Effect[]): void {
    for (let i = 0; i < effects.length; i++) {
      const effect = effects[i] as Effect
      const place = this.#places.get(effect.ticketId)
      assert(place !== undefined && place.turn === undefined, 'the dispatcher speaks only of tickets that wait')
      place.turn = effect
      place.resolve?.(effect)
    }
    this.#arm()
  }

  #forget(ticketId: string, place: Place): void {
    place.forgetCancel()
    place.forgetReady()
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
