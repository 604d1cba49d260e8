import type { Embedder, EmbedOptions } from '../../lifecycle/retrieval-ports.ts'

/** Remembers the vectors of recent questions: people ask the same things, and a question costs 20 ms to embed. */
const QUESTIONS_MAX = 1_024

export class CachedEmbedder implements Embedder {
  readonly #inner: Embedder
  readonly #known = new Map<string, Float32Array>()

  constructor(inner: Embedder) {
    this.#inner = inner
  }

  get name(): string {
    return this.#inner.name
  }

  get dimensions(): number {
    return this.#inner.dimensions
  }

  async embed(texts: readonly string[], options: EmbedOptions): Promise<readonly Float32Array[]> {
    const [text] = texts
    if (options.kind === 'passage' || texts.length !== 1 || text === undefined) return this.#inner.embed(texts, options)
    const known = this.#known.get(text)
    if (known !== undefined) {
      this.#known.delete(text)
      this.#known.set(text, known)
      return [known]
    }
    const made = await this.#inner.embed(texts, options)
    if (made[0] !== undefined) this.#known.set(text, made[0])
    if (this.#known.size > QUESTIONS_MAX) this.#known.delete(this.#known.keys().next().value as string)
    return made
  }

  close(): Promise<void> {
    return this.#inner.close()
  }
}
