import { WEIGHT_MIN } from '../../domain/tenant.ts'

/**
 * Who among siblings goes next? A share is one node of the fairness tree (an org, a tenant, a lane): its weight, its
 * parent, and the account that the order of its siblings keeps on it. One flat record for every order, so that the
 * scheduler's hot path touches one shape of object.
 *
 * An order of siblings (`Siblings`) is the small part in which deficit round robin, weighted fair queueing, the
 * virtual token counter and plain round robin differ; the tree around them is `hierarchy.ts`. Obligations: a share is entered at most once
 * before it is left; `first` may be asked at any time and changes no share's standing; a charge may come for a share
 * that is not active, because work goes on after the last ticket has left the queue.
 */
export class Share {
  readonly id: string
  weight: number
  /** Whether it has something that could be given a turn. */
  isActive = false
  /** Active, but what it has fits nowhere at the moment: it is not asked, and keeps its standing. */
  isAside = false

  /**
   * Deficit round robin: what it may still spend, as of round `asOf`. Token counter: service received per weight. Weighted
   * fair queueing: the start tag of its head.
   */
  account = 0
  /** Cost of its last turn. */
  turnCost = 0
  /** The round in which `account` was true. */
  asOf = 0
  /** What one round adds to the account; 0 before the first time. */
  quantum = 0
  /** The round in which it may next have a turn. */
  round = 0
  /** The list it stands in. */
  slot = 0
  /** Place among equals: whoever was filed first goes first. */
  sequence = 0
  heapIndex = -1
  previous: Share | undefined = undefined
  following: Share | undefined = undefined

  constructor(id: string, weight: number) {
    this.id = id
    this.weight = weight
  }

  /** Predicted cost of what it would be given a turn for; asked only by orders that look at heads (`rehead`). */
  headCost(): number {
    return 0
  }
}

/**
 * The weight that an order counts with. Settings and edits are held to the same bound; a sum of weights, or a record of
 * an older release, must not stop the turns of all others either.
 */
export const countedWeight = ({ weight }: Share): number => (weight > WEIGHT_MIN ? weight : WEIGHT_MIN)

export interface Siblings<S extends Share> {
  /** Shares that are active. */
  readonly size: number
  /** Of those, the ones that stand in the order. */
  readonly askedCount: number
  /** From here the share takes part. */
  enter(share: S): void
  leave(share: S): void
  /** What it has fits nowhere now: others go meanwhile, and it goes on earning its part. */
  pass(share: S): void
  /** It may be asked again, where its standing says. */
  recall(share: S): void
  /** Whose turn it is. */
  first(): S | undefined
  /** It took a turn that is expected to cost this much. */
  takeTurn(share: S, cost: number): void
  /** It used more (or, negative, less) than it was charged with. */
  charge(share: S, cost: number): void
  reweigh(share: S, weight: number): void
  /** Another piece of work is first in the share, perhaps of another cost. Only orders that look at heads have it. */
  rehead?(share: S): void
  /** An inactive share goes to other siblings, which adopt it. Absent where nothing is kept of one that is inactive. */
  disown?(share: S): void
  /** An inactive share comes from other siblings, owing them this much (≤ 0). */
  adopt(share: S, standing: number): void
  /** What a share could still spend before others are due, in cost; for views and tests. */
  standingOf(share: S): number
  /** Rounds of turns that it may have now; 0 or less while its turn has not come. Where rounds mean nothing, 1 or 0. */
  roundsOwedTo(share: S): number
  /** Turns of this cost that it may have now; the same where rounds mean nothing. */
  turnsOwedTo(share: S, cost: number): number
  /** What each sibling may be served per weight, times this share's weight, before this one is due; in cost. */
  debtOf(share: S): number
  assertInvariants(): void
}
