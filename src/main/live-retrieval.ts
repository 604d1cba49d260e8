import { LanedEmbedder } from '../assembly/laned-embedder.ts'
import type { LiveStore } from '../assembly/live-store.ts'
import { Breaker } from '../base/breaker.ts'
import { type Clock, msToUs } from '../base/clock.ts'
import { detailOf } from '../base/detail-of.ts'
import { makeIds, makeSecretSeed } from '../base/live-ids.ts'
import { Rng } from '../base/rng.ts'
import { ConfigError } from '../config/config-error.ts'
import type { Config } from '../config/schema.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { AnswerCache, Journal } from '../lifecycle/ports.ts'
import type { Corpora, Embedder, Retriever } from '../lifecycle/retrieval-ports.ts'
import { estimateTokens } from '../policy/planning/estimate.ts'
import type { AnswerStore } from '../retrieval/answers/answer-store.ts'
import { MemoryAnswerStore } from '../retrieval/answers/memory-answer-store.ts'
import { SemanticAnswerCache } from '../retrieval/answers/semantic-answer-cache.ts'
import { MemoryPassageCache } from '../retrieval/caches/memory-passage-cache.ts'
import type { PassageCache } from '../retrieval/caches/passage-cache.ts'
import { TieredPassageCache } from '../retrieval/caches/tiered-passage-cache.ts'
import { StoreCorpora } from '../retrieval/corpora.ts'
import { CorpusDirectory } from '../retrieval/corpus-directory.ts'
import { BatchingEmbedder } from '../retrieval/embedders/batching-embedder.ts'
import { CachedEmbedder } from '../retrieval/embedders/cached-embedder.ts'
import { EMBEDDER_CONNECTIONS_MAX } from '../retrieval/embedders/embedder-bounds.ts'
import { UseLiteEmbedder } from '../retrieval/embedders/live-use-lite.ts'
import { PlatformEmbedder } from '../retrieval/embedders/platform-embedder.ts'
import type { HttpRetrievalOptions } from '../retrieval/http-retrieval.ts'
import { Indexer } from '../retrieval/indexer.ts'
import type { SearchParts } from '../retrieval/indexes/hybrid-search.ts'
import { PassageRetriever } from '../retrieval/retriever.ts'
import { INDEXER_LANE } from '../store/database.ts'
import { SqlCorpusStore } from '../store/sql-corpus-store.ts'
import { makePlatformVectors } from './platform-vectors.ts'

/**
 * Retrieval from the configuration. No thread, connection or weights are loaded before a corpus is used. An embedded
 * store that exists is opened in the background at the start, because it will probably be used.
 */
export interface LiveRetrieval {
  readonly retriever: Retriever
  readonly corpora: Corpora
  readonly answers: AnswerCache
  /** Opens what will be needed and resumes unfinished indexing. Reports problems, and never throws. */
  warmUp(): Promise<void>
  close(): Promise<void>
}

export interface LiveRetrievalWorld {
  readonly clock: Clock
  readonly journal: Journal
  readonly store: LiveStore
  /** Reports a problem to the operator: a server without pgvector, a wrong password. */
  readonly complain: (problem: string) => void
  /** The platform, for vectors of its own embedding model; absent where retrieval runs as its own process. */
  readonly platform?: () => Platform
  /** Told when a part that a search can do without goes away and when it is back. */
  readonly onPart?: (what: string, isAway: boolean) => void
}

export async function makeLiveRetrieval(config: Config, world: LiveRetrievalWorld): Promise<LiveRetrieval> {
  const { clock, journal } = world
  const { url, apiKey = '' } = config.retrieval
  const embedder = await makeEmbedder(config, world)
  const embedderBreaker = breakerOf(world, 'embedder')
  const answerStore = await makeAnswerStore(config, world)
  const answers = new SemanticAnswerCache({ clock, store: answerStore, embedder, embedderBreaker })
  if (url !== undefined) {
    const remote = await makeRemote({ clock, url, apiKey, breaker: breakerOf(world, 'retrieval') }, answerStore)
    return { ...remote, answers, close: () => closeAll([remote, answerStore, embedder]) }
  }
  const { isEmbedded } = world.store
  const store = new SqlCorpusStore(world.store.database, { isEmbedded })
  const cache = await makeCache(config, world)
  const parts: SearchParts = {
    clock,
    store,
    embedder,
    storeBreaker: breakerOf(world, 'store'),
    embedderBreaker,
  }
  const directory = new CorpusDirectory(clock, store)
  const sampling = Rng.stream(makeSecretSeed(), 'passage-sampling')
  const indexer = new Indexer({
    clock,
    store: new SqlCorpusStore(world.store.database, { isEmbedded, lane: INDEXER_LANE }),
    embedder,
    estimateTokens: (text) => estimateTokens(text, sampling),
    onIndexed({ tenantId, corpusId }, facts) {
      directory.forget(tenantId, corpusId)
      journal.record({ kind: 'document-indexed', at: clock.now(), tenantId, ...facts })
    },
  })
  return {
    retriever: new PassageRetriever({ clock, parts, directory, cache, cacheTtlS: config.retrieval.cacheTtlS }),
    corpora: new StoreCorpora({
      clock,
      store,
      parts,
      directory,
      indexer,
      caches: [cache, answerStore],
      makeId: makeIds(),
    }),
    answers,
    async warmUp() {
      if (!world.store.isInUse) return
      try {
        await world.store.ready()
        indexer.wake()
      } catch (error) {
        world.complain(`retrieval: ${detailOf(error)}`)
      }
    },
    async close() {
      await indexer.stop()
      await closeAll([store, embedder, cache, answerStore])
    },
  }
}

async function makeRemote(
  options: HttpRetrievalOptions,
  answerStore: AnswerStore,
): Promise<Omit<LiveRetrieval, 'answers'>> {
  const { HttpRetrieval } = await import('../retrieval/http-retrieval.ts')
  const remote = new HttpRetrieval(options, [answerStore])
  return {
    retriever: remote,
    corpora: remote.corpora,
    warmUp: () => Promise.resolve(),
    close: () => remote.close(),
  }
}

async function makeEmbedder({ retrieval, engine }: Config, { clock, platform }: LiveRetrievalWorld): Promise<Embedder> {
  const { kind, url, model, dimensions, apiKey, timeoutMs, batchWaitMs } = retrieval.embedder
  const textsMax = engine.batchSizeMax
  const inner = async (): Promise<Embedder> => {
    if (kind === 'platform') {
      if (platform === undefined) throw new ConfigError([NO_PLATFORM])
      const ask = makePlatformVectors({ clock, platform, model, timeoutMs })
      return new PlatformEmbedder({ model, dimensions, textsMax, ask })
    }
    // Loaded only where it is used: its client is a large part of a start.
    const { HttpEmbedder } = await import('../retrieval/embedders/http-embedder.ts')
    return new HttpEmbedder({ url: url as string, model, dimensions, apiKey, timeoutMs })
  }
  const laned = (embedder: Embedder, placesMax: number): Embedder =>
    new CachedEmbedder(new LanedEmbedder(embedder, clock, placesMax))
  // The built-in embedder has one thread for questions.
  if (kind !== 'platform' && url === undefined) return laned(new UseLiteEmbedder(clock), 1)
  if (batchWaitMs === 0) return laned(await inner(), EMBEDDER_CONNECTIONS_MAX)
  // Two batches: the questions of one tenant, which has half of the places at most, still fill one.
  return laned(new BatchingEmbedder(await inner(), clock, { textsMax, waitUs: msToUs(batchWaitMs) }), 2 * textsMax)
}

const NO_PLATFORM =
  'retrieval.embedder.kind is "platform", but retrieval runs apart from it. Set kind to "http" and url to a gateway\u2019s /v1.'

async function closeAll(parts: ReadonlyArray<{ close(): Promise<void> }>): Promise<void> {
  await Promise.all(parts.map((part) => part.close()))
}

/** Gateways that share passages through Redis share answers too. */
async function makeAnswerStore({ retrieval }: Config, world: LiveRetrievalWorld): Promise<AnswerStore> {
  const { clock } = world
  const { redisUrl: url } = retrieval
  if (url === undefined) return new MemoryAnswerStore()
  const { RedisConnection } = await import('../redis/redis-connection.ts')
  const { RedisAnswerStore } = await import('../retrieval/answers/redis-answer-store.ts')
  const connection = new RedisConnection({ clock, url, breaker: breakerOf(world, 'redis-answers') })
  return new RedisAnswerStore({ clock, connection })
}

async function makeCache({ retrieval }: Config, world: LiveRetrievalWorld): Promise<PassageCache> {
  const memory = new MemoryPassageCache()
  if (retrieval.redisUrl === undefined || retrieval.cacheTtlS === 0) return memory
  const { RedisPassageCache } = await import('../retrieval/caches/redis-passage-cache.ts')
  const shared = new RedisPassageCache({
    clock: world.clock,
    url: retrieval.redisUrl,
    ttlS: retrieval.cacheTtlS,
    breaker: breakerOf(world, 'redis'),
  })
  return new TieredPassageCache(memory, shared)
}

function breakerOf({ journal, onPart }: LiveRetrievalWorld, what: string): Breaker {
  return new Breaker((state, at, because) => {
    journal.record({ kind: 'breaker-changed', at, what, state, ...(because !== undefined && { because }) })
    onPart?.(what, state === 'open')
  })
}
