import type { HoldoutEvaluated, ShadowEnded } from '../domain/entry.ts'

/** What a release has answered unseen by clients, since the process began: copies of requests, and its holdout set. */
export interface ConsoleTrial {
  readonly model: string
  readonly release: string
  readonly copies: number
  readonly failed: number
  /** Copies whose text could be compared with what the client got; of these, the equal ones, and shares of same words. */
  readonly compared: number
  readonly equal: number
  readonly sameWords: number
  readonly items: number
  /** Sum of the items' scores. */
  readonly score: number
}

const TRIALS_MAX = 50

export class TrialCounts {
  readonly #byRelease = new Map<string, ConsoleTrial>()

  shadow({ model, releaseId, outcome, difference }: ShadowEnded): void {
    this.#change(model, releaseId, (trial) => ({
      ...trial,
      copies: trial.copies + 1,
      failed: trial.failed + (outcome === 'failed' ? 1 : 0),
      compared: trial.compared + (difference === undefined ? 0 : 1),
      equal: trial.equal + (difference?.isEqual === true ? 1 : 0),
      sameWords: trial.sameWords + (difference?.sameWordsRatio ?? 0),
    }))
  }

  holdout({ model, releaseId, score }: HoldoutEvaluated): void {
    this.#change(model, releaseId, (trial) => ({ ...trial, items: trial.items + 1, score: trial.score + score }))
  }

  view(): readonly ConsoleTrial[] {
    return [...this.#byRelease.values()]
  }

  /** Beyond the bound the oldest release is forgotten. */
  #change(model: string, release: string, change: (trial: ConsoleTrial) => ConsoleTrial): void {
    const key = `${model}\n${release}`
    const known = this.#byRelease.get(key)
    const oldest =
      known === undefined && this.#byRelease.size >= TRIALS_MAX ? this.#byRelease.keys().next().value : undefined
    if (oldest !== undefined) this.#byRelease.delete(oldest)
    const none = { copies: 0, failed: 0, compared: 0, equal: 0, sameWords: 0, items: 0, score: 0 }
    this.#byRelease.set(key, change(known ?? { model, release, ...none }))
  }
}
