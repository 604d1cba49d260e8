import type { Estimate } from '../../domain/plan.ts'
import { BookedRoom, beyondTokensOf } from './booked-room.ts'
import { contextTokensOf, type Load, prefillMilliOf, prefillTokensOf } from './ledger.ts'

/** What a turn in flight holds of a replica. */
export interface HeldTurn {
  readonly estimate: Estimate
  /** Its first token has come. */
  readonly hasBegun: boolean
  /** KV tokens held beyond what was likely. */
  readonly grownKvTokens: number
}

/** What some turns hold together. */
export class HeldTurns {
  count = 0
  readonly booked = new BookedRoom()
  contextTokens = 0
  prefillMilli = 0
  prefillTokens = 0
  engineUs = 0

  add({ estimate, hasBegun, grownKvTokens }: HeldTurn): void {
    this.count++
    this.booked.add(estimate, grownKvTokens)
    this.contextTokens += contextTokensOf(estimate) + beyondTokensOf(estimate, grownKvTokens)
    this.prefillMilli += prefillMilliOf(estimate)
    this.prefillTokens += hasBegun ? 0 : prefillTokensOf(estimate)
    this.engineUs += Math.ceil(estimate.engineUs)
  }
}

/**
 * How loaded would a replica look to a limit without some of the turns that it has? `part` is this gateway's part of the
 * replica, where `load` is what one holds divided by it (`part-load.ts`).
 */
export function relieved(load: Load, { count, ...off }: HeldTurns, part = 1): Load {
  return {
    sequences: load.sequences - Math.floor(count / part),
    kvTokens: load.kvTokens - off.booked.tokens / part,
    contextTokens: load.contextTokens - off.contextTokens / part,
    prefillMilliPerToken: load.prefillMilliPerToken - off.prefillMilli / part,
    prefillTokens: load.prefillTokens - off.prefillTokens / part,
    readTokens: load.readTokens,
    engineUs: load.engineUs - off.engineUs,
  }
}
