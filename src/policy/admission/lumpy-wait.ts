import type { Patience } from './feasibility.ts'

/**
 * Does room come back in few large pieces?
 *
 * A queue before engines that begin twenty answers a second moves evenly: its mean is nearly what every ticket waits, and
 * what scatter there is calibration measures as a ratio and keeps a margin for (`calibration.ts`). Where answers last a
 * minute and room comes back when one of them ends, once a second or less, the next piece may come at once or in three
 * seconds, however well the mean is known: if pieces come at random, the 97th percentile of such a wait is five times its
 * median. A margin learned from that is the widest there is, and refuses whoever would wait for a single piece.
 *
 * So a lumpy wait is judged by its mean and the margin of other tickets, and teaches calibration nothing. The tickets
 * that wait so and are late are few: only those wait at all who find no room.
 *
 * Worked example: a first token is promised within 2 s. Room comes back every 600 ms: lumpy. Every 40 ms: not.
 */
export const LUMPY_WAIT_DEFAULTS = {
  /** Time of one piece, of the promised first token, from which a wait is lumpy: below, twenty pieces even out. */
  pieceRatio: 0.05,
}

export function isLumpy(releaseUs: number | undefined, { ttftUs }: Patience): boolean {
  return releaseUs !== undefined && releaseUs >= LUMPY_WAIT_DEFAULTS.pieceRatio * ttftUs
}
