import { ChurningMap } from '../../base/churning-map.ts'
import type { Instant } from '../../base/clock.ts'
import type { CostClosed } from '../../domain/cost-entry.ts'
import type { AttemptSecond, ReplicaCharges, SecondReport, TenantCredit, TicketEnd } from './second-report.ts'
import { TicketAccount } from './ticket-account.ts'

/**
 * What have this gateway's tickets cost so far? The owner of the seconds says what each row of a report was charged with;
 * sums of live tickets are kept here, at the gateway that has the tickets, so that another owner can go on where one ended.
 *
 * What turns out to have been for nothing is answered as a credit, which the owner moves to `waste`. Bound: ACCOUNTS_MAX
 * tickets; the time of one beyond them goes to `late`.
 */
export interface TicketAccountsOptions {
  readonly onTicket: (closed: CostClosed) => void
  readonly accountsMax?: number
}

/** Tickets in flight, and those that ended in the last seconds. */
const ACCOUNTS_MAX = 131_072

export class TicketAccounts {
  readonly #options: TicketAccountsOptions
  readonly #accountsMax: number
  readonly #accounts = new ChurningMap<string, TicketAccount>()

  constructor(options: TicketAccountsOptions) {
    this.#options = options
    this.#accountsMax = options.accountsMax ?? ACCOUNTS_MAX
  }

  get size(): number {
    return this.#accounts.size
  }

  /** A report's second was closed with these charges; empty when it came too late. Answers what goes back to tenants. */
  charged(now: Instant, report: SecondReport, charges: readonly ReplicaCharges[]): TenantCredit[] {
    const credits: TenantCredit[] = []
    for (const part of charges) {
      const rows = report.replicas.find(({ replicaId }) => replicaId === part.replicaId)?.rows ?? []
      for (const [i, row] of rows.entries()) {
        const money = { usedNano: part.usedNano[i] ?? 0, againNano: part.againNano[i] ?? 0 }
        const account = this.#accountOf(row)
        if (account !== undefined) account.charge(row, money, part)
        else if (!row.isErrand) credits.push({ tenantId: row.tenantId, nano: money.usedNano, line: 'late' })
      }
    }
    for (const { ticketId, attempt } of report.wasted) {
      const account = this.#accounts.get(ticketId)
      const nano = account?.waste(attempt) ?? 0
      if (account !== undefined && nano !== 0) credits.push({ tenantId: account.tenantId, nano, line: 'waste' })
    }
    for (const ticket of report.ended) this.#end(now, ticket)
    return credits
  }

  #accountOf(row: AttemptSecond): TicketAccount | undefined {
    let account = this.#accounts.get(row.ticketId)
    if (account === undefined && this.#accounts.size < this.#accountsMax) {
      account = new TicketAccount(row)
      this.#accounts.set(row.ticketId, account)
    }
    return account
  }

  #end(now: Instant, ticket: TicketEnd): void {
    const { ticketId } = ticket
    const account = this.#accounts.get(ticketId) ?? new TicketAccount(ticket)
    this.#accounts.delete(ticketId)
    this.#options.onTicket(account.close(now, ticketId))
  }
}
