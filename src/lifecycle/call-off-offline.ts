import { Cancellation } from '../base/cancellation.ts'
import type { Clock } from '../base/clock.ts'
import { canRepeat } from '../domain/request.ts'
import type { Policies } from './policies.ts'
import type { Ending } from './ports.ts'
import type { Relay } from './relay.ts'
import type { Attempt } from './ticket.ts'
import type { Turnstile } from './turnstile.ts'

/**
 * Offline attempts that run, and may be called off when an online ticket would wait. The policy chooses
 * (`policy/dispatch/call-off.ts`) within what may be wasted (`policy/limits/offline-waste.ts`); here its choice becomes the
 * end of an attempt. Only the attempt ends: its ticket goes back to the head of its lane, nobody pays for what was done,
 * and its client, who has seen nothing of the answer, sees only the next attempt's.
 *
 * A ticket gives way `CALL_OFFS_MAX` times at most: then it runs to its end. Bound of the map: the leases that are out. A
 * timer for each online ticket that waits, of `PATIENCE_US` at most.
 */
const CALL_OFFS_MAX = 3
/**
 * An online ticket waits this long, or this part of its promised first token, before anything is called off for it. Most
 * waits end sooner, when a prompt has been read: calling off at once used up what may be wasted on waits of a few
 * milliseconds, and helped the first token no more (`bench/experiments/offline-beside-online.ts`).
 */
const PATIENCE_US = 80_000
const PATIENCE_RATIO = 0.1

interface Run {
  readonly attempt: Attempt
  readonly relay: Relay
  readonly cancellation: Cancellation
  readonly forget: () => void
}

export class OfflineRuns {
  readonly #clock: Clock
  readonly #policies: Policies
  readonly #turnstile: Turnstile
  readonly #runs = new Map<number, Run>()

  constructor(clock: Clock, policies: Policies, turnstile: Turnstile) {
    this.#clock = clock
    this.#turnstile = turnstile
    this.#policies = policies
  }

  /** What calls the attempt off, whoever wants that; undefined for an attempt that only its ticket's end calls off. */
  begin(attempt: Attempt, relay: Relay): Cancellation | undefined {
    const { ticket, admitted, lease } = attempt
    const { request } = ticket
    if (request.band !== 'offline' || request.errand !== undefined || !canRepeat(request)) return undefined
    if (ticket.callOffs >= CALL_OFFS_MAX || admitted.offer.mayNotWait === true) return undefined
    const cancellation = new Cancellation()
    const forget = ticket.cancellation.onCancel((because) => cancellation.cancel(because))
    this.#runs.set(lease.id, { attempt, relay, cancellation, forget })
    return cancellation
  }

  over({ lease }: Attempt): void {
    this.#runs.get(lease.id)?.forget()
    this.#runs.delete(lease.id)
  }

  /** What an offline attempt has done earns what may be wasted. */
  count({ ticket, used }: Attempt, ending: Ending): void {
    if (ticket.request.band !== 'offline' || ending.kind !== 'finished' || used === undefined) return
    this.#policies.offlineWaste.done(used.promptTokens + used.outputTokens)
  }

  /** An online ticket waits: unless it has its turn soon, the youngest offline attempts whose room it needs are called off. */
  giveWayTo(ticketId: string, promisedUs: number): void {
    if (!this.#mayCallOff()) return
    const patienceUs = Math.min(PATIENCE_US, Math.floor(promisedUs * PATIENCE_RATIO))
    this.#clock.at(this.#clock.now() + patienceUs, () => this.#giveWay(ticketId))
  }

  #mayCallOff(): boolean {
    const { offlineWaste, mode } = this.#policies
    return this.#runs.size > 0 && offlineWaste.tokensMax > 0 && mode !== 'observe'
  }

  #giveWay(ticketId: string): void {
    if (!this.#mayCallOff()) return
    const { offlineWaste } = this.#policies
    const { tokensMax } = offlineWaste
    const choice = this.#turnstile.callOffFor(ticketId, (leaseId) => this.#wasteOf(leaseId), tokensMax)
    if (choice === undefined) return
    offlineWaste.waste(choice.tokens)
    for (const leaseId of choice.leaseIds) this.#callOff(leaseId)
  }

  #callOff(leaseId: number): void {
    const run = this.#runs.get(leaseId)
    if (run === undefined) return
    run.attempt.isCalledOff = true
    run.attempt.ticket.callOffs++
    run.cancellation.cancel('called-off')
  }

  /** At most what the engine can have done: the prompt, and the tokens seen or, of an answer in one piece, expected by now. */
  #wasteOf(leaseId: number): number | undefined {
    const run = this.#runs.get(leaseId)
    if (run === undefined || run.relay.hasStarted || run.cancellation.isCancelled) return undefined
    const { plan, ticket, grantedAt } = run.attempt
    const now = this.#clock.now()
    if (ticket.request.deadlineAt <= now) return undefined
    const { promptTokens, outputTokens, outputTokensHigh, engineUs } = plan.estimate
    const expected = ticket.request.isStreamed ? 0 : (outputTokens * (now - grantedAt)) / Math.max(1, engineUs)
    return Math.ceil(promptTokens + Math.max(ticket.outputTokens, Math.min(outputTokensHigh, expected)))
  }
}
