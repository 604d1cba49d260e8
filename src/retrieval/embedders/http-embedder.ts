import { Pool } from 'undici'
import type { Embedder, EmbedOptions } from '../../lifecycle/retrieval-ports.ts'
import { EMBEDDER_CONNECTIONS_MAX } from './embedder-bounds.ts'
import { toUnit } from './to-unit.ts'

/** Any server with OpenAI's `/v1/embeddings`: vLLM, text-embeddings-inference, OpenAI itself, our own engine. */
export interface HttpEmbedderOptions {
  /** Address including the version: `http://10.0.0.7:8000/v1`. */
  readonly url: string
  readonly model: string
  readonly dimensions: number
  readonly apiKey: string | undefined
  readonly timeoutMs: number
}

export class HttpEmbedder implements Embedder {
  readonly name: string
  readonly dimensions: number
  readonly #pool: Pool
  readonly #path: string
  readonly #options: HttpEmbedderOptions

  constructor(options: HttpEmbedderOptions) {
    const url = new URL(options.url)
    this.name = options.model
    this.dimensions = options.dimensions
    this.#options = options
    this.#path = `${url.pathname.replace(/\/+$/, '')}/embeddings`
    this.#pool = new Pool(url.origin, {
      connections: EMBEDDER_CONNECTIONS_MAX,
      connectTimeout: Math.min(3_000, options.timeoutMs),
      headersTimeout: options.timeoutMs,
      bodyTimeout: options.timeoutMs,
    })
  }

  async embed(texts: readonly string[], { cancellation }: EmbedOptions): Promise<readonly Float32Array[]> {
    if (texts.length === 0) return []
    const { model, apiKey } = this.#options
    const abort = new AbortController()
    const forget = cancellation?.onCancel((because) => abort.abort(new Error(because)))
    try {
      const { statusCode, body } = await this.#pool.request({
        method: 'POST',
        path: this.#path,
        headers: {
          'content-type': 'application/json',
          ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
        },
        body: JSON.stringify({ model, input: texts }),
        signal: abort.signal,
      })
      if (statusCode !== 200) {
        await body.dump()
        throw new Error(`the embedder answered ${statusCode}`)
      }
      return this.#read(await body.json(), texts.length)
    } finally {
      forget?.()
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  #read(answer: unknown, count: number): Float32Array[] {
    const { data } = answer as { data?: ReadonlyArray<{ index?: number; embedding?: unknown }> }
    if (!Array.isArray(data) || data.length !== count) throw new Error('the embedder answered in an unknown shape')
    const vectors: Float32Array[] = []
    data.forEach(({ index, embedding }, position) => {
      if (!Array.isArray(embedding) || embedding.length !== this.dimensions) {
        const length = Array.isArray(embedding) ? embedding.length : 'no'
        throw new Error(`the embedder gave ${length} dimensions instead of ${this.dimensions}`)
      }
      vectors[index ?? position] = toUnit(Float32Array.from(embedding as number[]))
    })
    return vectors
  }
}
