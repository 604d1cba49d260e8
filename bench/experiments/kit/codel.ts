import type { Dispatcher } from '../../../src/policy/dispatch/dispatcher.ts'
import type { Effect } from '../../../src/policy/dispatch/offer.ts'

/**
 * Classic CoDel (Nichols and Jacobson, 2012; RFC 8289) before a first-come-first-served queue, to compare with: when
 * everybody who leaves the queue has waited longer than `target` for a whole `interval`, the head is dropped, and then
 * again after interval ÷ √n. Target and interval are the RFC's own.
 */
const TARGET_US = 5_000
const INTERVAL_US = 100_000

export function installCodel(dispatcher: Dispatcher): void {
  const codel = new Codel({ intervalUs: INTERVAL_US, targetUs: TARGET_US })
  const waiting = new Map<string, number>()
  const forget = <E extends readonly Effect[]>(effects: E): E => {
    for (const { ticketId } of effects) waiting.delete(ticketId)
    return effects
  }
  const { offer, begin, release, withdraw, onWakeup } = bound(dispatcher)

  /** A place is about to be free: who goes next, and who is dropped instead? Map keeps order of arrival. */
  const dropHeads = (now: number): Effect[] => {
    const dropped: Effect[] = []
    for (const [ticketId, arrivedAt] of waiting) {
      if (!codel.shouldDrop(now, now - arrivedAt)) break
      dropped.push(...forget(withdraw(now, ticketId)))
      waiting.delete(ticketId)
      dropped.push({ kind: 'expired', ticketId, because: 'dropped by CoDel' })
    }
    if (waiting.size === 0) codel.empty()
    return dropped
  }

  dispatcher.offer = (now, asked) => {
    waiting.set(asked.ticketId, asked.arrivedAt)
    const offered = offer(now, asked)
    if (offered.kind === 'refused') waiting.delete(asked.ticketId)
    forget(offered.effects)
    return offered
  }
  dispatcher.begin = (now, leaseId) => [...dropHeads(now), ...forget(begin(now, leaseId))]
  dispatcher.release = (now, leaseId, measured) => [...dropHeads(now), ...forget(release(now, leaseId, measured))]
  dispatcher.onWakeup = (now) => forget(onWakeup(now))
  dispatcher.withdraw = (now, ticketId) => {
    waiting.delete(ticketId)
    return forget(withdraw(now, ticketId))
  }
}

function bound(dispatcher: Dispatcher) {
  return {
    offer: dispatcher.offer.bind(dispatcher),
    begin: dispatcher.begin.bind(dispatcher),
    release: dispatcher.release.bind(dispatcher),
    withdraw: dispatcher.withdraw.bind(dispatcher),
    onWakeup: dispatcher.onWakeup.bind(dispatcher),
  }
}

class Codel {
  readonly #options: { readonly intervalUs: number; readonly targetUs: number }
  /** When the wait will have been above the target for an interval; undefined while it is below. */
  #aboveUntil: number | undefined
  #isDropping = false
  #dropNextAt = 0
  #count = 0

  constructor(options: { readonly intervalUs: number; readonly targetUs: number }) {
    this.#options = options
  }

  empty(): void {
    this.#aboveUntil = undefined
    this.#isDropping = false
  }

  shouldDrop(now: number, waitedUs: number): boolean {
    const { intervalUs, targetUs } = this.#options
    if (waitedUs < targetUs) {
      this.empty()
      return false
    }
    this.#aboveUntil ??= now + intervalUs
    if (now < this.#aboveUntil) return false
    if (!this.#isDropping) {
      this.#isDropping = true
      // Where dropping ended a short while ago, it begins again near the rate that was needed.
      const isRecent = now - this.#dropNextAt < 16 * intervalUs
      this.#count = isRecent && this.#count > 2 ? this.#count - 2 : 1
      this.#dropNextAt = now + intervalUs / Math.sqrt(this.#count)
      return true
    }
    if (now < this.#dropNextAt) return false
    this.#count++
    this.#dropNextAt += intervalUs / Math.sqrt(this.#count)
    return true
  }
}
