import { US_PER_MS } from '../../base/clock.ts'
import type { CostClosed } from '../../domain/cost-entry.ts'
import type { TicketCost } from '../../domain/ledger.ts'

/** From the journal's words for a ticket's final cost to the ledger's. */

/** Tokens of a block of KV memory, as most engines have them: the unit in which memory over time is told. */
const KV_BLOCK_TOKENS = 16

/** The final cost of a ticket as a line of the ledger has it. */
export function ticketCostOf({ costNano, batchSavedNano, prefixSavedNano, time }: CostClosed): TicketCost {
  return {
    costNano,
    prefillUs: Math.round(time.prefillUs),
    decodeUs: Math.round(time.decodeUs),
    kvBlockMs: Math.round(time.kvTokenUs / KV_BLOCK_TOKENS / US_PER_MS),
    batchingSavedNano: batchSavedNano,
    cacheSavedNano: prefixSavedNano,
  }
}
