/**
 * How hard pressed is this tenant?
 *
 * Pressure is what is predicted divided by what can be afforded: 0 with an idle pool, 1 where admission begins to
 * refuse, above 1 in overload. For a tenant it is its own predicted wait that counts, so a noisy neighbour presses
 * itself; for the platform it is the whole backlog in seconds against the same promise. Infinite predictions (no
 * replica is left) count as the ceiling, so that a mean over them stays a number.
 *
 * Example: first token predicted in 300 ms, affordable 450 ms (an SLO of 500 less a margin of 10 %): 0.67.
 */
export const PRESSURE_CEILING = 4

export function pressureOf(seen: { readonly predictedUs: number; readonly affordableUs: number }): number {
  if (seen.affordableUs <= 0) return PRESSURE_CEILING
  return Math.min(PRESSURE_CEILING, seen.predictedUs / seen.affordableUs)
}
