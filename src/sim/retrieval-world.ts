import { Breaker } from '../base/breaker.ts'
import type { Cancellation } from '../base/cancellation.ts'
import { type Clock, msToUs } from '../base/clock.ts'
import { Rng } from '../base/rng.ts'
import type { AnswerCache, Journal } from '../lifecycle/ports.ts'
import type { CorpusStore, Embedder, Retriever } from '../lifecycle/retrieval-ports.ts'
import { MemoryAnswerStore } from '../retrieval/answers/memory-answer-store.ts'
import { SemanticAnswerCache } from '../retrieval/answers/semantic-answer-cache.ts'
import { MemoryPassageCache } from '../retrieval/caches/memory-passage-cache.ts'
import { CorpusDirectory } from '../retrieval/corpus-directory.ts'
import { countTerms } from '../retrieval/indexes/analyse-text.ts'
import { termWeights } from '../retrieval/indexes/bm25.ts'
import { PassageRetriever } from '../retrieval/retriever.ts'
import { MemoryCorpusStore } from '../store/memory-corpus-store.ts'
import { drawNormal } from './clients/draw.ts'
import { QUESTION_EMBEDDER, topicWord, vectorOf } from './clients/questions.ts'
import type { LatencySpec, RetrievalWorldSpec } from './scenario/scenario-retrieval.ts'

/**
 * Retrieval and the answer cache in a simulation: the retriever, breakers and caches that run live, over a store in
 * memory and an embedder without a model. Each part has a drawn latency and can be made to fail.
 */
export interface RetrievalWorldOptions {
  readonly clock: Clock
  readonly journal: Journal
  readonly seed: number
  readonly spec: RetrievalWorldSpec | undefined
  readonly cacheTtlS: number
  /** Tenants with a corpus. */
  readonly tenantIds: readonly string[]
}

/** The name of every tenant's corpus. */
export const CORPUS = 'simulated'

/** Latencies of the embedded store, as measured by `bench/retrieval/search.ts`. */
const STORE: LatencySpec = { p50Ms: 2, p95Ms: 4 }
const EMBEDDER: LatencySpec = { p50Ms: 20, p95Ms: 30 }
const PASSAGE_TOKENS = 170
const TOPICS = 40

type PartName = 'store' | 'embedder'

/** Targets of faults; `retrieval` is both parts. */
export const RETRIEVAL_PARTS: readonly string[] = ['store', 'embedder', 'retrieval']

export class RetrievalWorld {
  readonly retriever: Retriever
  readonly answers: AnswerCache
  readonly #parts: Readonly<Record<PartName, FaultyPart>>

  private constructor(options: RetrievalWorldOptions, corpora: MemoryCorpusStore) {
    const { clock, journal, seed, spec, cacheTtlS } = options
    this.#parts = {
      store: new FaultyPart(clock, spec?.store ?? STORE, Rng.stream(seed, 'retrieval/store')),
      embedder: new FaultyPart(clock, spec?.embedder ?? EMBEDDER, Rng.stream(seed, 'retrieval/embedder')),
    }
    const breakerOf = (what: string): Breaker =>
      new Breaker((state, at) => journal.record({ kind: 'breaker-changed', at, what, state }))
    const store = storeWithLatency(corpora, this.#parts.store)
    const embedder = embedderWithLatency(this.#parts.embedder)
    const embedderBreaker = breakerOf('embedder')
    const parts = { clock, store, embedder, storeBreaker: breakerOf('store'), embedderBreaker }
    const directory = new CorpusDirectory(clock, store)
    const cache = new MemoryPassageCache()
    this.retriever = new PassageRetriever({ clock, parts, directory, cache, cacheTtlS })
    this.answers = new SemanticAnswerCache({ clock, store: new MemoryAnswerStore(), embedder, embedderBreaker })
  }

  static async make(options: RetrievalWorldOptions): Promise<RetrievalWorld> {
    const corpora = new MemoryCorpusStore()
    const tokens = options.spec?.passageTokens ?? PASSAGE_TOKENS
    for (const tenantId of options.tenantIds) await fill(corpora, tenantId, tokens)
    return new RetrievalWorld(options, corpora)
  }

  /** Makes a part slower by this factor; Infinity never answers. `retrieval` means both parts. */
  slowDown(target: string, factor: number): void {
    for (const part of this.#partsOf(target)) part.factor = factor
  }

  /** Makes a part refuse at once. */
  lose(target: string): void {
    for (const part of this.#partsOf(target)) part.isLost = true
  }

  recover(target: string): void {
    for (const part of this.#partsOf(target)) {
      part.factor = 1
      part.isLost = false
    }
  }

  #partsOf(target: string): readonly FaultyPart[] {
    const { store, embedder } = this.#parts
    if (target === 'retrieval') return [store, embedder]
    if (target === 'store') return [store]
    if (target === 'embedder') return [embedder]
    throw new Error(`a fault of retrieval names ${target}, but its parts are called store, embedder and retrieval`)
  }
}

/** The present state of a part, and its latency. */
class FaultyPart {
  factor = 1
  isLost = false
  readonly #clock: Clock
  readonly #latency: LatencySpec
  readonly #rng: Rng

  constructor(clock: Clock, latency: LatencySpec, rng: Rng) {
    this.#clock = clock
    this.#latency = latency
    this.#rng = rng
  }

  async answer(cancellation: Cancellation | undefined): Promise<void> {
    if (this.isLost) throw new Error('connection refused')
    const { p50Ms, p95Ms } = this.#latency
    const sigma = Math.log(p95Ms / p50Ms) / NORMAL_P95
    const tookMs = p50Ms * Math.exp(sigma * drawNormal(this.#rng)) * this.factor
    await new Promise<void>((resolve, reject) => {
      const forget = Number.isFinite(tookMs)
        ? this.#clock.at(this.#clock.now() + Math.max(1, Math.round(msToUs(tookMs))), resolve)
        : () => {}
      cancellation?.onCancel((because) => {
        forget()
        reject(new Error(because))
      })
    })
  }
}

/** The 95th percentile of the normal distribution. */
const NORMAL_P95 = 1.645

/** Everything that a request waits for takes time; filling the corpora does not. */
function storeWithLatency(store: MemoryCorpusStore, part: FaultyPart): CorpusStore {
  return new Proxy(store, {
    get(target, name) {
      const method = Reflect.get(target, name) as unknown
      if (typeof method !== 'function') return method
      return async (...args: unknown[]) => {
        const options = args.at(-1) as { cancellation?: Cancellation } | undefined
        await part.answer(options?.cancellation)
        return (method as (...all: unknown[]) => unknown).apply(target, args)
      }
    },
  })
}

function embedderWithLatency(part: FaultyPart): Embedder {
  return {
    ...QUESTION_EMBEDDER,
    async embed(texts, options) {
      await part.answer(options.cancellation)
      return QUESTION_EMBEDDER.embed(texts, options)
    },
  }
}

async function fill(store: MemoryCorpusStore, tenantId: string, tokens: number): Promise<void> {
  const { name: embedder, dimensions } = QUESTION_EMBEDDER
  const id = `vs_${tenantId}`
  await store.createCorpus({ id, tenantId, name: CORPUS, embedder, dimensions, metadata: {}, createdAtS: 0 })
  const document = { id: 'all', name: 'all', hash: 'all', text: '', attributes: {}, createdAtS: 0 }
  await store.addDocument(tenantId, id, document)
  const texts = Array.from({ length: TOPICS }, (_, topic) => topicWord(topic))
  const drafts = texts.map((text, position) => ({ position, text, tokens, ...termWeights(countTerms(id, text)) }))
  await store.addPassages(tenantId, id, 'all', drafts)
  const missing = await store.unembedded(tenantId, id, 'all', TOPICS)
  const vectors = missing.map(({ passageId, text }) => ({ passageId, vector: vectorOf(text) }))
  await store.setVectors(tenantId, id, vectors)
  await store.finishDocument(tenantId, id, 'all', { status: 'completed' })
}
