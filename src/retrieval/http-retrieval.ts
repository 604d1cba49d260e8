import { Pool } from 'undici'
import type { Breaker } from '../base/breaker.ts'
import { type Clock, msToUs, usToMs } from '../base/clock.ts'
import { withinTime } from '../base/within-time.ts'
import { CorpusError, type CorpusFacts, type CorpusRefusal } from '../domain/corpus.ts'
import type {
  Corpora,
  CorpusAsk,
  CorpusLook,
  RetrievalAsk,
  Retrieved,
  Retriever,
} from '../lifecycle/retrieval-ports.ts'
import type { Forgetful } from './corpora.ts'
import { CorpusDirectory } from './corpus-directory.ts'

/**
 * Retrieval in its own process (`spillway retrieval`), behind the same two ports. The budget is kept here too: a
 * process that hangs costs no more than a local one would, and is left alone after failures.
 */
export interface HttpRetrievalOptions {
  readonly clock: Clock
  readonly url: string
  readonly apiKey: string
  readonly breaker: Breaker
}

/** Part of the budget for the network; the other process gets the rest. */
const ON_THE_WAY_US = msToUs(5)
const MANAGE_MS_MAX = 30_000
/** Longest wait for a lookup; a retrieval process that is silent for longer counts as down. */
const LOOK_UP_MS_MAX = 1_000
const CONNECTIONS_MAX = 64

export class HttpRetrieval implements Retriever {
  readonly corpora: Corpora
  readonly #options: HttpRetrievalOptions
  readonly #pool: Pool
  readonly #path: string
  readonly #directory: CorpusDirectory
  readonly #caches: readonly Forgetful[]

  /** `caches` are those of this process: they forget a tenant together with the other process. */
  constructor(options: HttpRetrievalOptions, caches: readonly Forgetful[] = []) {
    this.#caches = caches
    const url = new URL(options.url)
    this.#options = options
    this.#path = url.pathname.replace(/\/+$/, '')
    this.#pool = new Pool(url.origin, { connections: CONNECTIONS_MAX, connectTimeout: 1_000 })
    this.corpora = this.#makeCorpora()
    this.#directory = new CorpusDirectory(options.clock, {
      resolveCorpus: (tenantId, corpus) => this.#resolve(tenantId, corpus),
    })
  }

  async retrieve(ask: RetrievalAsk): Promise<Retrieved> {
    const { clock, breaker } = this.#options
    const now = clock.now()
    if (!breaker.mayTry(now)) return nothing('failed', 'the retrieval process is left alone after failures')
    const { cancellation, ...rest } = ask
    const abort = new AbortController()
    const forget = cancellation.onCancel(() => abort.abort())
    const body = { ...rest, budgetUs: Math.max(1, ask.budgetUs - ON_THE_WAY_US) }
    const asked = this.#post('/internal/retrieve', body, abort.signal, usToMs(ask.budgetUs))
    const waited = await withinTime(clock, now + ask.budgetUs, asked)
    forget()
    if (waited.kind === 'done') {
      breaker.succeeded(clock.now())
      return waited.value as Retrieved
    }
    abort.abort()
    if (!cancellation.isCancelled) breaker.failed(clock.now())
    return waited.kind === 'late'
      ? nothing('skipped', 'the retrieval process was late')
      : nothing('failed', 'the retrieval process cannot be reached')
  }

  lookUp(ask: CorpusAsk): CorpusLook | Promise<CorpusLook> {
    const { clock, breaker } = this.#options
    const { facts, isFresh } = this.#directory.known(ask.tenantId, ask.corpus)
    if (isFresh && facts !== undefined) return { kind: 'found', corpus: facts }
    const now = clock.now()
    if (!breaker.mayTry(now)) return { kind: 'unknown' }
    return withinTime(clock, now + ask.budgetUs, this.#directory.ask(ask.tenantId, ask.corpus, {})).then((waited) => {
      if (waited.kind !== 'done') {
        if (!ask.cancellation.isCancelled) breaker.failed(clock.now())
        return { kind: 'unknown' }
      }
      breaker.succeeded(clock.now())
      return waited.value === undefined ? { kind: 'none' } : { kind: 'found', corpus: waited.value }
    })
  }

  async close(): Promise<void> {
    await this.#pool.destroy()
  }

  async #resolve(tenantId: string, corpus: string): Promise<CorpusFacts | undefined> {
    const look = (await this.#post('/internal/look-up', { tenantId, corpus }, undefined, LOOK_UP_MS_MAX)) as CorpusLook
    if (look.kind === 'unknown') throw new Error('its store could not be asked')
    return look.kind === 'found' ? look.corpus : undefined
  }

  /** Every method of the port, by name. */
  #makeCorpora(): Corpora {
    return new Proxy({} as Corpora, {
      get: (_, method) => (method === 'then' ? undefined : (...args: unknown[]) => this.#manage(String(method), args)),
    })
  }

  async #manage(method: string, args: readonly unknown[]): Promise<unknown> {
    let answer: { value?: unknown; refusal?: { code: CorpusRefusal; message: string; retryAfterUs?: number } }
    try {
      const given = await this.#post(`/internal/corpora/${method}`, args, undefined, MANAGE_MS_MAX)
      answer = given as typeof answer
    } catch {
      throw new CorpusError('unavailable', 'The retrieval process cannot be reached.')
    }
    const { refusal } = answer
    if (refusal !== undefined) throw new CorpusError(refusal.code, refusal.message, refusal.retryAfterUs)
    if (method === 'forgetTenant') await Promise.all(this.#caches.map((cache) => cache.forgetTenant(String(args[0]))))
    return answer.value ?? undefined
  }

  async #post(path: string, body: unknown, signal: AbortSignal | undefined, timeoutMs: number): Promise<unknown> {
    const answer = await this.#pool.request({
      method: 'POST',
      path: this.#path + path,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#options.apiKey}` },
      body: JSON.stringify(body),
      headersTimeout: Math.max(1, timeoutMs),
      bodyTimeout: Math.max(1, timeoutMs),
      ...(signal !== undefined && { signal }),
    })
    if (answer.statusCode !== 200) {
      await answer.body.dump()
      throw new Error(`it answered ${answer.statusCode}`)
    }
    return answer.body.json()
  }
}

const nothing = (outcome: 'skipped' | 'failed', because: string): Retrieved => ({ outcome, because, passages: [] })
