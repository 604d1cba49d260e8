import { Rng } from '../base/rng.ts'

/**
 * Faults of the next request, for testing a router, a client or an alert against an engine that misbehaves. Faults are
 * drawn from the seed, so the same requests in the same order meet the same faults.
 */
export interface FaultOptions {
  /** Share of requests that are answered 500. */
  readonly failRatio: number
  /** Share of requests that are accepted and never answered. */
  readonly hangRatio: number
  /** After this many requests none is answered any more, while `/health` stays 200. */
  readonly hangAfter: number | undefined
  /** After this many requests the next one ends the process. */
  readonly crashAfter: number | undefined
}

export const NO_FAULTS: FaultOptions = { failRatio: 0, hangRatio: 0, hangAfter: undefined, crashAfter: undefined }

export type Fate = 'serve' | 'fail' | 'hang' | 'crash'

export class Faults {
  readonly #options: FaultOptions
  readonly #rng: Rng
  #requestCount = 0

  constructor(options: FaultOptions, seed: number) {
    this.#options = options
    this.#rng = Rng.stream(seed, 'faults')
  }

  nextFate(): Fate {
    const { failRatio, hangRatio, hangAfter, crashAfter } = this.#options
    const before = this.#requestCount++
    // Drawn for every request: switching one fault on must not move the others.
    const draw = this.#rng.next()
    if (crashAfter !== undefined && before >= crashAfter) return 'crash'
    if (hangAfter !== undefined && before >= hangAfter) return 'hang'
    if (draw < failRatio) return 'fail'
    return draw < failRatio + hangRatio ? 'hang' : 'serve'
  }
}

export function describeFaults({ failRatio, hangRatio, hangAfter, crashAfter }: FaultOptions): string[] {
  const percent = (ratio: number): string => `${Math.round(ratio * 1_000) / 10} %`
  return [
    ...(failRatio > 0 ? [`${percent(failRatio)} of requests fail`] : []),
    ...(hangRatio > 0 ? [`${percent(hangRatio)} of requests hang`] : []),
    ...(hangAfter === undefined ? [] : [`hangs after ${hangAfter} requests`]),
    ...(crashAfter === undefined ? [] : [`crashes after ${crashAfter} requests`]),
  ]
}
