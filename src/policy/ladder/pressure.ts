/**
 * How hard pressed is this tenant?
 *
 * Pressure is the predicted wait divided by the wait that can be afforded (the promise less margin and service): 0
 * with an idle pool, 1 where admission begins to refuse, above 1 in overload. For a tenant it is its own predicted
 * wait that counts, so a noisy neighbour presses itself; for the platform it is the whole backlog in seconds against
 * the same promise. Only the wait counts: a long answer close to its deadline is no sign of load. Infinite waits (no
 * replica is left) count as the ceiling, so that a mean over them stays a number.
 *
 * Example: wait 200 ms, prefill 150 ms, SLO 500 ms less a margin of 10 %: 200 ÷ (450 − 150) = 0.67.
 */
export const PRESSURE_CEILING = 4

export function pressureOf(seen: { readonly predictedUs: number; readonly affordableUs: number }): number {
  if (seen.affordableUs <= 0) return PRESSURE_CEILING
  return Math.min(PRESSURE_CEILING, seen.predictedUs / seen.affordableUs)
}
