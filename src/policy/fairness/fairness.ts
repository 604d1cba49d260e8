import type { WeightChange } from '../../domain/share-path.ts'
import type { Lane } from './lane.ts'

/**
 * Which lane goes next?
 *
 * The one interface behind which every order of turns stands, so that they can be compared on the same traffic and
 * chosen by name. The dispatcher tells an order which lanes have a head that could go (`enter`, `leave`), asks whose
 * turn it is (`next`), and reports every cost when it is predicted, exceeded or measured.
 *
 * An order does not know about room, readiness, deadlines or replicas: a lane whose head fits nowhere at the moment is
 * passed over (`pass`) until the dispatcher says that it might (`recall`); it is not asked, but it has not left, and what
 * it is owed grows. It never sees a true output length before the engine has told it (law L10).
 */
export interface Fairness {
  readonly name: FairnessName
  /**
   * Whether a turn is charged with predicted output at once, all or part of it, and trued up later. Otherwise it is charged with its
   * input, and with its output as that comes.
   */
  readonly isChargedAhead: boolean
  /** Gives a new lane its place in the order. Once, before anything else is said about it. */
  attach(lane: Lane): void
  /** Forgets a lane that has nothing queued and nothing in flight. False: it still owes, keep it. */
  detach(lane: Lane): boolean
  /** The lane has a head that may go. Called again whenever that head is another one. */
  enter(lane: Lane): void
  leave(lane: Lane): void
  /** The lane's head fits nowhere now. Until `recall` or `leave` it is not asked; its part goes on being counted. */
  pass(lane: Lane): void
  recall(lane: Lane): void
  next(): Lane | undefined
  takeTurn(lane: Lane, cost: number): void
  charge(lane: Lane, cost: number): void
  /**
   * Rounds of turns that it has missed, one for the present included; 0 or less while it is somebody else's turn. Of the
   * lane, its tenant and its org, the most that one of them has missed, provided that it is the turn of all three.
   */
  roundsOwedTo(lane: Lane): number
  /** The same in turns that cost so much. */
  turnsOwedTo(lane: Lane, cost: number): number
  /** What the lane, its tenant and its org have had ahead of those beside them: until it is made good, they wait. */
  debtOf(lane: Lane): Debt
  /** A weight was changed, or a tenant moved to another org. Nobody loses a place in a lane by it. */
  reweigh(change: WeightChange): void
  assertInvariants(): void
}

/** In cost, 0 or more. */
export interface Debt {
  readonly key: number
  readonly tenant: number
  readonly org: number
}

export const NO_DEBT: Debt = Object.freeze({ key: 0, tenant: 0, org: 0 })

export type FairnessName =
  | 'deficit-round-robin'
  | 'weighted-fair-queueing'
  | 'virtual-token-counter'
  | 'round-robin'
  | 'fifo'
  | 'strict-priority'
