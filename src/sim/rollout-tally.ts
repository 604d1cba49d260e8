import type { Instant } from '../base/clock.ts'
import { usToSeconds } from '../base/clock.ts'
import type { AttemptEnded, Entry, RolloutChanged } from '../domain/entry.ts'

/** How did the rollouts go? Counted from the journal, per model; memory is one record per model. */
export interface RolloutReport {
  readonly stable: string
  readonly canary: string
  /** What the canary gets at the end. */
  readonly percent: number
  readonly changes: number
  /** 1 if it ended so, else 0: expectations compare numbers. */
  readonly rolledBack: number
  readonly promoted: number
  /** Seconds of the run at the last change. */
  readonly changedAtS: number
  readonly because: string
  /** Attempts of the canary while it was tried, and how many of them failed. */
  readonly canaryAttempts: number
  readonly canaryFailedAttempts: number
}

interface Counts {
  last: RolloutChanged
  changes: number
  attempts: number
  failed: number
}

export class RolloutTally {
  readonly #models = new Map<string, Counts>()

  take(entry: Entry): void {
    if (entry.kind === 'rollout-changed') this.#changed(entry)
    else if (entry.kind === 'attempt-ended') this.#attempted(entry)
  }

  view(startAt: Instant): Record<string, RolloutReport> {
    return Object.fromEntries(
      [...this.#models].map(([model, { last, changes, attempts, failed }]) => [
        model,
        {
          stable: last.from,
          canary: last.to,
          percent: last.percent,
          changes,
          rolledBack: Number(last.change === 'rolled-back'),
          promoted: Number(last.change === 'promoted'),
          changedAtS: usToSeconds(last.at - startAt),
          because: last.because,
          canaryAttempts: attempts,
          canaryFailedAttempts: failed,
        },
      ]),
    )
  }

  #changed(entry: RolloutChanged): void {
    const known = this.#models.get(entry.model)
    if (known === undefined) this.#models.set(entry.model, { last: entry, changes: 1, attempts: 0, failed: 0 })
    else {
      known.last = entry
      known.changes++
    }
  }

  #attempted({ releaseId, ending }: AttemptEnded): void {
    const counts = this.#models.get(releaseId.slice(0, releaseId.lastIndexOf('@')))
    if (counts === undefined || counts.last.to !== releaseId) return
    if (counts.last.percent === 0 || counts.last.percent === 100) return
    counts.attempts++
    if (ending === 'lost' || ending === 'refused') counts.failed++
  }
}
