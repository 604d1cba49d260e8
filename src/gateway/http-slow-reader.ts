import type { Cancellation } from '../base/cancellation.ts'
import type { Clock } from '../base/clock.ts'
import type { Exchange } from './exchange.ts'

/**
 * The reader has not taken what was written. Resolves when the kernel has all of it, and `last` too, which is written
 * here; a reader that takes nothing meanwhile is disconnected. Node says 'drain' at a fill of its own choice (64 kB);
 * below it the write itself says when it is through.
 */
export function untilTaken(
  { exchange, clock, cancellation, stalledReaderUs }: SlowReader,
  last?: string,
): Promise<void> {
  const { res } = exchange
  return new Promise((resolve) => {
    const done = (): void => {
      forget()
      res.off('drain', done)
      res.off('close', done)
      resolve()
    }
    const forget = clock.at(clock.now() + stalledReaderUs, () => {
      cancellation.cancel('reader-stalled')
      res.destroy()
      done()
    })
    res.on('close', done)
    if (last === undefined) res.on('drain', done)
    else res.write(last, done)
  })
}

interface SlowReader {
  readonly exchange: Exchange
  readonly clock: Clock
  readonly cancellation: Cancellation
  /** A reader that takes nothing for this long is disconnected. */
  readonly stalledReaderUs: number
}
