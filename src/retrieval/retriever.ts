import type { Clock, Instant } from '../base/clock.ts'
import { secondsToUs } from '../base/clock.ts'
import { withinTime } from '../base/within-time.ts'
import type { CorpusFacts } from '../domain/corpus.ts'
import type { CorpusAsk, CorpusLook, RetrievalAsk, Retrieved, Retriever } from '../lifecycle/retrieval-ports.ts'
import { type CachedPassages, type CacheKey, keyText, type PassageCache } from './caches/passage-cache.ts'
import { composePassages } from './compose-prompt.ts'
import type { CorpusDirectory } from './corpus-directory.ts'
import { Flights } from './flights.ts'
import { type Found, guarded, PartUnavailable, type SearchParts, searchCorpus } from './indexes/hybrid-search.ts'
import { toldReason } from './told-reason.ts'

/**
 * The story of one retrieval, inside its budget:
 *
 *   which corpus? ─▶ known already? ─▶ search ─▶ compose
 *                     good: `cached`     in time, both halves: `fresh`; one half: `reduced`
 *                     aged: `stale`,     late or broken: what a cache still has (`stale`), else nothing
 *                     and search again   (`skipped`: late; `failed`: broken)
 *                     in the background
 *
 * The budget is a promise to the waiting request: whatever the store, the embedder and the caches do, the result is
 * there when the budget ends, and what still runs then is cancelled. A cache entry from before a deletion is never used,
 * however late the search is, so that deleted text never comes back.
 */
export interface RetrieverOptions {
  readonly clock: Clock
  readonly parts: SearchParts
  readonly directory: CorpusDirectory
  readonly cache: PassageCache
  /** 0: nothing is cached. */
  readonly cacheTtlS: number
}

/** Longer questions are pasted documents: their beginning is enough, and embedding costs by the token. */
const QUERY_CHARACTERS_MAX = 1_000

/** An entry past its time may still be used for this many times that time. */
const STALE_RATIO = 12

/**
 * A half of the search that has not come at this part of the budget is left out; the rest of the budget is for reading
 * passages.
 */
const JOIN_RATIO = 0.75

/** A background search behind a stale answer may take this many budgets: no request waits for it. */
const REVALIDATE_RATIO = 8

export class PassageRetriever implements Retriever {
  readonly #options: RetrieverOptions
  readonly #flights: Flights<Found>

  constructor(options: RetrieverOptions) {
    this.#options = options
    this.#flights = new Flights(options.clock)
  }

  async retrieve(ask: RetrievalAsk): Promise<Retrieved> {
    const { clock } = this.#options
    const query = ask.query.trim().slice(0, QUERY_CHARACTERS_MAX)
    if (query === '') return nothing('skipped', 'the question has no text')
    if (ask.passagesMax < 1 || ask.tokensMax < 1) return nothing('skipped', 'the plan has no room for passages')
    if (ask.budgetUs <= 0) return nothing('skipped', 'no time is left for it')
    const deadlineAt = clock.now() + ask.budgetUs

    const { corpus, isCurrent, because } = await this.#corpusOf(ask, deadlineAt)
    if (corpus === undefined) return nothing('failed', because)

    const key: CacheKey = { tenantId: ask.tenantId, corpusId: corpus.id, query, passagesMax: ask.passagesMax }
    const cached = await this.#lookUp(key, deadlineAt)
    const worth = this.#worthOf(cached, corpus, isCurrent)
    if (cached !== undefined && worth === 'good') return answer('cached', 'found before', cached.passages, ask)
    if (cached !== undefined && worth === 'aged') {
      this.#searchBehind(key, corpus, ask.budgetUs)
      return answer('stale', 'found before, and searched again behind it', cached.passages, ask)
    }
    const lastResort = worth === 'old' ? cached : undefined
    if (!isCurrent) return this.#without(ask, lastResort, 'failed', because)

    const flight = this.#search(key, corpus, deadlineAt)
    const forget = ask.cancellation.onCancel(flight.leave)
    const waited = await withinTime(clock, deadlineAt, flight.landing)
    forget()
    flight.leave()
    if (waited.kind === 'late') return this.#without(ask, lastResort, 'skipped', 'the search was late')
    if (waited.kind === 'failed') return this.#without(ask, lastResort, outcomeOf(waited.error), reasonOf(waited.error))
    const { passages, isWhole, because: how } = waited.value
    return answer(isWhole ? 'fresh' : 'reduced', how, passages, ask)
  }

  lookUp(ask: CorpusAsk): CorpusLook | Promise<CorpusLook> {
    const { facts, isFresh } = this.#options.directory.known(ask.tenantId, ask.corpus)
    if (isFresh && facts !== undefined) return { kind: 'found', corpus: facts }
    return this.#corpusOf(ask, this.#options.clock.now() + ask.budgetUs).then(({ corpus, isCurrent, isKnown }) => {
      if (!isKnown) return { kind: 'unknown' }
      return corpus === undefined || !isCurrent ? { kind: 'none' } : { kind: 'found', corpus }
    })
  }

  /** The corpus: fresh from memory, or from the store in time; else what was last known of it. */
  async #corpusOf(ask: CorpusAsk, deadlineAt: Instant): Promise<Resolved> {
    const { directory, parts } = this.#options
    const { tenantId, corpus: name, cancellation } = ask
    const known = directory.known(tenantId, name)
    if (known.isFresh && known.facts !== undefined)
      return { corpus: known.facts, isCurrent: true, isKnown: true, because: 'known' }
    try {
      const limits = { deadlineAt, cancellation }
      const corpus = await guarded(parts.clock, parts.storeBreaker, 'the store', limits, (options) =>
        directory.ask(tenantId, name, options),
      )
      return { corpus, isCurrent: corpus !== undefined, isKnown: true, because: `you have no corpus '${name}'` }
    } catch (error) {
      return { corpus: known.facts, isCurrent: false, isKnown: false, because: reasonOf(error) }
    }
  }

  async #lookUp(key: CacheKey, deadlineAt: Instant): Promise<CachedPassages | undefined> {
    const { cache, cacheTtlS, clock } = this.#options
    if (cacheTtlS === 0) return undefined
    const found = cache.get(key)
    if (!(found instanceof Promise)) return found
    const waited = await withinTime(clock, deadlineAt, found)
    return waited.kind === 'done' ? waited.value : undefined
  }

  /** `good`: as if searched now. `aged`: past its time, but the corpus is unchanged. `old`: better than nothing. */
  #worthOf(cached: CachedPassages | undefined, corpus: CorpusFacts, isCurrent: boolean): Worth {
    if (cached === undefined || cached.deletions !== corpus.deletions) return 'none'
    const ageUs = this.#options.clock.now() - cached.storedAt
    const ttlUs = secondsToUs(this.#options.cacheTtlS)
    if (ageUs > ttlUs * STALE_RATIO) return 'none'
    if (!isCurrent || cached.version !== corpus.version) return 'old'
    return ageUs <= ttlUs ? 'good' : 'aged'
  }

  #search(key: CacheKey, corpus: CorpusFacts, deadlineAt: Instant) {
    const { clock, parts, cache, cacheTtlS } = this.#options
    return this.#flights.join(keyText(key), deadlineAt, async (cancellation, flightEndsAt) => {
      const now = clock.now()
      const found = await searchCorpus(parts, corpus, {
        query: key.query,
        limit: key.passagesMax,
        joinAt: now + Math.round((flightEndsAt - now) * JOIN_RATIO),
        deadlineAt: flightEndsAt,
        cancellation,
      })
      const { version, deletions } = corpus
      const isKept = cacheTtlS > 0 && found.isWhole
      if (isKept) cache.set(key, { version, deletions, storedAt: clock.now(), passages: found.passages })
      return found
    })
  }

  #searchBehind(key: CacheKey, corpus: CorpusFacts, budgetUs: number): void {
    const { clock } = this.#options
    const { landing, leave } = this.#search(key, corpus, clock.now() + budgetUs * REVALIDATE_RATIO)
    void landing.then(leave, leave)
  }

  /** Late or broken: the passages of a cache, else none. The request goes on either way. */
  #without(
    ask: RetrievalAsk,
    lastResort: CachedPassages | undefined,
    outcome: 'skipped' | 'failed',
    because: string,
  ): Retrieved {
    if (lastResort === undefined) return nothing(outcome, because)
    return answer('stale', `found before; ${because}`, lastResort.passages, ask)
  }
}

type Worth = 'good' | 'aged' | 'old' | 'none'

interface Resolved {
  readonly corpus: CorpusFacts | undefined
  /** False when the store did not answer: then only caches can help. */
  readonly isCurrent: boolean
  /** The store confirmed the corpus, now or a moment ago. */
  readonly isKnown: boolean
  readonly because: string
}

function answer(
  outcome: Retrieved['outcome'],
  because: string,
  ranked: CachedPassages['passages'],
  ask: RetrievalAsk,
): Retrieved {
  return { outcome, because, passages: composePassages(ranked, ask) }
}

const nothing = (outcome: 'skipped' | 'failed', because: string): Retrieved => ({ outcome, because, passages: [] })

const reasonOf = (error: unknown): string => toldReason(error) ?? 'a part of retrieval broke'

const outcomeOf = (error: unknown): 'skipped' | 'failed' =>
  error instanceof PartUnavailable && error.isLate ? 'skipped' : 'failed'
