/**
 * Checkpoints on their way to one place outside. A place that is away is tried again, more and more seldom; what waits is
 * bounded, and the oldest goes first, because every checkpoint says all that those before it said. Nothing waits for a
 * sink, and nothing is refused because of one.
 */
export interface CheckpointSink {
  /** For metrics and messages. */
  readonly name: string
  /** Resolves when the place has it; rejects with the reason. Ends within a bound of its own. */
  send(note: string): Promise<void>
}

export interface SinkView {
  readonly name: string
  readonly sent: number
  readonly failed: number
  readonly dropped: number
  readonly waiting: number
  readonly isAway: boolean
}

export interface SinkQueueOptions {
  readonly sink: CheckpointSink
  readonly later: (ms: number, run: () => void) => () => void
  readonly complain: (problem: string) => void
}

const WAITING_MAX = 64
const PAUSE_MS_MIN = 1_000
const PAUSE_MS_MAX = 60_000

export class SinkQueue {
  readonly #options: SinkQueueOptions
  readonly #waiting: string[] = []
  #sending: Promise<void> | undefined
  #cancelPause: (() => void) | undefined
  #pauseMs = 0
  #sent = 0
  #failed = 0
  #dropped = 0
  #isClosed = false

  constructor(options: SinkQueueOptions) {
    this.#options = options
  }

  offer(note: string): void {
    this.#waiting.push(note)
    if (this.#waiting.length > WAITING_MAX) {
      this.#waiting.shift()
      this.#dropped++
    }
    if (this.#cancelPause === undefined) this.#start()
  }

  view(): SinkView {
    return {
      name: this.#options.sink.name,
      sent: this.#sent,
      failed: this.#failed,
      dropped: this.#dropped,
      waiting: this.#waiting.length,
      isAway: this.#pauseMs > 0,
    }
  }

  /** Sends what waits once more, and stops. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelPause?.()
    await this.#sending
    this.#waiting.splice(0, this.#waiting.length - 1)
    await this.#drain()
  }

  #start(): void {
    this.#sending ??= this.#drain().finally(() => {
      this.#sending = undefined
    })
  }

  /** Never rejects. */
  async #drain(): Promise<void> {
    const { sink, complain } = this.#options
    while (this.#waiting.length > 0) {
      const [note = ''] = this.#waiting
      try {
        await sink.send(note)
      } catch (error) {
        this.#failed++
        if (this.#pauseMs === 0) complain(`audit: the sink ${sink.name} does not take checkpoints: ${String(error)}`)
        this.#pause()
        return
      }
      this.#sent++
      this.#pauseMs = 0
      // It may have been dropped meanwhile for newer ones.
      if (this.#waiting[0] === note) this.#waiting.shift()
    }
  }

  #pause(): void {
    this.#pauseMs = Math.min(PAUSE_MS_MAX, Math.max(PAUSE_MS_MIN, this.#pauseMs * 2))
    if (this.#isClosed) return
    this.#cancelPause = this.#options.later(this.#pauseMs, () => {
      this.#cancelPause = undefined
      this.#start()
    })
  }
}
