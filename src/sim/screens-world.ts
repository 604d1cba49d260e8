import { type Clock, msToUs } from '../base/clock.ts'
import { Rng } from '../base/rng.ts'
import type { EmbeddedScreen, ScreenScores } from '../domain/screening.ts'
import type { Journal } from '../lifecycle/ports.ts'
import type { Screener } from '../lifecycle/screening-ports.ts'
import type { Scored, ScreenScorer } from '../safety/scores.ts'
import { SafetyScreener } from '../safety/screener.ts'
import { drawNormal } from './clients/draw.ts'
import type { ScreensSpec } from './scenario/scenario-screens.ts'

/**
 * Judges in a simulation: the screener that runs live, with scores that are drawn instead of read from texts, and check
 * times in virtual time. The guard model is asked through the simulated platform, and its engine takes what such a prompt
 * takes; what it says is drawn with the scores, because simulated answers have no text.
 *
 * Draws depend on the seed and the request's name alone: the same request has the same truth in every variant.
 */
export class ScreensWorld {
  readonly #clock: Clock
  readonly #seed: number
  readonly #spec: ScreensSpec

  constructor(clock: Clock, seed: number, spec: ScreensSpec = {}) {
    this.#clock = clock
    this.#seed = seed
    this.#spec = spec
  }

  /** Judges of one gateway. */
  makeScreener(journal: Journal): Screener {
    return new SafetyScreener({
      clock: this.#clock,
      record: (entry) => journal.record(entry),
      scorer: new DrawnScores(this.#clock, (requestId) => this.#draw(requestId)),
      readGuard: ({ requestId }) =>
        this.isHarmful(requestId) ? { kind: 'unsafe', categories: ['drawn'] } : { kind: 'safe' },
    })
  }

  /** Whether the request should be blocked, by the scenario. */
  isHarmful(requestId: string): boolean {
    return this.#draw(requestId).isHarmful
  }

  #draw(requestId: string): DrawnTruth {
    const { harmfulRatio = 0, sureRatio = 0.5, greyRatio = 0, check } = this.#spec
    const rng = Rng.stream(this.#seed, `screens/${requestId}`)
    const isHarmful = rng.next() < harmfulRatio
    const isSure = rng.next() < (isHarmful ? sureRatio : 1 - greyRatio)
    const score = isSure ? (isHarmful ? SURE : HARMLESS) : isHarmful ? GREY_ABOVE : GREY_BELOW
    if (check === undefined) return { isHarmful, score, checkUs: 0 }
    const sigma = Math.log(check.p95Ms / check.p50Ms) / NORMAL_P95
    return { isHarmful, score, checkUs: Math.round(msToUs(check.p50Ms * Math.exp(sigma * drawNormal(rng)))) }
  }
}

/** Scores around the default thresholds and the default grey zone (0.3 to 0.9). */
const SURE = 0.95
const GREY_ABOVE = 0.8
const GREY_BELOW = 0.5
const HARMLESS = 0.05
const SCORE_MIN = 0.7

/** The 95th percentile of the normal distribution. */
const NORMAL_P95 = 1.645

interface DrawnTruth {
  readonly isHarmful: boolean
  readonly score: number
  readonly checkUs: number
}

class DrawnScores implements ScreenScorer {
  readonly defaults = { injection: SCORE_MIN, 'passage-injection': SCORE_MIN, toxicity: SCORE_MIN }
  readonly #clock: Clock
  readonly #draw: (requestId: string) => DrawnTruth

  constructor(clock: Clock, draw: (requestId: string) => DrawnTruth) {
    this.#clock = clock
    this.#draw = draw
  }

  scoresOf({ requestId }: { readonly requestId: string }, wanted: readonly EmbeddedScreen[]): Scored {
    const { score, checkUs } = this.#draw(requestId)
    const first = wanted[0]
    const scores: ScreenScores = Object.fromEntries(wanted.map((screen) => [screen, screen === first ? score : 0]))
    return checkUs === 0 ? scores : this.#clock.sleep(checkUs).then(() => scores)
  }
}
