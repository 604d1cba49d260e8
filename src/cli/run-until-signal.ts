import { type Clock, type Instant, msToUs } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import type { Running } from '../base/running.ts'

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

/**
 * Starts something and lets it run. The first signal closes it gently, and the promise then gives the exit code; a
 * second one ends the process at once. We listen before it starts: whoever reads "listening" may signal right away.
 */
export async function runUntilSignal(
  start: () => Promise<Running>,
  source: SignalSource = process,
  clock: Clock = new LiveClock(),
): Promise<number> {
  let firstAt: Instant | undefined
  let stop = (): void => {}
  const stopped = new Promise<void>((resolve) => {
    stop = resolve
  })
  const listeners = Object.entries(SIGNAL_NUMBERS).map(([name, number]) => {
    const listener = () => {
      if (firstAt !== undefined && clock.now() - firstAt > SAME_SIGNAL_US) source.exit(128 + number)
      firstAt ??= clock.now()
      stop()
    }
    source.on(name as StopSignal, listener)
    return { signal: name as StopSignal, listener }
  })
  try {
    const running = await start()
    await stopped
    await running.close()
    return 0
  } finally {
    for (const { signal, listener } of listeners) source.off(signal, listener)
  }
}
