import type { Clock, Instant } from '../base/clock.ts'
import type { CorpusStore, Embedder, PassageDraft, UnfinishedDocument } from '../lifecycle/retrieval-ports.ts'
import { countTerms } from './indexes/analyse-text.ts'
import { termWeights } from './indexes/bm25.ts'
import { splitPassages } from './split-passages.ts'
import { StepRepeater } from './step-repeater.ts'
import { toldReason } from './told-reason.ts'

/**
 * The indexer makes documents searchable in the background. First all waiting documents are split and stored, which
 * takes milliseconds; from then on they are found by their words. Then they are embedded, which takes a tenth of a
 * second for each passage with the built-in embedder. Every step is stored and can be repeated, so that a new process
 * goes on where the last one stopped (`unfinished`).
 *
 *   round ─▶ a few passages of each of the next documents, tenants in turns ─▶ by length, in sets ─▶ embed ─▶ write
 *
 * A round takes passages of many documents together, because the embedder is faster with sets of texts of the same
 * length, and most documents have two or three passages. It takes few of each, so that a long document does not hold up
 * those of other tenants. What is in memory is one round: 64 passages and their vectors.
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
const PASSAGES_PER_ROUND = 64
/** Passages of one document in one round at least, where many documents wait: with fewer it is looked at too often. */
const PASSAGES_PER_DOCUMENT_MIN = 2
const DOCUMENTS_PER_LOOK = 32
/** Statistics are refreshed after this many passages, then whenever there are half as many again. */
const REFRESH_COUNT_MIN = 200
const REFRESH_GROWTH = 1.5
/** Tries of a set with passages of several documents; then each document is tried by itself. */
const SET_ATTEMPTS_MAX = 3
/** Documents whose beginning is remembered; of one that is forgotten, the time told is too short. */
const BEGUN_MAX = 4_096

/** A document in a round. */
interface Job {
  readonly document: UnfinishedDocument
  readonly progress: Progress
  /** The store has no more passages without a vector than those of this round. */
  isLastRound: boolean
  error: unknown
}

interface Progress {
  readonly startedAt: Instant
  embeddedCount: number
}

interface Passage {
  readonly job: Job
  readonly passageId: string
  readonly text: string
}

export class Indexer {
  readonly #options: IndexerOptions
  readonly #steps: StepRepeater
  readonly #begun = new Map<string, Progress>()
  #isRunning = false
  #isWanted = false
  #idle: Promise<void> = Promise.resolve()
  #writtenCount = 0
  #refreshAtCount = REFRESH_COUNT_MIN

  constructor(options: IndexerOptions) {
    this.#options = options
    this.#steps = new StepRepeater(options.clock)
  }

  /** Starts indexing if something waits. Returns at once. */
  wake(): void {
    this.#isWanted = true
    if (this.#isRunning || this.#steps.isStopped) return
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
    this.#steps.stop()
    await this.#idle
  }

  async #run(): Promise<void> {
    while (this.#isWanted && !this.#steps.isStopped) {
      this.#isWanted = false
      const documents = await this.#steps.repeat(() => this.#options.store.unfinished(DOCUMENTS_PER_LOOK))
      if (documents === undefined) return
      const jobs = documents.map((document) => this.#jobOf(document))
      for (const job of jobs) if (!job.document.isSplit) await this.#attempt([job], () => this.#split(job.document))
      // Documents that wait to be split come first, so that all are found by their words before any is embedded.
      if (jobs.every((job) => job.document.isSplit)) await this.#embedRound(jobs)
      for (const job of jobs) if (job.error !== undefined) await this.#fail(job)
      if (this.#writtenCount >= this.#refreshAtCount) await this.#refresh()
      if (documents.length > 0) this.#isWanted = true
      else if (this.#writtenCount > 0) await this.#refresh()
    }
  }

  async #refresh(): Promise<void> {
    await this.#steps.repeat(() => this.#options.store.refreshStatistics())
    this.#refreshAtCount = Math.max(REFRESH_COUNT_MIN, Math.round(this.#refreshAtCount * REFRESH_GROWTH))
    this.#writtenCount = 0
  }

  #jobOf(document: UnfinishedDocument): Job {
    const key = keyOf(document)
    const known = this.#begun.get(key)
    const progress = known ?? { startedAt: this.#options.clock.now(), embeddedCount: 0 }
    if (known === undefined && this.#begun.size < BEGUN_MAX) this.#begun.set(key, progress)
    const isForeign = document.dimensions !== this.#options.embedder.dimensions
    const error = isForeign ? new Error('the corpus was made with another embedder') : undefined
    return { document, progress, isLastRound: false, error }
  }

  /** Does something for these documents; what throws is their error. */
  async #attempt(jobs: readonly Job[], step: () => Promise<void>): Promise<void> {
    if (this.#steps.isStopped || jobs.every((job) => job.error !== undefined)) return
    try {
      await step()
    } catch (error) {
      for (const job of jobs) job.error ??= error
    }
  }

  async #split({ tenantId, corpusId, documentId }: UnfinishedDocument): Promise<void> {
    const { store } = this.#options
    const text = await this.#steps.repeat(() => store.documentText(tenantId, corpusId, documentId))
    if (text === undefined) return
    const passages = splitPassages(text)
    for (let i = 0; i < passages.length && !this.#steps.isStopped; i += PASSAGES_PER_STATEMENT) {
      // Drafts are made statement by statement: those of a long document would be several times its size.
      const part = passages.slice(i, i + PASSAGES_PER_STATEMENT).map((one, at) => this.#draft(corpusId, one, i + at))
      await this.#steps.repeat(() => store.addPassages(tenantId, corpusId, documentId, part))
      this.#writtenCount += part.length
    }
    if (!this.#steps.isStopped) await this.#steps.repeat(() => store.finishSplit(tenantId, corpusId, documentId))
  }

  #draft(corpusId: string, text: string, position: number): PassageDraft {
    return {
      position,
      text,
      tokens: Math.max(1, Math.round(this.#options.estimateTokens(text))),
      ...termWeights(countTerms(corpusId, text)),
    }
  }

  /** Embeds some passages of these documents, and finishes the documents that have no more. */
  async #embedRound(jobs: readonly Job[]): Promise<void> {
    const passages = await this.#gather(jobs)
    passages.sort((a, b) => a.text.length - b.text.length)
    // The next vectors are made while the last ones are written.
    let writing: Promise<unknown> = Promise.resolve()
    for (let i = 0; i < passages.length && !this.#steps.isStopped; i += PASSAGES_PER_STATEMENT) {
      const part = passages.slice(i, i + PASSAGES_PER_STATEMENT)
      const [vectors] = await Promise.all([this.#embed(part), writing])
      writing = this.#write(part, vectors)
    }
    await writing
    for (const job of jobs) if (job.isLastRound) await this.#attempt([job], () => this.#finish(job))
  }

  async #gather(jobs: readonly Job[]): Promise<Passage[]> {
    const { store } = this.#options
    const passages: Passage[] = []
    const share = Math.max(PASSAGES_PER_DOCUMENT_MIN, Math.ceil(PASSAGES_PER_ROUND / jobs.length))
    for (const job of jobs) {
      const room = Math.min(share, PASSAGES_PER_ROUND - passages.length)
      if (room <= 0) break
      await this.#attempt([job], async () => {
        const { tenantId, corpusId, documentId } = job.document
        const found = await this.#steps.repeat(() => store.unembedded(tenantId, corpusId, documentId, room))
        if (found === undefined) return
        job.isLastRound = found.length < room
        for (const { passageId, text } of found) passages.push({ job, passageId, text })
      })
    }
    return passages
  }

  /** The vectors of these passages; absent for documents that fail. */
  async #embed(passages: readonly Passage[]): Promise<ReadonlyMap<Passage, Float32Array>> {
    const { embedder } = this.#options
    const made = new Map<Passage, Float32Array>()
    const embed = async (part: readonly Passage[], attemptsMax?: number): Promise<void> => {
      const texts = part.map(({ text }) => text)
      const vectors = await this.#steps.repeat(() => embedder.embed(texts, { kind: 'passage' }), attemptsMax)
      if (vectors === undefined) return
      for (const [i, passage] of part.entries()) {
        const vector = vectors[i]
        if (vector === undefined) throw new Error('the embedder gave too few vectors')
        made.set(passage, vector)
      }
    }
    const jobs = [...new Set(passages.map(({ job }) => job))]
    if (jobs.length === 1) {
      await this.#attempt(jobs, () => embed(passages))
      return made
    }
    try {
      await embed(passages, SET_ATTEMPTS_MAX)
    } catch {
      // One text may be at fault: each document by itself shows whose it is.
      for (const job of jobs) {
        await this.#attempt([job], () => embed(passages.filter((passage) => passage.job === job)))
      }
    }
    return made
  }

  /** One statement for each corpus. */
  async #write(passages: readonly Passage[], vectors: ReadonlyMap<Passage, Float32Array>): Promise<void> {
    const corpora = new Map<string, Passage[]>()
    for (const passage of passages) {
      const { tenantId, corpusId } = passage.job.document
      const key = `${tenantId}\n${corpusId}`
      corpora.set(key, [...(corpora.get(key) ?? []), passage])
    }
    for (const part of corpora.values()) {
      const { tenantId, corpusId } = (part[0] as Passage).job.document
      const made = part.filter((passage) => vectors.has(passage))
      const rows = made.map((passage) => ({
        passageId: passage.passageId,
        vector: vectors.get(passage) as Float32Array,
      }))
      const jobs = [...new Set(part.map(({ job }) => job))]
      await this.#attempt(jobs, async () => {
        await this.#steps.repeat(() => this.#options.store.setVectors(tenantId, corpusId, rows))
        for (const { job } of made) job.progress.embeddedCount++
        this.#writtenCount += rows.length
      })
    }
  }

  async #finish(job: Job): Promise<void> {
    const { tenantId, corpusId, documentId } = job.document
    const { store } = this.#options
    await this.#steps.repeat(() => store.finishDocument(tenantId, corpusId, documentId, { status: 'completed' }))
    this.#told(job, 'completed', 'indexed')
  }

  async #fail(job: Job): Promise<void> {
    if (this.#steps.isStopped) return
    const { tenantId, corpusId, documentId } = job.document
    // The client reads this as the document's error.
    const because = toldReason(job.error) ?? 'the embedder or the store failed again and again'
    const end = { status: 'failed', because } as const
    await this.#steps.repeat(() => this.#options.store.finishDocument(tenantId, corpusId, documentId, end))
    this.#told(job, 'failed', because)
  }

  #told({ document, progress }: Job, status: IndexedFacts['status'], because: string): void {
    if (this.#steps.isStopped) return
    this.#begun.delete(keyOf(document))
    const tookUs = this.#options.clock.now() - progress.startedAt
    this.#options.onIndexed(document, { status, passageCount: progress.embeddedCount, tookUs, because })
  }
}

const keyOf = ({ tenantId, corpusId, documentId }: UnfinishedDocument): string =>
  `${tenantId}\n${corpusId}\n${documentId}`
