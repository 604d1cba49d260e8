import type { Instant } from '../../base/clock.ts'
import type { KeptAnswer } from '../../lifecycle/ports.ts'

/**
 * A store of answers. A shelf holds answers for one combination of everything that must be equal (`shelf.ts`); vectors
 * on the shelf say which question each answer is for. A lookup sees one shelf of one tenant.
 *
 * A store may forget, and may not be wrong otherwise. No method throws, and each has its own time limit; `undefined`
 * candidates mean that the store did not reply.
 */
export interface AnswerStore {
  candidates(shelf: Shelf): AnswerCandidates | undefined | Promise<AnswerCandidates | undefined>
  read(shelf: Shelf, id: string): KeptAnswer | undefined | Promise<KeptAnswer | undefined>
  /** Adds an answer; a full shelf drops its oldest. */
  add(shelf: Shelf, entry: NewAnswer): void
  /** Forgets everything of one tenant, at once. */
  forgetTenant(tenantId: string): Promise<void>
  close(): Promise<void>
}

export interface Shelf {
  readonly tenantId: string
  /** A hash, so that a list of shelves shows neither prompts nor questions. */
  readonly name: string
}

export interface AnswerCandidate {
  readonly id: string
  readonly vector: Float32Array
  /** The words of the question that carry meaning (`same-words.ts`). */
  readonly words: string
  readonly expiresAt: Instant
}

export type AnswerCandidates = readonly AnswerCandidate[]

export interface NewAnswer {
  readonly vector: Float32Array
  readonly words: string
  readonly answer: KeptAnswer
  readonly expiresAt: Instant
}

/** Answers on one shelf, which has all questions of a tenant with one prompt: comparing this many takes 0.3 ms. */
export const SHELF_MAX = 512
