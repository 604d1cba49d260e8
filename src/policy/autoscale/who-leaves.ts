/**
 * Which replicas go when there are too many?
 *
 * First those that nothing of worth is lost with: replicas that hold no hot beginning of prompts alone; among these the
 * emptiest, then the youngest. A replica that alone holds hot beginnings goes only when everybody does so: then the one
 * that holds least of them, because a pool that must shrink loses some cache anyhow.
 *
 * Pure; the caller counts what is hot (`routing/prefix-index.ts`). Example: a holds 3 turns, b none, c none and alone has
 * a system prompt: b goes first, then a, then c.
 */
export interface Leaver {
  readonly id: string
  /** Turns that run there, of all gateways. */
  readonly heldCount: number
  /** Hot blocks that no other replica holds. */
  readonly soleHotBlocks: number
  /** Its place in the pool's list: later ones are younger. */
  readonly place: number
}

export function whoLeaves(replicas: readonly Leaver[], count: number): readonly Leaver[] {
  const inOrder = replicas.toSorted(
    (a, b) =>
      Number(a.soleHotBlocks > 0) - Number(b.soleHotBlocks > 0) ||
      (a.soleHotBlocks > 0 ? a.soleHotBlocks - b.soleHotBlocks : 0) ||
      a.heldCount - b.heldCount ||
      b.place - a.place,
  )
  return inOrder.slice(0, Math.max(0, count))
}
