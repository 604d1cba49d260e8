import type { Clock } from '../../base/clock.ts'
import type { Embedder, EmbedOptions } from '../../lifecycle/retrieval-ports.ts'

/**
 * Embeds questions together that come at about the same time, because a GPU is faster with batches (dynamic batching).
 * The first question waits up to `waitUs` for others; a full batch leaves at once. A question cancelled while it waits
 * leaves the batch; after that its vector is discarded.
 */
export interface BatchingOptions {
  readonly textsMax: number
  readonly waitUs: number
}

interface Waiting {
  readonly text: string
  readonly resolve: (vector: Float32Array) => void
  readonly reject: (error: unknown) => void
}

export class BatchingEmbedder implements Embedder {
  readonly #inner: Embedder
  readonly #clock: Clock
  readonly #options: BatchingOptions
  #waiting: Waiting[] = []
  #forget: () => void = () => {}

  constructor(inner: Embedder, clock: Clock, options: BatchingOptions) {
    this.#inner = inner
    this.#clock = clock
    this.#options = options
  }

  get name(): string {
    return this.#inner.name
  }

  get dimensions(): number {
    return this.#inner.dimensions
  }

  embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]> {
    // Passages come in batches already.
    if (options.kind === 'passage') return this.#inner.embed(texts, options)
    return Promise.all(texts.map((text) => this.#embedOne(text, options)))
  }

  close(): Promise<void> {
    this.#forget()
    return this.#inner.close()
  }

  #embedOne(text: string, { cancellation }: EmbedOptions): Promise<Float32Array> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { text, resolve, reject }
      this.#waiting.push(waiting)
      cancellation?.onCancel((because) => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting)
        reject(new Error(because))
      })
      if (this.#waiting.length >= this.#options.textsMax) this.#leave()
      else if (this.#waiting.length === 1) {
        this.#forget = this.#clock.at(this.#clock.now() + this.#options.waitUs, () => this.#leave())
      }
    })
  }

  #leave(): void {
    this.#forget()
    const set = this.#waiting
    this.#waiting = []
    if (set.length === 0) return
    const texts = set.map(({ text }) => text)
    this.#inner.embed(texts, { kind: 'question' }).then(
      (vectors) => {
        for (const [i, { resolve }] of set.entries()) resolve(vectors[i] as Float32Array)
      },
      (error: unknown) => {
        for (const { reject } of set) reject(error)
      },
    )
  }
}
