import { msToUs } from '../../src/base/clock.ts'
import { LiveClock } from '../../src/base/live-clock.ts'

/** A `server.shutdownDelayMs` that a HeldClock holds. */
export const HELD_DELAY_MS = 3_600_000

/** The time between readiness off and the first refused request ends when the test says so. */
export class HeldClock extends LiveClock {
  release = (): void => {}
  readonly #held = new Promise<void>((resolve) => {
    this.release = resolve
  })

  override sleep(durationUs: number): Promise<void> {
    return durationUs === msToUs(HELD_DELAY_MS) ? this.#held : super.sleep(durationUs)
  }
}
