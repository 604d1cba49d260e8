/** How far a long comparison is, in one line: a bar, the count, what runs now and how long it may still take. */
const WIDTH = 24

export class ProgressBar {
  readonly #total: number
  readonly #show: (line: string) => void
  readonly #nowMs: () => number
  readonly #startedMs: number
  #done = 0

  constructor(total: number, show: (line: string) => void, nowMs = () => performance.now()) {
    this.#total = total
    this.#show = show
    this.#nowMs = nowMs
    this.#startedMs = nowMs()
  }

  /** The next piece of work begins. */
  step(what: string): void {
    const filled = Math.floor((WIDTH * this.#done) / this.#total)
    const bar = `${'#'.repeat(filled)}${'-'.repeat(WIDTH - filled)}`
    this.#show(`[${bar}] ${this.#done}/${this.#total}${this.#left()} ${what}`)
    this.#done++
  }

  #left(): string {
    if (this.#done === 0) return ''
    const leftS = ((this.#nowMs() - this.#startedMs) / 1_000 / this.#done) * (this.#total - this.#done)
    return leftS < 90 ? `, ${Math.ceil(leftS)} s left:` : `, ${Math.ceil(leftS / 60)} min left:`
  }
}
