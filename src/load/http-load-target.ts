import { type Dispatcher, Pool } from 'undici'
import { TokenLengths } from '../wire/token-length.ts'
import { LoadReader, type LoadWatcher } from './http-load-reader.ts'

/** A server under load: one OpenAI-compatible URL, many connections. */
export interface LoadTargetOptions {
  /** With or without `/v1` at the end. */
  readonly url: string
  readonly connectionsMax: number
  /** Longest silence, before the head and between two pieces of an answer. */
  readonly silenceMsMax: number
}

export class LoadTarget {
  readonly #pool: Pool
  readonly #basePath: string
  readonly #tokenLengths = new TokenLengths()

  constructor(options: LoadTargetOptions) {
    const url = new URL(options.url)
    this.#basePath = url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')
    this.#pool = new Pool(url.origin, {
      connections: options.connectionsMax,
      pipelining: 1,
      connectTimeout: 10_000,
      headersTimeout: options.silenceMsMax,
      bodyTimeout: options.silenceMsMax,
      keepAliveTimeout: 30_000,
    })
  }

  /** Sends one chat request, with these headers beside the usual ones. The returned function cancels it. */
  send(body: string, more: readonly string[], watcher: LoadWatcher): () => void {
    const reader = new LoadReader(watcher, this.#tokenLengths)
    const headers = ['content-type', 'application/json', 'accept', 'text/event-stream', ...more]
    const options = { path: `${this.#basePath}/v1/chat/completions`, method: 'POST', headers, body }
    this.#pool.dispatch(options as Dispatcher.DispatchOptions, reader)
    return () => reader.cancel()
  }

  /** The models that this key may use, or why there is no answer; asked before the run. */
  async models(key: string | undefined): Promise<ModelsAnswer> {
    try {
      const { statusCode, body } = await this.#pool.request({
        path: `${this.#basePath}/v1/models`,
        method: 'GET',
        headers: key === undefined ? [] : ['authorization', `Bearer ${key}`],
        signal: AbortSignal.timeout(5_000),
      } as Dispatcher.RequestOptions)
      const text = await body.text()
      if (statusCode !== 200) return { kind: 'refused', status: statusCode }
      const { data = [] } = JSON.parse(text) as { data?: ReadonlyArray<{ readonly id?: unknown }> }
      return { kind: 'listed', models: data.map(({ id }) => String(id)) }
    } catch (error) {
      return { kind: 'unreachable', because: becauseOf(error) }
    }
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }
}

/** The system's error code if there is one; the number of a DOM exception is useless. */
function becauseOf(error: unknown): string {
  const { code, name, message } = error as Error & { readonly code?: unknown }
  if (name === 'TimeoutError') return 'it took the connection and said nothing'
  return typeof code === 'string' ? code : message
}

export type ModelsAnswer =
  | { readonly kind: 'listed'; readonly models: readonly string[] }
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'unreachable'; readonly because: string }
