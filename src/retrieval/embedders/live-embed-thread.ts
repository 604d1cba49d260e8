import { Worker } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { secondsToUs } from '../../base/clock.ts'
import { explainMissingPart } from '../../base/missing-part.ts'
import type { EmbedAnswer, EmbedAsk, EmbedThreadData } from './live-use-lite-thread.ts'
import { toUnit } from './to-unit.ts'

/**
 * One thread with the embedded model, from its first text (half a second, 150 to 200 MB) until it has been idle for a
 * while. The thread takes one set of texts at a time. A thread that is silent for too long hangs: it is ended, and the
 * next text starts another.
 */

/** The longest set of texts takes two seconds; a thread of low priority on a busy machine takes much longer. */
const HANG_US = secondsToUs(60)

/** Half a second on a quiet machine; a thread of low priority on a busy machine takes much longer. */
const START_US = secondsToUs(90)

/** Documents come in bursts; starting a thread again costs half a second. */
const IDLE_US = secondsToUs(60)

/** The heap of a thread holds 30 MB; the weights and the tensors are outside of it, in WebAssembly's memory. */
const HEAP_MB_MAX = 128

export interface WaitingText {
  readonly text: string
  readonly resolve: (vector: Float32Array) => void
  readonly reject: (error: Error) => void
  isCancelled: boolean
}

/** The embedder lost a thread. Clients may read the message; `detail` is for operators. */
export class EmbedThreadLost extends Error {
  readonly detail: string | undefined

  constructor(because: string, detail?: string) {
    super(`the embedder was lost: ${because}`)
    this.detail = detail
  }
}

function lossOf(error: unknown): EmbedThreadLost {
  const missing = explainMissingPart(error, 'set retrieval.embedder.url to another embedder')
  if (missing !== undefined) return new EmbedThreadLost('it is not installed', missing)
  return new EmbedThreadLost('its thread failed', String(error))
}

export interface EmbedThreadOptions {
  readonly clock: Clock
  readonly niceness: number
  /** The thread for questions is kept, so that a question does not wait for its start. */
  readonly isKept: boolean
  /** The next texts, to be computed together; empty if there are none. */
  readonly next: () => readonly WaitingText[]
  /** The thread was lost: its waiting texts must be failed. */
  readonly onLost: (error: EmbedThreadLost) => void
}

export class EmbedThread {
  readonly #options: EmbedThreadOptions
  #thread: Worker | undefined
  #isReady = false
  #running: { readonly id: number; readonly texts: readonly WaitingText[] } | undefined
  #forget: () => void = () => {}
  #lastId = 0

  constructor(options: EmbedThreadOptions) {
    this.#options = options
  }

  /** Takes the next texts, if the thread is idle. */
  pump(): void {
    if (this.#running !== undefined) return
    this.#thread ??= this.#start()
    if (!this.#isReady) return
    const texts = this.#options.next()
    if (texts.length === 0) {
      if (!this.#options.isKept) this.#timer(IDLE_US, () => this.end())
      return
    }
    const id = ++this.#lastId
    this.#running = { id, texts }
    this.#timer(HANG_US, () => this.#lose(new EmbedThreadLost('it hangs')))
    this.#thread.postMessage({ id, texts: texts.map(({ text }) => text) } satisfies EmbedAsk)
  }

  /** Ends the thread; its present texts fail. */
  end(error = new EmbedThreadLost('it is closed')): void {
    this.#forget()
    const thread = this.#thread
    this.#thread = undefined
    this.#isReady = false
    const running = this.#running
    this.#running = undefined
    for (const { reject } of running?.texts ?? []) reject(error)
    void thread?.terminate()
  }

  #start(): Worker {
    const data: EmbedThreadData = { niceness: this.#options.niceness }
    const resourceLimits = { maxOldGenerationSizeMb: HEAP_MB_MAX }
    const thread = new Worker(new URL('./live-use-lite-thread.ts', import.meta.url), {
      workerData: data,
      resourceLimits,
    })
    thread.unref()
    this.#timer(START_US, () => this.#lose(new EmbedThreadLost('it does not start')))
    thread.on('message', (message: EmbedAnswer | 'ready') => {
      if (this.#thread !== thread) return
      this.#forget()
      if (message === 'ready') this.#isReady = true
      else this.#onAnswer(message)
      this.pump()
    })
    thread.on('error', (error) => {
      if (this.#thread === thread) this.#lose(lossOf(error))
    })
    return thread
  }

  #onAnswer(answer: EmbedAnswer): void {
    const running = this.#running
    if (running === undefined || running.id !== answer.id) return
    this.#running = undefined
    const { texts } = running
    if ('error' in answer) {
      for (const { reject } of texts) reject(new Error(answer.error))
      return
    }
    const length = answer.vectors.length / texts.length
    for (const [i, { resolve }] of texts.entries()) {
      resolve(toUnit(answer.vectors.subarray(i * length, (i + 1) * length)))
    }
  }

  #timer(durationUs: number, fn: () => void): void {
    this.#forget()
    const { clock } = this.#options
    this.#forget = clock.at(clock.now() + durationUs, fn)
  }

  #lose(error: EmbedThreadLost): void {
    this.end(error)
    this.#options.onLost(error)
  }
}
