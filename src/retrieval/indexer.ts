import type { Clock } from '../base/clock.ts'
import { secondsToUs } from '../base/clock.ts'
import type { CorpusStore, Embedder, PassageDraft, UnfinishedDocument } from '../lifecycle/retrieval-ports.ts'
import { countTerms } from './indexes/analyse-text.ts'
import { termWeights } from './indexes/bm25.ts'
import { splitPassages } from './split-passages.ts'
import { toldReason } from './told-reason.ts'

/**
 * The indexer makes documents searchable in the background, one after the other. First all waiting documents are split
 * and stored, which takes milliseconds; from then on they are found by their words. Then they are embedded, a few
 * passages at a time, which takes a tenth of a second each with the built-in embedder. Every step is stored and can be
 * repeated, so that a new process goes on where the last one stopped (`unfinished`).
 *
 * The indexer waits for a store or embedder that does not answer, with growing pauses. A faulty document fails alone.
 */
export interface IndexerOptions {
  readonly clock: Clock
  readonly store: CorpusStore
  readonly embedder: Embedder
  readonly estimateTokens: (text: string) => number
  readonly onIndexed: (document: UnfinishedDocument, facts: IndexedFacts) => void
}

export interface IndexedFacts {
  readonly status: 'completed' | 'failed'
  readonly passageCount: number
  readonly tookUs: number
  readonly because: string
}

/** Passages of a statement: this many hold the embedded store for 20 ms, and a search waits that long. */
const PASSAGES_PER_STATEMENT = 8
const PASSAGES_PER_LOOK = 64
const DOCUMENTS_PER_LOOK = 32
/** Statistics are refreshed after this many passages, then whenever there are half as many again. */
const REFRESH_COUNT_MIN = 200
const REFRESH_GROWTH = 1.5
const PAUSE_US_MIN = secondsToUs(0.5)
const PAUSE_US_MAX = secondsToUs(30)
/** A step that failed this often in a row fails its document: a restart would not help. */
const ATTEMPTS_MAX = 20

export class Indexer {
  readonly #options: IndexerOptions
  #isRunning = false
  #isWanted = false
  #isStopped = false
  #idle: Promise<void> = Promise.resolve()
  #writtenCount = 0
  #refreshAtCount = REFRESH_COUNT_MIN

  constructor(options: IndexerOptions) {
    this.#options = options
  }

  /** Starts indexing if something waits. Returns at once. */
  wake(): void {
    this.#isWanted = true
    if (this.#isRunning || this.#isStopped) return
    this.#isRunning = true
    this.#idle = this.#run()
      // The store has been away for minutes. Nothing is lost: the next `wake` goes on.
      .catch(() => {})
      .finally(() => {
        this.#isRunning = false
      })
  }

  /** Ends after the running step. The next process goes on from there. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#idle
  }

  async #run(): Promise<void> {
    while (this.#isWanted && !this.#isStopped) {
      this.#isWanted = false
      const documents = await this.#patiently(() => this.#options.store.unfinished(DOCUMENTS_PER_LOOK))
      if (documents === undefined) return
      for (const document of documents) {
        if (this.#isStopped) return
        await this.#index(document)
        if (this.#writtenCount >= this.#refreshAtCount) await this.#refresh()
      }
      if (documents.length > 0) this.#isWanted = true
      else if (this.#writtenCount > 0) await this.#refresh()
    }
  }

  async #refresh(): Promise<void> {
    await this.#patiently(() => this.#options.store.refreshStatistics())
    this.#refreshAtCount = Math.max(REFRESH_COUNT_MIN, Math.round(this.#refreshAtCount * REFRESH_GROWTH))
    this.#writtenCount = 0
  }

  async #index(document: UnfinishedDocument): Promise<void> {
    const { clock, store, embedder, onIndexed } = this.#options
    const { tenantId, corpusId, documentId } = document
    const startedAt = clock.now()
    let passageCount = 0
    const end = async (status: 'completed' | 'failed', because: string): Promise<void> => {
      const reason = status === 'failed' ? because : undefined
      await this.#patiently(() =>
        store.finishDocument(tenantId, corpusId, documentId, { status, ...(reason && { because: reason }) }),
      )
      onIndexed(document, { status, passageCount, tookUs: clock.now() - startedAt, because })
    }
    try {
      if (document.dimensions !== embedder.dimensions) throw new Error('the corpus was made with another embedder')
      if (!document.isSplit) await this.#split(document)
      else {
        const count = await this.#embedAll(document)
        passageCount = count ?? 0
        if (count !== undefined && !this.#isStopped) await end('completed', 'indexed')
      }
    } catch (error) {
      // The client reads this as the document's error.
      if (!this.#isStopped) await end('failed', toldReason(error) ?? 'the embedder or the store failed again and again')
    }
  }

  async #split({ tenantId, corpusId, documentId }: UnfinishedDocument): Promise<void> {
    const { store } = this.#options
    const text = await this.#patiently(() => store.documentText(tenantId, corpusId, documentId))
    if (text === undefined) return
    const drafts = this.#drafts(corpusId, text)
    for (let i = 0; i < drafts.length && !this.#isStopped; i += PASSAGES_PER_STATEMENT) {
      const part = drafts.slice(i, i + PASSAGES_PER_STATEMENT)
      await this.#patiently(() => store.addPassages(tenantId, corpusId, documentId, part))
      this.#writtenCount += part.length
    }
    if (!this.#isStopped) await this.#patiently(() => store.finishSplit(tenantId, corpusId, documentId))
  }

  #drafts(corpusId: string, text: string): PassageDraft[] {
    return splitPassages(text).map((passage, position) => ({
      position,
      text: passage,
      tokens: Math.max(1, Math.round(this.#options.estimateTokens(passage))),
      ...termWeights(countTerms(corpusId, passage)),
    }))
  }

  /**
   * The number of embedded passages; undefined when it was told to stop before the end. The next vectors are made while
   * the last ones are written.
   */
  async #embedAll({ tenantId, corpusId, documentId }: UnfinishedDocument): Promise<number | undefined> {
    const { store, embedder } = this.#options
    let count = 0
    while (!this.#isStopped) {
      const missing = await this.#patiently(() => store.unembedded(tenantId, corpusId, documentId, PASSAGES_PER_LOOK))
      if (missing === undefined) return undefined
      if (missing.length === 0) return count
      let writing: Promise<unknown> = Promise.resolve()
      for (let i = 0; i < missing.length && !this.#isStopped; i += PASSAGES_PER_STATEMENT) {
        const part = missing.slice(i, i + PASSAGES_PER_STATEMENT)
        const texts = part.map(({ text }) => text)
        const [made] = await Promise.all([this.#patiently(() => embedder.embed(texts, { kind: 'passage' })), writing])
        if (made === undefined) return undefined
        const vectors = part.map(({ passageId }, at) => ({ passageId, vector: made[at] as Float32Array }))
        writing = this.#patiently(() => store.setVectors(tenantId, corpusId, vectors))
        count += vectors.length
        this.#writtenCount += vectors.length
      }
      await writing
    }
    return undefined
  }

  /** Repeats a step until it works, the process stops (then undefined), or it has failed too often. */
  async #patiently<T>(step: () => Promise<T>): Promise<T | undefined> {
    const { clock } = this.#options
    let pauseUs = PAUSE_US_MIN
    for (let attempt = 1; !this.#isStopped; attempt++) {
      try {
        return await step()
      } catch (error) {
        if (attempt >= ATTEMPTS_MAX || isHopeless(error)) throw error
        await this.#pause(pauseUs, clock)
        pauseUs = Math.min(PAUSE_US_MAX, pauseUs * 2)
      }
    }
    return undefined
  }

  /** Sleeps in short pieces, so that stopping does not wait for a long pause. */
  async #pause(durationUs: number, clock: Clock): Promise<void> {
    const endsAt = clock.now() + durationUs
    while (!this.#isStopped && clock.now() < endsAt) await clock.sleep(Math.min(PAUSE_US_MIN, endsAt - clock.now()))
  }
}

/** The store refused the statement (an SQL error has a code of five characters): repeating it changes nothing. */
function isHopeless(error: unknown): boolean {
  const code = (error as { code?: unknown }).code
  return typeof code === 'string' && /^(22|23|42)/.test(code) && code.length === 5
}
