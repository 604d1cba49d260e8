import type { Cancellation } from '../base/cancellation.ts'
import type { Clock } from '../base/clock.ts'
import type { Exchange } from './exchange.ts'

/** The socket is full. Resolves when the reader has caught up; a reader that takes nothing is disconnected. */
export function untilDrained({ exchange, clock, cancellation, stalledReaderUs }: SlowReader): Promise<void> {
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
    res.on('drain', done)
    res.on('close', done)
  })
}

interface SlowReader {
  readonly exchange: Exchange
  readonly clock: Clock
  readonly cancellation: Cancellation
  /** A reader that takes nothing for this long is disconnected. */
  readonly stalledReaderUs: number
}
