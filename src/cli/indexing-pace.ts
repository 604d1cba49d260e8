/** How fast does indexing go, and how long will the rest take? From counts seen at a few moments, the last ones most. */

/** Samples that are remembered: with looks every few seconds, the last minute. */
const SAMPLES_MAX = 20

export class IndexingPace {
  readonly #samples: Array<{ readonly atMs: number; readonly count: number }> = []

  observe(atMs: number, count: number): void {
    this.#samples.push({ atMs, count })
    if (this.#samples.length > SAMPLES_MAX) this.#samples.shift()
  }

  /** Passages a second; undefined before anything has moved. */
  get perSecond(): number | undefined {
    const [first] = this.#samples
    const last = this.#samples.at(-1)
    if (first === undefined || last === undefined || last.count <= first.count || last.atMs <= first.atMs)
      return undefined
    return (last.count - first.count) / ((last.atMs - first.atMs) / 1_000)
  }

  /** `120 of 402 passages, 5.3 a second, 54 s left`. */
  textFor(count: number, total: number): string {
    const pace = this.perSecond
    const counted = `${count} of ${total} passages`
    if (pace === undefined) return counted
    return `${counted}, ${pace.toFixed(1)} a second, ${spell((total - count) / pace)} left`
  }
}

function spell(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 120) return `${whole} s`
  const minutes = Math.ceil(whole / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`
}
