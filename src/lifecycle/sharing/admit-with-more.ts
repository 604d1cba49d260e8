import { type Admission, admit, type ShortAdmission } from '../admit.ts'
import type { Platform } from '../platform.ts'
import type { Ticket } from '../ticket.ts'

/**
 * May a request come in that is larger than this gateway's slice of its budget? The store of shared budgets is asked once, for
 * 20 ms at most, and then the decision is made again and is final. It is the only wait of a request for that store: whoever
 * fits into a slice never comes here. A refusal then says when the whole budget has room. A budget of money whose balance
 * is not known yet is waited for in the same way, for a second at most.
 */
export async function admitWithMore(
  platform: Platform,
  ticket: Ticket,
  { asking }: ShortAdmission,
): Promise<Exclude<Admission, ShortAdmission>> {
  const { slices, balances } = platform.world
  await Promise.all([slices?.fetch(asking), balances?.fetch(asking)])
  return admit(platform, ticket, true)
}
