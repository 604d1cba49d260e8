import type { Lane } from './lane.ts'

/**
 * Which lane goes next, when whoever came first goes first? First come, first served over all tenants: what most
 * engines and gateways do, and the yardstick for unfairness. A tenant that sends twenty times as much gets twenty
 * times as much. Inside a lane bids still count; without bids this is plain arrival order.
 *
 * Worked example: heads that arrived at 10.0 s (heavy) and 10.2 s (light), 19 more of heavy before 10.2 s: light is
 * 21st.
 */
export function isEarlierHead(a: Lane, b: Lane): boolean {
  const first = a.head()
  const second = b.head()
  if (first === undefined || second === undefined) return first !== undefined
  if (first.arrivedAt !== second.arrivedAt) return first.arrivedAt < second.arrivedAt
  return first.sequence < second.sequence
}
