import type { Script, Scripts } from '../../backends/simulated.ts'
import type { Ending } from '../../lifecycle/ports.ts'

/** How a release can be worse than another, besides being slower; faults of a scenario switch these on. */

/** The faults of a release, as its clients see them. */
export interface Traits {
  /** Share of its attempts that end in an error at once. */
  readonly errorRatio: number
  /** Share of its answers in which the model refuses to answer. */
  readonly refusalRatio: number
  /** Share of the items of a holdout set that it answers wrongly. */
  readonly wrongRatio: number
}

export const GOOD: Traits = { errorRatio: 0, refusalRatio: 0, wrongRatio: 0 }

/** A fault affects the same attempts for every seed of the workload: the release is broken, not the workload. */
export const FATE_SEED = 7

/** As the HTTP backend reads a 500: the replica is at fault, and has not said that it is full. */
export const RELEASE_BROKEN: Ending = { kind: 'lost', because: 'the engine answered 500' }

/** "I cannot help with that." */
const REFUSAL_TOKENS = 8

/** The clients' scripts, with some answers replaced by refusals or wrong ones. */
export class TraitScripts implements Scripts {
  readonly #scripts: Scripts
  readonly #refuses: () => boolean
  readonly #errs: () => boolean

  constructor(scripts: Scripts, refuses: () => boolean, errs: () => boolean) {
    this.#errs = errs
    this.#scripts = scripts
    this.#refuses = refuses
  }

  scriptsFor(...asked: Parameters<Scripts['scriptsFor']>): ReturnType<Scripts['scriptsFor']> {
    const made = this.#scripts.scriptsFor(...asked)
    if (made instanceof Promise || made.kind !== 'made') return made
    if (asked[0].errand?.kind === 'holdout') return this.#errs() ? { ...made, scripts: made.scripts.map(wrong) } : made
    if (!this.#refuses()) return made
    const scripts = made.scripts.map((script) => ({
      ...script,
      outputTokens: Math.min(script.outputTokens, REFUSAL_TOKENS),
      finishReason: 'content_filter' as const,
      textBetween: () => '',
    }))
    return { kind: 'made', scripts }
  }
}

const wrong = (script: Script): Script => ({ ...script, textBetween: () => '' })
