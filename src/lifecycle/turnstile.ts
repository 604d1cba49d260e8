import { assert } from '../base/assert.ts'
import type { CancelTimer, Clock, Instant } from '../base/clock.ts'
import type { Lease } from '../domain/fleet.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { DispatchEffect, Dispatcher, Offer } from '../policy/dispatch/dispatcher.ts'
import type { Ticket } from './ticket.ts'

/**
 * Where tickets wait for their turn. The dispatcher decides; this turns its decisions into awaited promises, arms the
 * one timer that it asks for, and takes a ticket out when its client has gone. Nothing else in the project does.
 *
 * A ticket that was granted a turn owns a lease from then on; whoever awaits `takeTurn` must give it back.
 */
export type Turn =
  | { readonly kind: 'granted'; readonly lease: Lease }
  | { readonly kind: 'expired' | 'evicted'; readonly refusal: Refusal }
  | { readonly kind: 'cancelled'; readonly because: string }

interface Place {
  readonly offer: Offer
  /** Decided before anybody asked. */
  turn: Turn | undefined
  resolve: ((turn: Turn) => void) | undefined
  forgetCancel: () => void
}

export class Turnstile {
  readonly #clock: Clock
  readonly #dispatcher: Dispatcher
  readonly #places = new Map<string, Place>()
  #wakeupAt: Instant | undefined
  #disarm: CancelTimer | undefined

  constructor(clock: Clock, dispatcher: Dispatcher) {
    this.#clock = clock
    this.#dispatcher = dispatcher
  }

  /** Joins the queue, or says why it may not. */
  join(ticket: Ticket, offer: Offer): Refusal | undefined {
    ticket.offer = offer
    const place = this.#place(ticket, offer)
    // Its client has gone already: it takes its `cancelled` turn without ever having been in the queue.
    if (place.turn !== undefined) return undefined
    const joined = this.#dispatcher.offer(this.#clock.now(), offer)
    if ('refusal' in joined) {
      this.#forget(ticket.id, place)
      return joined.refusal
    }
    this.#apply(joined.effects)
    return undefined
  }

  /** Once more, at the head of the queue. */
  rejoin(ticket: Ticket): void {
    const offer = ticket.offer
    assert(offer !== undefined, 'a ticket that is tried again was offered before')
    const place = this.#place(ticket, offer)
    if (place.turn === undefined) this.#apply(this.#dispatcher.offerAgain(this.#clock.now(), offer))
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

  giveBack(lease: Lease): void {
    this.#apply(this.#dispatcher.release(this.#clock.now(), lease))
  }

  /** Frees whatever a ticket still holds here: a place in the queue, or a turn that nobody came to take. */
  release(ticket: Ticket): void {
    const place = this.#places.get(ticket.id)
    if (place === undefined) return
    this.#forget(ticket.id, place)
    if (place.turn?.kind === 'granted') this.giveBack(place.turn.lease)
    else if (place.turn === undefined) this.#dispatcher.withdraw(this.#clock.now(), ticket.id, place.offer.poolId)
  }

  replicaChanged(replicaId: string, isReady: boolean): void {
    this.#apply(this.#dispatcher.replicaChanged(this.#clock.now(), replicaId, isReady))
  }

  view(): ReturnType<Dispatcher['view']> {
    return this.#dispatcher.view()
  }

  #place(ticket: Ticket, offer: Offer): Place {
    const place: Place = { offer, turn: undefined, resolve: undefined, forgetCancel: () => {} }
    this.#places.set(ticket.id, place)
    place.forgetCancel = ticket.cancellation.onCancel((because) => this.#cancel(ticket.id, place, because))
    return place
  }

  /** The client has gone. A turn already granted stays granted: its lease goes back when the backend says so. */
  #cancel(ticketId: string, place: Place, because: string): void {
    if (place.turn !== undefined) return
    this.#dispatcher.withdraw(this.#clock.now(), ticketId, place.offer.poolId)
    this.#decide(place, { kind: 'cancelled', because })
    this.#arm()
  }

  #apply(effects: readonly DispatchEffect[]): void {
    for (const effect of effects) {
      const place = this.#places.get(effect.ticketId)
      assert(place !== undefined, 'the dispatcher speaks only of tickets that wait')
      this.#decide(place, effect)
    }
    this.#arm()
  }

  #decide(place: Place, turn: Turn): void {
    place.turn = turn
    place.resolve?.(turn)
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
