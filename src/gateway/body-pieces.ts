import type { Clock } from '../base/clock.ts'
import type { Exchange } from './exchange.ts'

/**
 * A body, piece by piece, as fast as it is taken: what is not taken waits in the client's socket. Ends early when the
 * client goes, or sends nothing for too long; `isWhole` says which it was.
 */
export interface PiecesOptions {
  readonly clock: Clock
  /** Time for which the next piece may be waited for. */
  readonly patienceUs: number
}

export class BodyPieces {
  isWhole = false
  readonly #exchange: Exchange
  readonly #options: PiecesOptions

  constructor(exchange: Exchange, options: PiecesOptions) {
    this.#exchange = exchange
    this.#options = options
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    const { req } = this.#exchange
    let wake = (): void => {}
    const onEvent = (): void => wake()
    for (const event of EVENTS) req.on(event, onEvent)
    try {
      for (;;) {
        const piece = req.read() as Buffer | null
        if (piece !== null) yield piece
        else if (req.readableEnded) {
          this.isWhole = true
          return
        } else if (req.destroyed || !(await this.#more((fn) => (wake = fn)))) return
      }
    } finally {
      for (const event of EVENTS) req.off(event, onEvent)
    }
  }

  /** False when nothing came in time. */
  #more(onWake: (wake: () => void) => void): Promise<boolean> {
    const { clock, patienceUs } = this.#options
    return new Promise((resolve) => {
      const forget = clock.at(clock.now() + patienceUs, () => resolve(false))
      onWake(() => {
        forget()
        resolve(true)
      })
    })
  }
}

const EVENTS = ['readable', 'end', 'close', 'error'] as const
