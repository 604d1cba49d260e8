import { Breaker } from '../../src/base/breaker.ts'
import type { Cancellation } from '../../src/base/cancellation.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { Embedder, EmbedOptions } from '../../src/lifecycle/retrieval-ports.ts'
import { MemoryPassageCache } from '../../src/retrieval/caches/memory-passage-cache.ts'
import { StoreCorpora } from '../../src/retrieval/corpora.ts'
import { CorpusDirectory } from '../../src/retrieval/corpus-directory.ts'
import { Indexer } from '../../src/retrieval/indexer.ts'
import { PassageRetriever } from '../../src/retrieval/retriever.ts'
import { MemoryCorpusStore } from '../../src/store/memory-corpus-store.ts'

/** How a part behaves from now on: how long it takes, and whether it then fails. */
export interface Mood {
  delayUs: number
  isBroken: boolean
  isHanging: boolean
}

/** Letters as a vector: close enough to meaning for a test, and the same everywhere. */
export function letterVector(text: string): Float32Array {
  const vector = new Float32Array(26)
  for (const letter of text.toLowerCase()) {
    const at = letter.charCodeAt(0) - 97
    if (at >= 0 && at < 26) vector[at] = (vector[at] as number) + 1
  }
  const length = Math.hypot(...vector) || 1
  return vector.map((part) => part / length)
}

export class ScriptedEmbedder implements Embedder {
  readonly name = 'letters'
  readonly dimensions = 26
  readonly mood: Mood = { delayUs: 0, isBroken: false, isHanging: false }
  questionCount = 0
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async embed(texts: readonly string[], { kind, cancellation }: EmbedOptions): Promise<readonly Float32Array[]> {
    if (kind === 'question') {
      this.questionCount++
      await behave(this.#clock, this.mood, cancellation)
    }
    return texts.map(letterVector)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

async function behave(clock: Clock, mood: Mood, cancellation: Cancellation | undefined): Promise<void> {
  if (mood.delayUs > 0) await clock.sleep(mood.delayUs)
  if (mood.isHanging) {
    await new Promise((_, reject) => cancellation?.onCancel((because) => reject(new Error(because))))
  }
  if (mood.isBroken) throw new Error('it is broken')
}

/** Retrieval over a store in memory that can be made slow, broken or silent. */
export function scriptedRetrieval(clock: Clock, options: { readonly cacheTtlS?: number } = {}) {
  const memory = new MemoryCorpusStore()
  const mood: Mood = { delayUs: 0, isBroken: false, isHanging: false }
  const counts = { searches: 0, cancelled: 0 }
  const store = new Proxy(memory, {
    get(target, name) {
      const method = Reflect.get(target, name) as unknown
      if (typeof method !== 'function') return method
      return async (...args: unknown[]) => {
        const cancellation = (args.at(-1) as { cancellation?: Cancellation } | undefined)?.cancellation
        if (name === 'searchTerms') counts.searches++
        if (cancellation !== undefined) {
          cancellation.onCancel(() => void counts.cancelled++)
          await behave(clock, mood, cancellation)
        }
        return (method as (...all: unknown[]) => unknown).apply(target, args)
      }
    },
  })
  const embedder = new ScriptedEmbedder(clock)
  const breakers: string[] = []
  const breaker = (what: string): Breaker => new Breaker((state) => void breakers.push(`${what} ${state}`))
  const parts = { clock, store, embedder, storeBreaker: breaker('store'), embedderBreaker: breaker('embedder') }
  const directory = new CorpusDirectory(clock, store)
  const cache = new MemoryPassageCache()
  const indexer = new Indexer({
    clock,
    store: memory,
    embedder,
    estimateTokens: (text) => Math.ceil(text.length / 4),
    onIndexed: ({ tenantId, corpusId }) => directory.forget(tenantId, corpusId),
  })
  let lastId = 0
  const corpora = new StoreCorpora({
    clock,
    store,
    parts,
    directory,
    indexer,
    caches: [cache],
    makeId: () => String(++lastId),
  })
  const retriever = new PassageRetriever({ clock, parts, directory, cache, cacheTtlS: options.cacheTtlS ?? 60 })
  return { retriever, corpora, indexer, cache, embedder, storeMood: mood, counts, breakers, memory }
}
