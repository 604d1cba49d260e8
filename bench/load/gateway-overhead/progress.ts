/** One line on a terminal that says how far the run is; silent anywhere else. */

/** Replaces the line; an empty text takes it away. */
export function showLine(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

export class Progress {
  readonly #secondsTotal: number
  readonly #begunAt = performance.now()
  #secondsDone = 0

  constructor(secondsTotal: number) {
    this.#secondsTotal = Math.max(secondsTotal, 1)
  }

  show(what: string): void {
    const ratio = Math.min(this.#secondsDone / this.#secondsTotal, 1)
    const elapsed = (performance.now() - this.#begunAt) / 1000
    // The plan counts load only; after the first pieces the pace so far is the better guess.
    const left = ratio > 0.05 ? (elapsed / ratio) * (1 - ratio) : this.#secondsTotal
    const time = left > 90 ? `${Math.round(left / 60)} min` : `${Math.round(left)} s`
    showLine(`${String(Math.round(ratio * 100)).padStart(3)} %  ${what}  (about ${time} left)`)
  }

  advance(seconds: number): void {
    this.#secondsDone += seconds
  }
}
