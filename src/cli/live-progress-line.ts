/** A progress line on a terminal: what runs, and how far it is. Elsewhere nothing is printed. */
const WIDTH = 30
/** Time between two repaints: ten a second look smooth, and a repaint costs more than a simulated second. */
const REPAINT_MS = 100

export class ProgressLine {
  readonly #stream: NodeJS.WriteStream
  #paintedMs = 0
  #running = ''
  #startedMs = 0
  #beganMs: number | undefined

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

  /** How many times faster than real time the simulated time has passed since `what` began. */
  speedOf(what: string, atS: number): string {
    const nowMs = performance.now()
    if (what !== this.#running) {
      this.#running = what
      this.#startedMs = nowMs
    }
    const tookS = (nowMs - this.#startedMs) / 1_000
    return tookS < 0.1 ? '' : `, ${timesRealTime(atS / tookS)}`
  }

  /** `, about 2 min left`, from the share of everything that was done since the first call; empty until that is known. */
  timeLeft(ratioOfAll: number): string {
    const nowMs = performance.now()
    this.#beganMs ??= nowMs
    const left = timeLeftText(ratioOfAll, (nowMs - this.#beganMs) / 1_000)
    return left === '' ? '' : `, ${left}`
  }

  clear(): void {
    if (this.#stream.isTTY) this.#stream.write('\r\u001b[2K')
  }
}

/** Time before the pace is known, in seconds: the first part of a run warms the code up and is slower. */
const PACE_KNOWN_S = 1

/** The time left at the pace so far, in words. Whole units, because the pace varies: "about 40 s left". */
export function timeLeftText(ratio: number, tookS: number): string {
  if (!(ratio > 0) || ratio >= 1 || tookS < PACE_KNOWN_S) return ''
  const leftS = (tookS * (1 - ratio)) / ratio
  if (leftS < 90) return `about ${Math.ceil(leftS)} s left`
  if (leftS < 90 * 60) return `about ${Math.round(leftS / 60)} min left`
  return `about ${Math.round(leftS / 3_600)} h left`
}

/** The speed of a simulation. One decimal below 10: a large fleet may be slower than real time. */
export const timesRealTime = (speedup: number): string =>
  `${speedup < 10 ? speedup.toFixed(1) : Math.round(speedup)} times real time`

/** Real time, for the speed that a command prints. */
export const wallMs = (): number => performance.now()
