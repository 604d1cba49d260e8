/**
 * How long does a search take, and what does the gateway's event loop feel of it?
 *
 * 10,000 passages of one tenant in the embedded store (with a second tenant of the same size beside it, if asked for).
 * Their vectors are made up, clustered as real ones are, because where an index looks does not depend on what a vector
 * means; the questions' vectors come from the real embedder. Measured one after the other, each after a warm-up:
 *
 *   store      words and meaning joined and read, the question's vector given (no embedding)
 *   embedded   the same with the embedder
 *   cached     the same question again
 *   loop       the delay of this thread's event loop at 20 searches a second for 20 s, against none
 *
 *   node bench/retrieval/search.ts pubmedqa-1000.json FOLDER [passages: 10000]
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Breaker } from '../../src/base/breaker.ts'
import { Cancellation } from '../../src/base/cancellation.ts'
import { msToUs, secondsToUs } from '../../src/base/clock.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import { Rng } from '../../src/base/rng.ts'
import type { Embedder, EmbedOptions } from '../../src/lifecycle/retrieval-ports.ts'
import { MemoryPassageCache } from '../../src/retrieval/caches/memory-passage-cache.ts'
import { StoreCorpora } from '../../src/retrieval/corpora.ts'
import { CorpusDirectory } from '../../src/retrieval/corpus-directory.ts'
import { UseLiteEmbedder } from '../../src/retrieval/embedders/live-use-lite.ts'
import { toUnit } from '../../src/retrieval/embedders/to-unit.ts'
import { Indexer } from '../../src/retrieval/indexer.ts'
import { searchCorpus } from '../../src/retrieval/indexes/hybrid-search.ts'
import { PassageRetriever } from '../../src/retrieval/retriever.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { PreparedDatabase } from '../../src/store/prepared-database.ts'
import { SqlCorpusStore } from '../../src/store/sql-corpus-store.ts'
import { argument, indexAll, paragraphs, quantiles, readRecords, TENANT } from './rig.ts'

const path = argument(0, 'the texts, pubmedqa-1000.json')
const folder = argument(1, 'a folder for the store')
const count = Number(process.argv[4] ?? 10_000)
// Deadlines alone let a process end; a bench must not.
const stay = setInterval(() => {}, 1_000)
const clock = new LiveClock()
const real = new UseLiteEmbedder(clock)
const rng = Rng.stream(1, 'vectors')
const gauss = (): number => Math.sqrt(-2 * Math.log(rng.next() + 1e-12)) * Math.cos(2 * Math.PI * rng.next())
const centres = Array.from({ length: 100 }, () => Float32Array.from({ length: 512 }, gauss))
const known = new Map<string, Float32Array>()

/** Made-up vectors for passages; for questions the real one, or what was computed before the clock started. */
const embedder: Embedder = {
  name: real.name,
  dimensions: real.dimensions,
  embed(texts: readonly string[], options: EmbedOptions) {
    if (options.kind === 'question') {
      const given = known.get(texts[0] as string)
      return given === undefined ? real.embed(texts, options) : Promise.resolve([given])
    }
    const centre = centres[rng.below(100)] as Float32Array
    return Promise.resolve(texts.map(() => toUnit(centre.map((part) => part + 0.6 * gauss()))))
  },
  close: () => real.close(),
}

const store = new SqlCorpusStore(new PreparedDatabase(new PgliteDatabase({ clock, path: folder }), (db) => migrate(db)))
const parts = { clock, store, embedder, storeBreaker: new Breaker(), embedderBreaker: new Breaker() }
const directory = new CorpusDirectory(clock, store)
const indexer = new Indexer({ clock, store, embedder, estimateTokens: (text) => text.length / 4, onIndexed: () => {} })
let lastId = 0
const corpora = new StoreCorpora({
  clock,
  store,
  parts,
  directory,
  indexer,
  caches: [],
  makeId: () => `bench${++lastId}`,
})
indexer.wake()
const corpus = await indexAll({ corpora } as never, 'paragraphs', paragraphs(path, count))
const questions = readRecords(path).map(([, { QUESTION }]) => QUESTION)

async function searchOnce(query: string): Promise<number> {
  const startedAt = performance.now()
  const deadlineAt = clock.now() + secondsToUs(10)
  await searchCorpus(parts, corpus, {
    query,
    limit: 5,
    joinAt: deadlineAt,
    deadlineAt,
    cancellation: new Cancellation(),
  })
  return performance.now() - startedAt
}

async function series(
  name: string,
  queries: readonly string[],
  run: (query: string) => Promise<number>,
): Promise<void> {
  for (const query of queries.slice(0, 30)) await run(query)
  const samples: number[] = []
  for (const query of queries) samples.push(await run(query))
  console.log(`${name.padEnd(9)} ${quantiles(samples)}`)
}

const withVector = questions.slice(0, 300)
for (const query of withVector) known.set(query, (await real.embed([query], { kind: 'question' }))[0] as Float32Array)
await series('store', withVector, searchOnce)
await series('embedded', questions.slice(300, 600), searchOnce)

const cache = new MemoryPassageCache()
const retriever = new PassageRetriever({ clock, parts, directory, cache, cacheTtlS: 3_600 })
const retrieve = async (query: string): Promise<number> => {
  const startedAt = performance.now()
  const cancellation = new Cancellation()
  const bounds = { passagesMax: 5, tokensMax: 2_000, budgetUs: msToUs(2_000) }
  await retriever.retrieve({ tenantId: TENANT, corpus: corpus.id, query, ...bounds, cancellation })
  return performance.now() - startedAt
}
for (const query of withVector) await retrieve(query)
await series('cached', withVector, retrieve)

async function loopDelay(name: string, searchesPerS: number, seconds: number): Promise<void> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const running: Promise<unknown>[] = []
  let lateCount = 0
  for (let i = 0; i < seconds * 20; i++) {
    const question = questions[(600 + i) % questions.length] as string
    if (searchesPerS > 0) running.push(searchOnce(question).catch(() => void lateCount++))
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await Promise.all(running)
  delay.disable()
  const ms = (ns: number): string => (ns / 1e6).toFixed(2)
  console.log(
    `loop ${name.padEnd(12)} p50 ${ms(delay.percentile(50))}  p99 ${ms(delay.percentile(99))}  max ${ms(delay.max)} ms${lateCount > 0 ? `, ${lateCount} searches took over 10 s` : ''}`,
  )
}
await loopDelay('idle', 0, 20)
await loopDelay('20 per s', 20, 20)
await loopDelay('idle again', 0, 20)
console.log(`memory ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`)
clearInterval(stay)
await indexer.stop()
await Promise.all([store.close(), real.close()])
process.exit(0)
