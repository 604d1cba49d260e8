/** One line that moves, on a terminal only: what runs, how far it is. Elsewhere it says nothing. */
const WIDTH = 30
/** Repainting costs more than a simulated second: ten times a second is enough for an eye. */
const REPAINT_MS = 100

export class ProgressLine {
  readonly #stream: NodeJS.WriteStream
  #paintedMs = 0
  #running = ''
  #startedMs = 0

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
  }

  show(what: string, ratio: number, detail: string): void {
    if (!this.#stream.isTTY) return
    const nowMs = performance.now()
    if (ratio < 1 && nowMs - this.#paintedMs < REPAINT_MS) return
    this.#paintedMs = nowMs
    const filled = Math.round(WIDTH * Math.max(0, Math.min(1, ratio)))
    this.#stream.write(`\r\u001b[2K${what} ${'█'.repeat(filled)}${'░'.repeat(WIDTH - filled)} ${detail}`)
  }

  /** How much faster than the real one simulated time has passed, since `what` began. */
  speedOf(what: string, atS: number): string {
    const nowMs = performance.now()
    if (what !== this.#running) {
      this.#running = what
      this.#startedMs = nowMs
    }
    const tookS = (nowMs - this.#startedMs) / 1_000
    return tookS < 0.1 ? '' : `, ${timesRealTime(atS / tookS)}`
  }

  clear(): void {
    if (this.#stream.isTTY) this.#stream.write('\r\u001b[2K')
  }
}

/** A fleet of a thousand is slower than the real one: that must not read as nothing. */
export const timesRealTime = (speedup: number): string =>
  `${speedup < 10 ? speedup.toFixed(1) : Math.round(speedup)} times real time`

/** Real time, for what a command tells of its own speed. */
export const wallMs = (): number => performance.now()
