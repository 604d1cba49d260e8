import type { Instant } from '../../base/clock.ts'
import { SecondCloser } from '../../policy/cost/second-closer.ts'
import type { SecondReport } from '../../policy/cost/second-report.ts'
import type { TicketAccounts } from '../../policy/cost/ticket-accounts.ts'
import type { Journal } from '../ports.ts'
import { type IdleTerms, idleSharersOf, type SecondsDesk, watchFleet } from './seconds-desk.ts'

/** The only gateway owns the seconds of its replicas: it closes them itself, the one that runs at its end included. */
export class OwnSeconds implements SecondsDesk {
  readonly #terms: IdleTerms
  readonly #closer: SecondCloser
  isDone = false

  constructor(now: Instant, reporterId: string, journal: Journal, accounts: TicketAccounts, terms: IdleTerms) {
    this.#terms = terms
    this.#closer = new SecondCloser(now, {
      idleSharers: (poolId, used) => idleSharersOf(terms, poolId, used),
      onSecond: (closed) => journal.record(closed),
      onCharges: (at, report, charges) => accounts.charged(at, report, charges),
    })
    this.#closer.join(reporterId)
  }

  start(now: Instant): void {
    watchFleet(now, this.#closer, this.#terms.policies)
  }

  report(now: Instant, report: SecondReport): void {
    this.#closer.report(now, report)
  }

  tick(now: Instant): void {
    watchFleet(now, this.#closer, this.#terms.policies)
    this.#closer.closeDue(now)
  }

  finish(now: Instant): void {
    this.#closer.finish(now)
    this.isDone = true
  }

  abandon(): void {
    this.isDone = true
  }

  whenDone(): Promise<void> {
    return Promise.resolve()
  }

  view(): ReturnType<SecondsDesk['view']> {
    return this.#closer.view()
  }
}
