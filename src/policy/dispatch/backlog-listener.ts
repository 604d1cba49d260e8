import type { SharePath, WeightChange } from '../../domain/share-path.ts'
import type { Band } from '../../domain/tenant.ts'

/**
 * Who else must know what waits? The dispatcher's book is the only one of the queue; a meter that needs the same facts in
 * another form (`policy/admission/predicted-wait.ts`) listens to it. The book calls the listener inside the call that
 * changes the queue, before any effect is returned, so the two never disagree.
 *
 * A ticket is counted with one `QueuedPart` from `joined` to `granted` or `left`. A ticket whose estimate changes, or
 * that moves to another pool, leaves with the old part and joins with a new one. A part is taken out exactly as it was
 * put in, so sums kept by a listener come back to where they were.
 *
 * Example: a ticket of cost 500 joins (+500), its passages are found and make it 800 (−500, +800), it gets its turn
 * (−800), and its first token comes (`begun`, 800 worked off).
 */
export interface BacklogListener {
  joined(now: number, part: QueuedPart): void
  /** The ticket left the queue because it got its turn. */
  granted(now: number, part: QueuedPart): void
  /** The ticket left without a turn: withdrawn, expired, evicted or refused; or it is about to be counted anew. */
  left(part: QueuedPart): void
  /** The first token of a ticket that was granted has come. */
  begun(now: number, part: QueuedPart, turn: { readonly grantedAt: number; readonly replicaCount: number }): void
  /** A ticket that was granted has given its turn back, however that ended. */
  ended(now: number, part: QueuedPart): void
  /** A weight changed in a pool, for what waits too: the parts put in count by it from now on, and are taken out as before. */
  reweighed(poolId: string, change: WeightChange): void
}

/** What one ticket adds to its pool's backlog. */
export interface QueuedPart {
  readonly poolId: string
  readonly share: SharePath
  readonly band: Band
  /** Weighted tokens on the average, the unit in which waits are predicted. */
  readonly cost: number
  /** Microseconds of a full engine's time on the average; undefined where the engine's steps are not known. */
  readonly shareUs: number | undefined
}
