import type { Instant } from '../../base/clock.ts'
import { usToSeconds } from '../../base/clock.ts'
import type { AttemptEnded, Entry, RolloutChanged } from '../../domain/entry.ts'
import { PLATFORM_TENANT } from '../../lifecycle/rollout/errands.ts'

/** The course of rollouts, counted from the journal, per model; memory is one record per model, and live errands. */
export interface RolloutReport {
  readonly stable: string
  readonly canary: string
  /** The canary's share at the end. */
  readonly percent: number
  readonly changes: number
  /** 1 if the rollout ended so, else 0: expectations compare numbers. */
  readonly rolledBack: number
  readonly promoted: number
  /** Seconds of the run at the last change. */
  readonly changedAtS: number
  readonly because: string
  /** Attempts of the canary while it was on trial, and how many of them failed. */
  readonly canaryAttempts: number
  readonly canaryFailedAttempts: number
  /** Copies of requests answered by a release that does not serve the client, and items of the holdout set. */
  readonly shadowAnswers: number
  readonly holdoutAnswers: number
}

interface Counts {
  last: RolloutChanged
  changes: number
  attempts: number
  failed: number
  shadows: number
  holdouts: number
}

export class RolloutTally {
  readonly #models = new Map<string, Counts>()
  readonly #errands = new Set<string>()

  take(entry: Entry): void {
    switch (entry.kind) {
      case 'arrived':
        if (entry.tenantId === PLATFORM_TENANT.id) this.#errands.add(entry.ticketId)
        return
      case 'settled':
        this.#errands.delete(entry.ticketId)
        return
      case 'rollout-changed':
        this.#changed(entry)
        return
      case 'attempt-ended':
        // The judge does not count the platform's own errands.
        if (!this.#errands.has(entry.ticketId)) this.#attempted(entry)
        return
      case 'shadow-ended':
        if (entry.outcome === 'completed') this.#count(entry.model, 'shadows')
        return
      case 'holdout-evaluated':
        this.#count(entry.model, 'holdouts')
        return
      default:
    }
  }

  view(startAt: Instant): Record<string, RolloutReport> {
    return Object.fromEntries(
      [...this.#models].map(([model, { last, changes, attempts, failed, shadows, holdouts }]) => [
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
          shadowAnswers: shadows,
          holdoutAnswers: holdouts,
        },
      ]),
    )
  }

  #changed(entry: RolloutChanged): void {
    const known = this.#models.get(entry.model)
    const none = { attempts: 0, failed: 0, shadows: 0, holdouts: 0 }
    if (known === undefined) this.#models.set(entry.model, { last: entry, changes: 1, ...none })
    else {
      known.last = entry
      known.changes++
    }
  }

  #count(model: string, what: 'shadows' | 'holdouts'): void {
    const counts = this.#models.get(model)
    if (counts !== undefined) counts[what]++
  }

  #attempted({ releaseId, ending }: AttemptEnded): void {
    const counts = this.#models.get(releaseId.slice(0, releaseId.lastIndexOf('@')))
    if (counts === undefined || counts.last.to !== releaseId) return
    if (counts.last.percent === 0 || counts.last.percent === 100) return
    counts.attempts++
    if (ending === 'lost' || ending === 'refused') counts.failed++
  }
}
