import { Capital } from './capital.ts'
import { Pairing } from './pairing.ts'

/**
 * Is the canary worse than the stable release?
 *
 * Every attempt counts, not every request: a retry on the stable release must not hide the canary's error. Attempts of
 * the two releases are compared in pairs of one kind (`pairing.ts`), times as ratios to what was predicted for each
 * (so that a longer prompt is no evidence), and each comparison is a bet (`capital.ts`). The test may be looked at
 * after every attempt: peeking is what it is made for.
 *
 *   metric       a pair says                                          the canary is worse if
 *   errors       failed − failed                                      above `rateMargin` on the average
 *   refusals     refused − refused                                    above `rateMargin`
 *   ttft         +1 if canary ÷ predicted > (1 + timeMargin) × stable's, else −1     more often than not
 *   inter-token  the same for the mean time between tokens
 *   cost         the same for cost
 *   holdout      stable's score − canary's on one item                above `scoreMargin`
 *   broken       +1 failed, −1 not, without a partner                 more often than not, and stable is not
 *
 * Two accounts for each metric: one over the whole rollout, one from the present step on, which sees a canary that
 * breaks only under more load. The chance to roll back a release that is no worse is at most `alpha` over all metrics,
 * accounts and steps (union bound over Ville's inequality), as long as pairs of one stratum are exchangeable.
 *
 * Promotion needs a minimum sample, no suspicion (nobody has won more than `suspicious` times the stake), and, for
 * times, proof the other way round: that the canary is not `provenMargin` slower.
 *
 * Deliberately not: no averages over unlike requests, no test at a fixed size, no clock (steps and their dwell are
 * `rollout.ts`'s).
 *
 * Example: α = 0.5 %, seven metrics, two accounts: roll back when an account has won 2,800-fold. A canary that always
 * fails gets there in 15 pairs.
 */
export const JUDGE_DEFAULTS = {
  alpha: 0.005,
  /** A tenth of a percentage point more failures is not worth a rollback. */
  rateMargin: 0.001,
  timeMargin: 0.05,
  provenMargin: 0.2,
  scoreMargin: 0.01,
  /** Pairs that a step needs at least. */
  pairsMin: 400,
  suspicious: 10,
  /** One in twenty: promoting is undone more cheaply than rolling back is explained. */
  proven: 20,
  /** Steps among which the accounts of a step share their part of α. */
  stepsMax: 8,
}

export type JudgeOptions = typeof JUDGE_DEFAULTS

export const METRICS = ['errors', 'refusals', 'ttft', 'inter-token', 'cost', 'holdout', 'broken'] as const
export type MetricName = (typeof METRICS)[number]

/** Times and costs are told as measured ÷ predicted; undefined where there is none. */
export interface AttemptFact {
  readonly tenantId: string
  readonly promptTokens: number
  readonly isFailed: boolean
  readonly isRefused: boolean
  readonly ttftRatio: number | undefined
  readonly interTokenRatio: number | undefined
  readonly costRatio: number | undefined
  /** Attempts are compared within a class of load only; 0 where the ratios know the load already. */
  readonly loadClass?: number
}

export interface Evidence {
  readonly metric: MetricName
  readonly pairs: number
  /** How many times its stake the bet on "worse" has won, over the rollout and in this step; and where it ends. */
  readonly won: number
  readonly wonInStep: number
  readonly bound: number
  readonly boundInStep: number
  /** The same for the bet on "not much slower"; undefined for metrics that need no proof. */
  readonly proven: number | undefined
}

export interface JudgeVerdict {
  readonly kind: 'roll-back' | 'promote' | 'wait'
  readonly because: string
  readonly evidence: readonly Evidence[]
}

interface Account {
  readonly whole: Capital
  step: Capital
  readonly proof: Capital | undefined
}

export class Judge {
  readonly #options: JudgeOptions
  readonly #accounts: Readonly<Record<MetricName, Account>>
  readonly #pairs: Pairing<AttemptFact>
  #stepPairs = 0
  #stableFailed = 0
  #stableCount = 0

  constructor(options: Partial<JudgeOptions> = {}) {
    this.#options = { ...JUDGE_DEFAULTS, ...options }
    this.#accounts = {
      errors: makeAccount(false),
      refusals: makeAccount(false),
      ttft: makeAccount(true),
      'inter-token': makeAccount(true),
      cost: makeAccount(false),
      holdout: makeAccount(false),
      broken: makeAccount(false),
    }
    this.#pairs = new Pairing((canary, stable) => this.#compare(canary, stable))
  }

  observeStable(fact: AttemptFact): void {
    this.#stableCount++
    if (fact.isFailed) this.#stableFailed++
    this.#pairs.addStable(stratumOf(fact), fact)
  }

  observeCanary(fact: AttemptFact): void {
    // While stable fails like that too, the fault is elsewhere.
    if (this.#stableFailed * 4 <= this.#stableCount) this.#bet('broken', fact.isFailed ? 1 : -1)
    this.#pairs.addCanary(stratumOf(fact), fact)
  }

  /** Both releases answered the same item of the holdout set; scores in [0, 1]. */
  observeHoldout(canaryScore: number, stableScore: number): void {
    this.#bet('holdout', clamp(stableScore - canaryScore - this.#options.scoreMargin))
  }

  /** A new step: more load for the canary, so a new account. */
  beginStep(): void {
    for (const name of METRICS) this.#accounts[name].step = new Capital()
    this.#stepPairs = 0
  }

  verdict(): JudgeVerdict {
    const evidence = METRICS.map((metric) => this.#evidenceOf(metric))
    const worst = evidence.find(({ won, bound, wonInStep, boundInStep }) => won >= bound || wonInStep >= boundInStep)
    if (worst !== undefined) return { kind: 'roll-back', because: `worse: ${WORDS[worst.metric]}`, evidence }
    const because = this.#whyWait(evidence)
    if (because !== undefined) return { kind: 'wait', because, evidence }
    return { kind: 'promote', because: 'enough attempts, and nothing speaks against it', evidence }
  }

  #whyWait(evidence: readonly Evidence[]): string | undefined {
    const { pairsMin, suspicious, proven } = this.#options
    if (this.#stepPairs < pairsMin) return 'too few attempts were compared in this step'
    for (const { metric, pairs } of evidence) {
      const { whole, step, proof } = this.#accounts[metric]
      if (whole.value > suspicious || step.value > suspicious) return `suspicious: ${WORDS[metric]}`
      if (proof !== undefined && pairs >= pairsMin / 2 && proof.highest < proven)
        return `not proven yet: ${WORDS[metric]}`
    }
    return undefined
  }

  #evidenceOf(metric: MetricName): Evidence {
    const { alpha, stepsMax } = this.#options
    const { whole, step, proof } = this.#accounts[metric]
    const bound = (2 * METRICS.length) / alpha
    return {
      metric,
      pairs: whole.count,
      won: whole.highest,
      wonInStep: step.highest,
      bound,
      boundInStep: bound * stepsMax,
      proven: proof?.highest,
    }
  }

  #compare(canary: AttemptFact, stable: AttemptFact): void {
    const { rateMargin } = this.#options
    this.#stepPairs++
    this.#bet('errors', clamp(Number(canary.isFailed) - Number(stable.isFailed) - rateMargin))
    this.#bet('refusals', clamp(Number(canary.isRefused) - Number(stable.isRefused) - rateMargin))
    this.#compareRatio('ttft', canary.ttftRatio, stable.ttftRatio)
    this.#compareRatio('inter-token', canary.interTokenRatio, stable.interTokenRatio)
    this.#compareRatio('cost', canary.costRatio, stable.costRatio)
  }

  #compareRatio(metric: MetricName, canary: number | undefined, stable: number | undefined): void {
    if (canary === undefined || stable === undefined) return
    const { timeMargin, provenMargin } = this.#options
    this.#bet(metric, canary > (1 + timeMargin) * stable ? 1 : -1)
    this.#accounts[metric].proof?.observe(canary < (1 + provenMargin) * stable ? 1 : -1)
  }

  #bet(metric: MetricName, y: number): void {
    const account = this.#accounts[metric]
    account.whole.observe(y)
    account.step.observe(y)
  }
}

const WORDS: Readonly<Record<MetricName, string>> = {
  errors: 'more of its attempts fail',
  refusals: 'it refuses more',
  ttft: 'its first token comes later',
  'inter-token': 'its tokens come more slowly',
  cost: 'it costs more',
  holdout: 'it scores less on the holdout set',
  broken: 'most of its attempts fail',
}

const makeAccount = (needsProof: boolean): Account => ({
  whole: new Capital(),
  step: new Capital(),
  proof: needsProof ? new Capital() : undefined,
})

const clamp = (y: number): number => Math.max(-1, Math.min(1, y))

/** Prompts within a factor of four are of one kind: their predictions are wrong in the same way. */
function stratumOf(fact: AttemptFact): string {
  const sizeClass = (32 - Math.clz32(Math.max(1, fact.promptTokens))) >> 1
  return `${sizeClass} ${fact.loadClass ?? 0} ${fact.tenantId}`
}
