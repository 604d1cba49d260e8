import { type Dispatcher, Pool } from 'undici'
import type { Replica } from '../domain/fleet.ts'
import type { Backend, Call, Ending, ReplicaReport } from '../lifecycle/ports.ts'
import { upstreamBody } from '../wire/upstream.ts'
import { AnswerReader } from './http-answer-reader.ts'
import { probeOpenAi } from './http-probe.ts'

/**
 * Any engine behind an OpenAI-compatible URL: vLLM, SGLang, llama.cpp, OpenAI itself, another Spillway.
 *
 * We speak undici's `dispatch` directly: promise- and stream-based clients cost two to fourteen times as much per
 * request. One pool of kept-alive connections per replica.
 */
export interface HttpOpenAiOptions {
  /** Up to and with the version: `http://10.0.0.7:8000/v1`. */
  readonly url: string
  /** Sent as `authorization: Bearer …`; never logged. */
  readonly apiKey: string | undefined
  readonly headers: Readonly<Record<string, string>>
  /** The engine's own name for the model; the public name when undefined. */
  readonly upstreamModel: string | undefined
  readonly connectTimeoutMs: number
  /** Longest silence: until the headers, and between two pieces of the body. */
  readonly silenceMsMax: number
  readonly connectionsMax: number
}

export const HTTP_OPENAI_DEFAULTS = {
  /** A replica that does not take a connection in this time is not there. */
  connectTimeoutMs: 3_000,
  /** Long prompts prefill for many seconds before the first byte; a silent minute more is a hang. */
  silenceMsMax: 120_000,
  /** Above any concurrency limit that we would set for one replica. */
  connectionsMax: 8_192,
} as const

export class HttpOpenAiBackend implements Backend {
  readonly #pool: Pool
  readonly #basePath: string
  readonly #headers: string[]
  readonly #upstreamModel: string | undefined

  constructor(options: HttpOpenAiOptions) {
    const url = new URL(options.url)
    this.#basePath = url.pathname.replace(/\/+$/, '')
    this.#upstreamModel = options.upstreamModel
    this.#headers = ['content-type', 'application/json']
    if (options.apiKey !== undefined) this.#headers.push('authorization', `Bearer ${options.apiKey}`)
    for (const [name, value] of Object.entries(options.headers)) this.#headers.push(name, value)
    this.#pool = new Pool(url.origin, {
      connections: options.connectionsMax,
      pipelining: 1,
      connectTimeout: options.connectTimeoutMs,
      headersTimeout: options.silenceMsMax,
      bodyTimeout: options.silenceMsMax,
      keepAliveTimeout: 30_000,
    })
  }

  generate(call: Call): Promise<Ending> {
    const { request, plan, lease, cancellation } = call
    const body = upstreamBody(request, plan, this.#upstreamModel ?? plan.model)
    const path = `${this.#basePath}${request.kind === 'chat' ? '/chat/completions' : '/completions'}`
    return new Promise((resolve, reject) => {
      const reader = new AnswerReader(call, resolve, reject)
      cancellation.onCancel(() => reader.cancel())
      if (cancellation.isCancelled) return
      const headers = [...this.#headers, 'x-request-id', lease.ticketId]
      this.#pool.dispatch({ path, method: 'POST', headers, body } as Dispatcher.DispatchOptions, reader)
    })
  }

  probe(_replica: Replica): Promise<ReplicaReport> {
    return probeOpenAi(this.#pool, this.#basePath, this.#headers)
  }

  close(): Promise<void> {
    return this.#pool.destroy()
  }
}
