import type { HeadOrder } from './ordered-lanes.ts'

/**
 * Which lane goes next, when whoever came first goes first? First come, first served over all tenants: what most
 * engines and gateways do, and the yardstick for unfairness. A tenant that sends twenty times as much gets twenty
 * times as much. Inside a lane bids still count; without bids this is plain arrival order.
 *
 * Worked example: heads that arrived at 10.0 s (heavy) and 10.2 s (light), 19 more of heavy before 10.2 s: light is
 * 21st.
 */
export const FIFO: HeadOrder = {
  rankOf: () => 0,
  keyOf: (lane) => lane.head()?.arrivedAt ?? Number.POSITIVE_INFINITY,
}
