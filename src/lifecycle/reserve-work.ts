import type { Refusal } from '../domain/outcome.ts'
import type { RateLimitView, Reservation } from '../policy/budgets/budgets.ts'
import { FREE } from '../policy/money/price-list.ts'
import type { Platform } from './platform.ts'
import type { WorkBudgets, WorkHold, WorkPayer } from './retrieval-ports.ts'
import { spendOf } from './spending.ts'

/**
 * May this caller spend this on something that is no ticket: corpora and files?
 *
 * The budgets are the tickets' own, so that a tenant has one allowance and not one for each kind of request. A hold is
 * reserved before the work begins and ends exactly once. Its size may change when the work is better known: everything
 * goes back first and is then taken anew, in the same instant, so that no other request can come in between.
 *
 * Deliberately not: no ticket, no turn, no plan. The store's own lanes decide the order.
 *
 * Laws: L4, as for tickets. In observe-only mode nothing is refused, and work over the budget holds nothing.
 *
 * Example: a body of 40,000 bytes holds 1 request and 10,000 tokens while it is read; its texts prove to have 9,200
 * tokens, so 800 go back; the documents are stored, and 9,200 are spent.
 */
export class PlatformWorkBudgets implements WorkBudgets {
  readonly #platform: Platform

  constructor(platform: Platform) {
    this.#platform = platform
  }

  reserve(payer: WorkPayer, tokens: number): WorkHold | Refusal {
    const platform = this.#platform
    let held: Reservation | undefined
    const take = (wanted: number): Refusal | undefined => {
      const { policies, world } = platform
      const now = world.clock.now()
      const { scopes } = policies.standings.of(payer)
      const refusal = policies.budgets.refusalFor(now, scopes, wanted, spendOf(FREE, wanted, 0))
      if (refusal === undefined) held = policies.budgets.reserve(now, scopes, wanted, spendOf(FREE, wanted, 0))
      // Work does not wait for the store of shared budgets; when its client comes back, the store may have sent more.
      else if (world.slices !== undefined) policies.budgets.askForMore(now, scopes, wanted)
      return policies.mode === 'enforce' ? refusal : undefined
    }
    const giveBack = (): void => {
      if (held !== undefined) platform.policies.budgets.refund(platform.world.clock.now(), held)
      held = undefined
    }
    const refusal = take(tokens)
    if (refusal !== undefined) return refusal
    return {
      kind: 'held',
      resize(wanted) {
        giveBack()
        return take(wanted)
      },
      settle() {
        if (held !== undefined)
          platform.policies.budgets.settle(platform.world.clock.now(), held, held.tokens, held.spend)
        held = undefined
      },
      refund: giveBack,
    }
  }

  view(payer: WorkPayer): RateLimitView {
    return this.#platform.rateLimits(payer)
  }
}
