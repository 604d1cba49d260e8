import type { Instant } from '../../base/clock.ts'
import type { KeptAnswer } from '../../lifecycle/ports.ts'

/**
 * Where answers are kept. A shelf holds what may be given to the same askers: its name says everything that must be
 * equal (`shelf.ts`), its vectors say which question each answer was for. Whoever looks sees one shelf of one tenant.
 *
 * A store may be wrong only by forgetting. No method throws, and none takes longer than a bound of its own; `undefined`
 * candidates mean that it could not be asked.
 */
export interface AnswerStore {
  candidates(shelf: Shelf): Candidates | undefined | Promise<Candidates | undefined>
  read(shelf: Shelf, id: string): KeptAnswer | undefined | Promise<KeptAnswer | undefined>
  /** The oldest of a full shelf goes. */
  add(shelf: Shelf, entry: NewAnswer): void
  /** Everything of one tenant, at once. */
  forgetTenant(tenantId: string): Promise<void>
  close(): Promise<void>
}

export interface Shelf {
  readonly tenantId: string
  /** A hash: whoever lists shelves reads neither prompts nor questions. */
  readonly name: string
}

export interface Candidate {
  readonly id: string
  readonly vector: Float32Array
  /** What the question speaks of (`same-words.ts`). */
  readonly words: string
  readonly expiresAt: Instant
}

export type Candidates = readonly Candidate[]

export interface NewAnswer {
  readonly vector: Float32Array
  readonly words: string
  readonly answer: KeptAnswer
  readonly expiresAt: Instant
}

/** Answers on one shelf, which is all that a tenant asks with one prompt: comparing with so many takes 0.3 ms. */
export const SHELF_MAX = 512
