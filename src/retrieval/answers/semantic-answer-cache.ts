import type { Breaker } from '../../base/breaker.ts'
import type { Clock } from '../../base/clock.ts'
import { msToUs } from '../../base/clock.ts'
import type { AnswerAsk, AnswerCache, FoundAnswer, KeptAnswer } from '../../lifecycle/ports.ts'
import type { Embedder } from '../../lifecycle/retrieval-ports.ts'
import { guarded } from '../indexes/hybrid-search.ts'
import type { AnswerCandidate, AnswerStore } from './answer-store.ts'
import { hasSameWords, wordsOf } from './same-words.ts'
import { shelfOf } from './shelf.ts'

/**
 * The semantic cache: whole answers, found again by the meaning of their question (the idea of GPTCache, Bang, 2023).
 * The name of a shelf says what must be equal. On the shelf, the nearest question with the same words is taken if its
 * similarity reaches the tenant's threshold. If the shelf is empty nothing is embedded, so a question with a new prompt
 * costs one lookup.
 *
 * The threshold depends on the embedder: `bench/retrieval/calibrate-answers.ts` measures it on a set of paraphrases and
 * of questions that only look alike (docs/adr/0016).
 */
export interface SemanticAnswerOptions {
  readonly clock: Clock
  readonly store: AnswerStore
  readonly embedder: Embedder
  readonly embedderBreaker: Breaker
  /** Time limit of a lookup; after it the request goes on without the cache. */
  readonly findUsMax?: number
}

/** The built-in embedder takes 20 ms for a question; promises of the first token are hundreds of milliseconds. */
const FIND_US_MAX = msToUs(100)

/** Longer questions are pasted documents: two of them are never the same, and may differ in one word. */
const QUESTION_CHARACTERS_MAX = 1_000

/** Characters of an answer that are compared: its beginning is enough, and embedding costs by the token. */
const LIKENESS_CHARACTERS_MAX = 700

export class SemanticAnswerCache implements AnswerCache {
  readonly #options: SemanticAnswerOptions

  constructor(options: SemanticAnswerOptions) {
    this.#options = options
  }

  async find(ask: AnswerAsk): Promise<FoundAnswer> {
    const { clock, store, findUsMax = FIND_US_MAX } = this.#options
    if (!isAskable(ask.question)) return { kind: 'skipped', because: 'the question is empty or very long' }
    const deadlineAt = clock.now() + findUsMax
    const shelf = shelfOf(ask)
    const candidates = await store.candidates(shelf)
    if (candidates === undefined) return { kind: 'skipped', because: 'the cache could not be asked' }
    if (candidates.length === 0) return { kind: 'miss', because: 'nothing like it was asked' }
    const vector = await this.#embed(ask, deadlineAt, ask.cancellation)
    if (vector === undefined) return { kind: 'skipped', because: 'the question could not be embedded in time' }
    const alike = candidates.filter(({ words }) => hasSameWords(words, wordsOf(ask.question)))
    const nearest = nearestOf(vector, alike, clock.now())
    if (nearest === undefined) return { kind: 'miss', because: 'nothing of the same words was asked' }
    const { similarity, candidate } = nearest
    const { similarityMin } = ask.terms
    const seen = similarity.toFixed(3)
    if (similarity < similarityMin) return { kind: 'miss', because: `nearest ${seen} < ${similarityMin}`, similarity }
    const answer = await store.read(shelf, candidate.id)
    return answer === undefined
      ? { kind: 'miss', because: 'its answer was forgotten', similarity }
      : { kind: 'hit', answer, similarity }
  }

  keep(ask: AnswerAsk, answer: KeptAnswer): void {
    if (isAskable(ask.question)) void this.#keep(ask, answer)
  }

  async likeness(known: KeptAnswer, fresh: KeptAnswer): Promise<number | undefined> {
    if (known.content === undefined || fresh.content === undefined) return undefined
    const texts = [known.content, fresh.content].map((text) => text.slice(0, LIKENESS_CHARACTERS_MAX))
    const [a, b] = await this.#options.embedder.embed(texts, { kind: 'passage' })
    return a === undefined || b === undefined ? undefined : cosine(a, b)
  }

  /** Stores the answer in the background: the question is embedded when there is time, and failures are ignored. */
  async #keep(ask: AnswerAsk, answer: KeptAnswer): Promise<void> {
    const { clock, store, findUsMax = FIND_US_MAX } = this.#options
    const vector = await this.#embed(ask, clock.now() + KEEP_RATIO * findUsMax)
    if (vector !== undefined)
      store.add(shelfOf(ask), {
        vector,
        words: wordsOf(ask.question),
        answer,
        expiresAt: clock.now() + ask.terms.ttlUs,
      })
  }

  async #embed(
    { tenantId, question }: AnswerAsk,
    deadlineAt: number,
    cancellation?: AnswerAsk['cancellation'],
  ): Promise<Float32Array | undefined> {
    const { clock, embedder, embedderBreaker } = this.#options
    const limits = { deadlineAt, cancellation: cancellation ?? NEVER_CANCELLED }
    try {
      const [vector] = await guarded(clock, embedderBreaker, 'the embedder', limits, ({ wait }) =>
        embedder.embed([question.trim()], { kind: 'question', tenantId, cancellation, wait }),
      )
      return vector
    } catch {
      return undefined
    }
  }
}

const KEEP_RATIO = 20
const NEVER_CANCELLED = { isCancelled: false } as AnswerAsk['cancellation']

function isAskable(question: string): boolean {
  return question.trim() !== '' && question.length <= QUESTION_CHARACTERS_MAX
}

function nearestOf(
  vector: Float32Array,
  candidates: readonly AnswerCandidate[],
  now: number,
): { readonly candidate: AnswerCandidate; readonly similarity: number } | undefined {
  let best: { candidate: AnswerCandidate; similarity: number } | undefined
  for (const candidate of candidates) {
    if (candidate.expiresAt <= now || candidate.vector.length !== vector.length) continue
    const similarity = cosine(vector, candidate.vector)
    if (best === undefined || similarity > best.similarity) best = { candidate, similarity }
  }
  return best
}

/** Cosine of two unit vectors. */
function cosine(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += (a[i] as number) * (b[i] as number)
  return sum
}
