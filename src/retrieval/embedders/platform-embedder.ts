import type { Embedder, EmbedOptions } from '../../lifecycle/retrieval-ports.ts'
import { toUnit } from './to-unit.ts'

/**
 * Vectors from the platform's own embedding model: texts go through the same admission, turns and journal as all
 * requests, as the platform's own tenant, in sets as large as the engine's batch. `main/platform-vectors.ts` makes the
 * requests; the size of the sets and the check of the answers are here.
 */
export interface PlatformEmbedderOptions {
  readonly model: string
  readonly dimensions: number
  readonly textsMax: number
  /** Makes one request: a vector for each text, or an error with the reason. */
  readonly ask: (texts: readonly string[], options: EmbedOptions) => Promise<readonly Float32Array[]>
}

export class PlatformEmbedder implements Embedder {
  readonly name: string
  readonly dimensions: number
  readonly #options: PlatformEmbedderOptions
  #isClosed = false

  constructor(options: PlatformEmbedderOptions) {
    this.name = options.model
    this.dimensions = options.dimensions
    this.#options = options
  }

  /** Sets go one after the other: the engine's batches are full either way, and other tenants' texts fit in between. */
  async embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]> {
    const { textsMax, ask } = this.#options
    const vectors: Float32Array[] = []
    for (let from = 0; from < texts.length; from += textsMax) {
      if (this.#isClosed) throw new Error('the embedder is closed')
      const set = texts.slice(from, from + textsMax)
      const made = await ask(set, options)
      if (made.length !== set.length) throw new Error('the embedding model gave too few vectors')
      for (const vector of made) vectors.push(this.#checked(vector))
    }
    return vectors
  }

  close(): Promise<void> {
    this.#isClosed = true
    return Promise.resolve()
  }

  #checked(vector: Float32Array): Float32Array {
    if (vector.length === this.dimensions) return toUnit(vector)
    throw new Error(`the embedding model gave ${vector.length} dimensions instead of ${this.dimensions}`)
  }
}
