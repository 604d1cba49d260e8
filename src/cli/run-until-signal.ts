import { type Clock, type Instant, msToUs } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import type { Running } from '../main/running.ts'

type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** What we need of `process`; a test brings its own. */
export interface SignalSource {
  on(signal: StopSignal, listener: () => void): unknown
  off(signal: StopSignal, listener: () => void): unknown
  exit(code: number): void
}

const SIGNAL_NUMBERS: Readonly<Record<StopSignal, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }

/**
 * One Ctrl-C arrives up to three times: from the terminal, which signals every process of the group, from npm, which
 * forwards what it got, and from our own launcher, which does too. Nobody presses twice within a fifth of a second.
 */
const SAME_SIGNAL_US = msToUs(200)

/** The first signal closes gently and the returned promise gives the exit code; a second one ends the process at once. */
export function runUntilSignal(
  running: Running,
  source: SignalSource = process,
  clock: Clock = new LiveClock(),
): Promise<number> {
  return new Promise((resolve, reject) => {
    let firstAt: Instant | undefined
    const listeners = Object.entries(SIGNAL_NUMBERS).map(([name, number]) => {
      const signal = name as StopSignal
      const listener = () => {
        if (firstAt === undefined) {
          firstAt = clock.now()
          running
            .close()
            .then(() => resolve(0), reject)
            .finally(forget)
        } else if (clock.now() - firstAt > SAME_SIGNAL_US) {
          source.exit(128 + number)
        }
      }
      source.on(signal, listener)
      return { signal, listener }
    })
    const forget = () => {
      for (const { signal, listener } of listeners) source.off(signal, listener)
    }
  })
}
