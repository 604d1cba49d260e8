import { type Clock, type Instant, msToUs } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import type { Running } from '../base/running.ts'

export type StopSignal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

export const STOP_SIGNALS: readonly StopSignal[] = ['SIGHUP', 'SIGINT', 'SIGTERM']

/** The part of `process` that is used here; a test brings its own. */
export interface SignalSource {
  on(signal: StopSignal, listener: () => void): unknown
  off(signal: StopSignal, listener: () => void): unknown
  exit(code: number): void
}

const SIGNAL_NUMBERS: Readonly<Record<StopSignal, number>> = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }

/**
 * Signals within this time count as one. One Ctrl-C arrives up to three times: from the terminal, which signals every
 * process of the group, and forwarded by npm and by our own launcher. A person takes longer to press twice.
 */
const SAME_SIGNAL_US = msToUs(200)

/**
 * Starts a server and runs it until a signal. The first signal closes the server gently, and the promise then resolves
 * with the exit code; a second signal ends the process at once. Signals are heard before the server starts, because a
 * reader of "listening" may send one right away.
 */
export async function runUntilSignal(
  start: () => Promise<Running>,
  source: SignalSource = process,
  clock: Clock = new LiveClock(),
  stopSignals: readonly StopSignal[] = STOP_SIGNALS,
): Promise<number> {
  let firstAt: Instant | undefined
  let stop = (): void => {}
  const stopped = new Promise<void>((resolve) => {
    stop = resolve
  })
  const listeners = stopSignals.map((signal) => {
    const listener = () => {
      if (firstAt !== undefined && clock.now() - firstAt > SAME_SIGNAL_US) source.exit(128 + SIGNAL_NUMBERS[signal])
      firstAt ??= clock.now()
      stop()
    }
    source.on(signal, listener)
    return { signal, listener }
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
