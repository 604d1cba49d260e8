import type { Breaker } from '../../base/breaker.ts'
import type { Cancellation } from '../../base/cancellation.ts'
import type { Clock, Instant } from '../../base/clock.ts'
import { detailOf } from '../../base/detail-of.ts'
import { withinTime } from '../../base/within-time.ts'
import { type CorpusFacts, type DocumentFilter, LaneFull, type Passage } from '../../domain/corpus.ts'
import type { CorpusStore, Embedder, Hit, LaneWait, StoreOptions } from '../../lifecycle/retrieval-ports.ts'
import { toldReason } from '../told-reason.ts'
import { queryTermIds } from './analyse-text.ts'
import { coverageOf, toTermSearch } from './bm25.ts'
import { joinRanks, RANKS_MAX } from './join-ranks.ts'

/**
 * One search of one corpus: by words and by meaning at the same time, joined by rank. The halves need different things
 * (the store alone; the embedder, then the store), so one half may succeed when the other does not. At `joinAt` the
 * results that have arrived are joined; if none has, the first to come is taken. A search that is too late for its
 * caller is cancelled, in the store too.
 */
export interface SearchParts {
  readonly clock: Clock
  readonly store: CorpusStore
  readonly embedder: Embedder
  readonly storeBreaker: Breaker
  readonly embedderBreaker: Breaker
}

export interface Search {
  readonly query: string
  readonly limit: number
  readonly filter?: DocumentFilter | undefined
  /** When to go on with one half alone. */
  readonly joinAt: Instant
  /** When the search is worth nothing any more; it is then cancelled. */
  readonly deadlineAt: Instant
  readonly cancellation: Cancellation
}

export interface Found {
  readonly passages: readonly Passage[]
  readonly isWhole: boolean
  readonly because: string
}

/** A part of the search was late, broken, or left alone by its breaker. */
export class PartUnavailable extends Error {
  override readonly name = 'PartUnavailable'
  /** Late is not a failure; broken is. */
  readonly isLate: boolean

  constructor(message: string, isLate = false) {
    super(message)
    this.isLate = isLate
  }
}

interface TermHalf {
  readonly hits: readonly Hit[]
  readonly coverage: number
}

export async function searchCorpus(parts: SearchParts, corpus: CorpusFacts, search: Search): Promise<Found> {
  const arrived: { terms?: TermHalf; vectors?: readonly Hit[] } = {}
  const problems: string[] = []
  let isLate = false
  const note = (error: unknown): never => {
    problems.push(toldReason(error) ?? 'a part of the search broke')
    isLate ||= error instanceof PartUnavailable && error.isLate
    throw error
  }
  const halves = [
    searchByTerms(parts, corpus, search).then((terms) => Object.assign(arrived, { terms }), note),
    searchByVectors(parts, corpus, search).then((vectors) => Object.assign(arrived, { vectors }), note),
  ]
  await withinTime(parts.clock, search.joinAt, Promise.allSettled(halves))
  if (arrived.terms === undefined && arrived.vectors === undefined) {
    await Promise.any(halves).catch(() => {
      throw new PartUnavailable(problems.join('; '), isLate)
    })
  }
  const { terms, vectors } = arrived
  const isWhole = terms !== undefined && vectors !== undefined
  const missing = terms === undefined ? 'the search by words' : 'the search by meaning'
  const because = isWhole ? 'searched by words and by meaning' : `without ${missing}: ${problems[0] ?? 'it was late'}`
  const ranked = joinRanks({ terms: terms?.hits, vectors, coverage: terms?.coverage ?? 0 }, search.limit)
  if (ranked.length === 0) return { passages: [], isWhole, because }
  const ids = ranked.map((hit) => hit.passageId)
  const read = await fromStore(parts, search, (options) =>
    parts.store.readPassages(corpus.tenantId, corpus.id, ids, options),
  )
  const byId = new Map(read.map((passage) => [passage.id, passage]))
  const passages = ranked.flatMap(({ passageId, score }) => {
    const passage = byId.get(passageId)
    return passage === undefined ? [] : [{ ...passage, score }]
  })
  return { passages, isWhole, because }
}

async function searchByTerms(parts: SearchParts, corpus: CorpusFacts, search: Search): Promise<TermHalf> {
  const { tenantId, id } = corpus
  const termIds = queryTermIds(id, search.query)
  if (termIds.length === 0) return { hits: [], coverage: 0 }
  const facts = await fromStore(parts, search, (options) => parts.store.termFacts(tenantId, id, termIds, options))
  const asked = toTermSearch(facts, RANKS_MAX)
  if (asked === undefined) return { hits: [], coverage: 0 }
  const { filter } = search
  const hits = await fromStore(parts, search, (options) =>
    parts.store.searchTerms(tenantId, id, { ...asked, filter }, options),
  )
  const coverage = coverageOf(asked, hits[0]?.score ?? 0, termIds.length, facts.passageCount)
  return { hits, coverage }
}

async function searchByVectors(parts: SearchParts, corpus: CorpusFacts, search: Search): Promise<readonly Hit[]> {
  const { embedder, embedderBreaker, store } = parts
  if (corpus.embedder !== embedder.name) {
    throw new PartUnavailable(`the corpus was embedded by ${corpus.embedder}, not by ${embedder.name}`)
  }
  const { cancellation, filter, joinAt: deadlineAt } = search
  // After `joinAt` the vector is useless: that is the embedder's deadline.
  const { tenantId } = corpus
  const [vector] = await guarded(
    parts.clock,
    embedderBreaker,
    'the embedder',
    { deadlineAt, cancellation },
    (options) => embedder.embed([search.query], { kind: 'question', tenantId, ...options }),
  )
  if (vector === undefined) throw new PartUnavailable('the embedder gave no vector')
  return fromStore(parts, search, (options) =>
    store.searchVectors(tenantId, corpus.id, { vector, limit: RANKS_MAX, filter }, options),
  )
}

function fromStore<T>(parts: SearchParts, search: Search, ask: (options: StoreOptions) => Promise<T>): Promise<T> {
  return guarded(parts.clock, parts.storeBreaker, 'the store', search, ask)
}

/**
 * Calls a part only if its breaker allows it, waits at most until the deadline, and reports the result to the breaker.
 * A wait behind the tenant's own work is not reported: one tenant's flood must not open the breaker for all tenants.
 */
export async function guarded<T>(
  clock: Clock,
  breaker: Breaker,
  what: string,
  { deadlineAt, cancellation }: Pick<Search, 'deadlineAt' | 'cancellation'>,
  ask: (options: { readonly cancellation: Cancellation; readonly wait: LaneWait }) => Promise<T>,
): Promise<T> {
  if (!breaker.mayTry(clock.now())) throw new PartUnavailable(`${what} is left alone for a moment after failures`)
  const wait: LaneWait = { isOwnQueue: () => false }
  const waited = await withinTime(clock, deadlineAt, ask({ cancellation, wait }))
  const now = clock.now()
  if (waited.kind === 'done') {
    breaker.succeeded(now)
    return waited.value
  }
  const isFull = waited.kind === 'failed' && waited.error instanceof LaneFull
  // Cancelled before its deadline: not a failure of the part either.
  const isOwnDoing = isFull || wait.isOwnQueue() || (cancellation.isCancelled && now < deadlineAt)
  if (!isOwnDoing) breaker.failed(now, waited.kind === 'late' ? 'it was late' : detailOf(waited.error))
  if (waited.kind === 'late') throw new PartUnavailable(`${what} was late`, true)
  const reason = toldReason(waited.error)
  throw new PartUnavailable(`${what} failed${reason === undefined ? '' : ` (${reason})`}`)
}
