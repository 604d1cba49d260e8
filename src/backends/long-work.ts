import type { Cancellation } from '../base/cancellation.ts'

/**
 * Work that may take long, on the event loop that all requests share. The work is a generator that pauses by itself and
 * yields how much it has done since its last pause, in characters of text or equal cost. The runner decides whether to
 * let other work run in between. When the work is cancelled it receives `true` and may stop early, because its result
 * is not needed.
 */
export type LongWork<T> = Generator<number, T, boolean>

export interface LongWorkOptions {
  /** Lets everything run that waits for the event loop. Absent in virtual time, where nothing waits. */
  readonly breathe: (() => Promise<void>) | undefined
  /** The work is short enough to be done without a pause. */
  readonly isShort: boolean
  readonly cancellation: Cancellation | undefined
}

/** Work between two pauses: a millisecond or two of ordinary text, ten of the worst. */
export const WORK_PER_BREATH = 1_024

export function runLongWork<T>(work: LongWork<T>, { breathe, isShort, cancellation }: LongWorkOptions): T | Promise<T> {
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
