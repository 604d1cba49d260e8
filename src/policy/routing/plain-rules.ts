import type { RoomView } from './room-view.ts'

/**
 * How do others choose a replica? The rules that most balancers have, to compare ours with (`routing.rule`): in turn,
 * fewest requests in flight, least predicted work in flight. They look at nothing else, so nothing is learned for them,
 * and no plan counts on a prefix that is held somewhere.
 *
 * Deliberately not: no weights, no randomness. Ties go to the replica that was added first, as everywhere.
 *
 * Example: replicas a, b, c with 3, 1 and 2 requests. In turn after b: c. Fewest: b.
 */
export const ROUTING_RULES = ['soonest-first-token', 'least-work', 'fewest-requests', 'round-robin'] as const

export type RoutingRule = (typeof ROUTING_RULES)[number]

export interface PlainRule {
  readonly because: string
  choose<R extends RoomView>(rooms: readonly R[]): R
}

/** Undefined for our own rule. */
export function makePlainRule(rule: RoutingRule): PlainRule | undefined {
  switch (rule) {
    case 'soonest-first-token':
      return undefined
    case 'least-work':
      return {
        because: 'least predicted work in flight',
        choose: (rooms) => least(rooms, ({ ledger }) => ledger.engineUs),
      }
    case 'fewest-requests':
      return { because: 'fewest requests in flight', choose: (rooms) => least(rooms, ({ ledger }) => ledger.sequences) }
    case 'round-robin':
      return new InTurn()
  }
}

function least<R extends RoomView>(rooms: readonly R[], of: (room: R) => number): R {
  let best = rooms[0] as R
  for (const room of rooms) {
    const difference = of(room) - of(best)
    if (difference < 0 || (difference === 0 && room.ordinal < best.ordinal)) best = room
  }
  return best
}

/** The next of those with room, in the order in which they were added. */
class InTurn implements PlainRule {
  readonly because = 'its turn among the replicas with room'
  #last = -1

  choose<R extends RoomView>(rooms: readonly R[]): R {
    let first = rooms[0] as R
    let next: R | undefined
    for (const room of rooms) {
      if (room.ordinal < first.ordinal) first = room
      if (room.ordinal > this.#last && (next === undefined || room.ordinal < next.ordinal)) next = room
    }
    const chosen = next ?? first
    this.#last = chosen.ordinal
    return chosen
  }
}
