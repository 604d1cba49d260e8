import type { Cancellation } from '../base/cancellation.ts'

/**
 * Work that may take long, on the event loop that everybody shares. It pauses by itself: a generator that yields how
 * much it has done since its last pause, in characters of text or what costs as much. Whoever runs it decides whether to
 * let others go first. Called off, it is told `true` and may cut itself short; nobody wants its result any more.
 */
export type LongWork<T> = Generator<number, T, boolean>

export interface Run {
  /** Lets everything go on that waits for the event loop. Absent where time is virtual: there nobody waits. */
  readonly breathe: (() => Promise<void>) | undefined
  /** Short enough to be done at once. */
  readonly isShort: boolean
  readonly cancellation: Cancellation | undefined
}

/** A millisecond or two of ordinary text, ten of the worst. */
export const WORK_PER_BREATH = 1_024

export function runLongWork<T>(work: LongWork<T>, { breathe, isShort, cancellation }: Run): T | Promise<T> {
  if (breathe !== undefined && !isShort) return runBreathing(work, breathe, cancellation)
  for (;;) {
    const step = work.next(false)
    if (step.done === true) return step.value
  }
}

async function runBreathing<T>(
  work: LongWork<T>,
  breathe: () => Promise<void>,
  cancellation: Cancellation | undefined,
): Promise<T> {
  let done = 0
  for (;;) {
    const step = work.next(cancellation?.isCancelled === true)
    if (step.done === true) return step.value
    done += step.value
    if (done < WORK_PER_BREATH) continue
    done = 0
    await breathe()
  }
}
