import { Worker } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { secondsToUs } from '../../base/clock.ts'
import type { EmbedAnswer, EmbedAsk, EmbedThreadData } from './live-use-lite-thread.ts'
import { toUnit } from './to-unit.ts'

/**
 * One thread with the embedded model, from its first text (half a second, 200 MB) until it has been idle for a while.
 * The thread takes one text at a time. A thread that is silent for too long hangs: it is ended, and the next text
 * starts another.
 */

/** The longest passage takes half a second. */
const HANG_US = secondsToUs(15)

/** Half a second on a quiet machine; a thread of low priority on a busy machine takes much longer. */
const START_US = secondsToUs(90)

/** Documents come in bursts; starting a thread again costs half a second. */
const IDLE_US = secondsToUs(60)

export interface WaitingText {
  readonly text: string
  readonly resolve: (vector: Float32Array) => void
  readonly reject: (error: Error) => void
  isCancelled: boolean
}

export interface EmbedThreadOptions {
  readonly clock: Clock
  readonly niceness: number
  /** The thread for questions is kept, so that a question does not wait for its start. */
  readonly isKept: boolean
  /** The next text, if there is one. */
  readonly next: () => WaitingText | undefined
  /** The thread was lost: its waiting texts must be failed. */
  readonly onLost: (because: string) => void
}

export class EmbedThread {
  readonly #options: EmbedThreadOptions
  #thread: Worker | undefined
  #isReady = false
  #running: { readonly id: number; readonly waiting: WaitingText } | undefined
  #forget: () => void = () => {}
  #lastId = 0

  constructor(options: EmbedThreadOptions) {
    this.#options = options
  }

  /** Takes the next text, if the thread is idle. */
  pump(): void {
    if (this.#running !== undefined) return
    this.#thread ??= this.#start()
    if (!this.#isReady) return
    const waiting = this.#options.next()
    if (waiting === undefined) {
      if (!this.#options.isKept) this.#timer(IDLE_US, () => this.end())
      return
    }
    const id = ++this.#lastId
    this.#running = { id, waiting }
    this.#timer(HANG_US, () => this.#lose('it hangs'))
    this.#thread.postMessage({ id, text: waiting.text } satisfies EmbedAsk)
  }

  /** Ends the thread; its present text fails. */
  end(because = 'it is closed'): void {
    this.#forget()
    const thread = this.#thread
    this.#thread = undefined
    this.#isReady = false
    const running = this.#running
    this.#running = undefined
    running?.waiting.reject(new Error(`the embedder was lost: ${because}`))
    void thread?.terminate()
  }

  #start(): Worker {
    const data: EmbedThreadData = { niceness: this.#options.niceness }
    const thread = new Worker(new URL('./live-use-lite-thread.ts', import.meta.url), { workerData: data })
    thread.unref()
    this.#timer(START_US, () => this.#lose('it does not start'))
    thread.on('message', (message: EmbedAnswer | 'ready') => {
      if (this.#thread !== thread) return
      this.#forget()
      if (message === 'ready') this.#isReady = true
      else this.#onAnswer(message)
      this.pump()
    })
    thread.on('error', (error) => {
      // The error may quote paths, and this text reaches clients; Node prints it to the log by itself.
      if (this.#thread === thread)
        this.#lose(`its thread failed with ${error instanceof Error ? error.name : 'an error'}`)
    })
    return thread
  }

  #onAnswer(answer: EmbedAnswer): void {
    const running = this.#running
    if (running === undefined || running.id !== answer.id) return
    this.#running = undefined
    if ('vector' in answer) running.waiting.resolve(toUnit(answer.vector))
    else running.waiting.reject(new Error(answer.error))
  }

  #timer(durationUs: number, fn: () => void): void {
    this.#forget()
    const { clock } = this.#options
    this.#forget = clock.at(clock.now() + durationUs, fn)
  }

  #lose(because: string): void {
    this.end(because)
    this.#options.onLost(because)
  }
}
