import { Capital, type CapitalTally } from './capital.ts'
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
 *   ttft         +1 if canary ÷ predicted > (1 + margin) × stable's, else −1     more often than not
 *   inter-token  the same for the mean time between tokens
 *   cost         the same for cost
 *   holdout      stable's score − canary's on one item                above `scoreMargin`
 *   broken       +1 failed, −1 not, without a partner                 more often than not, and stable is not
 *
 * Errors, refusals and cost are paired whatever the load was: a canary that carries 5 % and stable pools that carry the
 * rest are hardly ever equally busy, and an equal release fails no more often for being idle. Times depend on the load,
 * so they are paired apart, with a partner under about the same load where there is one (the *load class*):
 *
 *   the pair's loads                                     "worse" is staked on       "not much slower" is staked on
 *   one class                                            margin `timeMargin`        margin `provenMargin`
 *   two classes, predictions know what load costs        margin `unlikeMargin`      margin `provenMargin`
 *   two classes, predictions do not, canary less busy    margin `timeMargin`        nothing
 *   two classes, predictions do not, canary busier       nothing                    margin `provenMargin`
 *
 * Two accounts for each metric: one over the whole rollout, one from the present step on, which sees a canary that
 * breaks only under more load. The chance to roll back a release that is no worse is at most `alpha` over all metrics,
 * accounts and steps (union bound over Ville's inequality), as long as no bet is expected to win while the releases are
 * alike. In one class that is the coin's toss. In two classes with known costs it needs predictions whose error differs
 * by less than `unlikeMargin` between the two loads. In two classes with unknown costs it needs only that load never
 * makes an engine faster, which is why one side of the bet is left out there. An attempt is in one pair for its times
 * and in one for the rest, so no bet of an account repeats another.
 *
 * Promotion needs a minimum sample, no suspicion (nobody has won more than `suspicious` times the stake), and, for
 * times, proof the other way round: that the canary is not `provenMargin` slower.
 *
 * Several gateways: each pairs and bets on its own attempts, and hears the others' totals. Bets of one stake multiply, so
 * the sum of all is what one judge who had seen every pair would have; he is looked at less often, which costs time and
 * no safety.
 *
 * Deliberately not: no averages over unlike requests, no test at a fixed size, no clock (steps and their dwell are
 * `rollout.ts`'s).
 *
 * Example: α = 0.5 %, seven metrics, two accounts: roll back when an account has won 2,800-fold. A canary that always
 * fails gets there in 15 pairs, one that fails every second attempt in about 30, however busy the stable pools are.
 */
export const JUDGE_DEFAULTS = {
  alpha: 0.005,
  /** A tenth of a percentage point more failures is not worth a rollback. */
  rateMargin: 0.001,
  timeMargin: 0.05,
  /**
   * Between two load classes the predictions themselves may be wrong by this much more. Simulated engines at 1 and at
   * 200 sequences differ by up to 7 % (ADR 0020); twice that is still half of a canary that is 30 % slower.
   */
  unlikeMargin: 0.15,
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
  /** How busy the replica was when the turn was given: times are compared within a class where that can be. */
  readonly loadClass?: number
  /** Whether the predicted times include what this load costs. Without it, load makes ratios larger. */
  readonly isLoadPredicted?: boolean
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

/**
 * All that a judge has seen, as totals: what another gateway's judge adds to its own. Totals of the step are of the step
 * that the judge is at.
 */
export interface JudgeTally {
  readonly stepPairs: number
  readonly accounts: Readonly<Record<MetricName, AccountTally>>
}

interface AccountTally {
  readonly whole: CapitalTally
  readonly step: CapitalTally
  readonly proof?: CapitalTally
}

/** What one pair of times is staked on; undefined: nothing, because the loads would decide it. */
interface TimeRule {
  readonly worseMargin: number | undefined
  readonly provenMargin: number | undefined
}

interface Account {
  readonly whole: Capital
  step: Capital
  readonly proof: Capital | undefined
}

export class Judge {
  readonly #options: JudgeOptions
  readonly #accounts: Readonly<Record<MetricName, Account>>
  readonly #ratePairs: Pairing<AttemptFact>
  readonly #timePairs: Pairing<AttemptFact>
  #stepPairs = 0
  #stepPairsBeside = 0
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
    this.#ratePairs = new Pairing((canary, stable) => this.#compareRates(canary, stable))
    this.#timePairs = new Pairing((canary, stable) => this.#compareTimes(canary, stable))
  }

  observeStable(fact: AttemptFact): void {
    this.#stableCount++
    if (fact.isFailed) this.#stableFailed++
    const stratum = stratumOf(fact)
    this.#ratePairs.addStable(stratum, fact)
    if (hasTimes(fact)) this.#timePairs.addStable(stratum, fact, fact.loadClass)
  }

  observeCanary(fact: AttemptFact): void {
    // While stable fails like that too, the fault is elsewhere.
    if (this.#stableFailed * 4 <= this.#stableCount) this.#bet('broken', fact.isFailed ? 1 : -1)
    const stratum = stratumOf(fact)
    this.#ratePairs.addCanary(stratum, fact)
    if (hasTimes(fact)) this.#timePairs.addCanary(stratum, fact, fact.loadClass)
  }

  /** Both releases answered the same item of the holdout set; scores in [0, 1]. */
  observeHoldout(canaryScore: number, stableScore: number): void {
    this.#bet('holdout', clamp(stableScore - canaryScore - this.#options.scoreMargin))
  }

  /** A new step: more load for the canary, so a new account. */
  beginStep(): void {
    for (const name of METRICS) this.#accounts[name].step = new Capital()
    this.#stepPairs = 0
    this.#stepPairsBeside = 0
  }

  tally(): JudgeTally {
    const tallyOf = ({ whole, step, proof }: Account): AccountTally => ({
      whole: whole.tally(),
      step: step.tally(),
      ...(proof !== undefined && { proof: proof.tally() }),
    })
    const accounts = Object.fromEntries(METRICS.map((name) => [name, tallyOf(this.#accounts[name])]))
    return { stepPairs: this.#stepPairs, accounts: accounts as Record<MetricName, AccountTally> }
  }

  /** What the judges of other gateways have seen of the same trial; who is at another step counts for the whole only. */
  hear(others: ReadonlyArray<{ readonly tally: JudgeTally; readonly isSameStep: boolean }>): void {
    const here = others.filter(({ isSameStep }) => isSameStep)
    this.#stepPairsBeside = here.reduce((sum, { tally }) => sum + tally.stepPairs, 0)
    for (const name of METRICS) {
      const { whole, step, proof } = this.#accounts[name]
      whole.putBeside(others.map(({ tally }) => tally.accounts[name].whole))
      step.putBeside(here.map(({ tally }) => tally.accounts[name].step))
      proof?.putBeside(others.flatMap(({ tally }) => tally.accounts[name].proof ?? []))
    }
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
    if (this.#stepPairs + this.#stepPairsBeside < pairsMin) return 'too few attempts were compared in this step'
    for (const { metric } of evidence) {
      const { whole, step, proof } = this.#accounts[metric]
      if (whole.value > suspicious || step.value > suspicious) return `suspicious: ${WORDS[metric]}`
      if (proof !== undefined && proof.count >= pairsMin / 2 && proof.highest < proven)
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

  #compareRates(canary: AttemptFact, stable: AttemptFact): void {
    const { rateMargin, timeMargin } = this.#options
    this.#stepPairs++
    this.#bet('errors', clamp(Number(canary.isFailed) - Number(stable.isFailed) - rateMargin))
    this.#bet('refusals', clamp(Number(canary.isRefused) - Number(stable.isRefused) - rateMargin))
    const { costRatio } = canary
    if (costRatio !== undefined && stable.costRatio !== undefined)
      this.#bet('cost', costRatio > (1 + timeMargin) * stable.costRatio ? 1 : -1)
  }

  #compareTimes(canary: AttemptFact, stable: AttemptFact): void {
    const rule = this.#ruleFor(canary, stable)
    this.#compareTime('ttft', canary.ttftRatio, stable.ttftRatio, rule)
    this.#compareTime('inter-token', canary.interTokenRatio, stable.interTokenRatio, rule)
  }

  /** The table of load classes in the header. */
  #ruleFor(canary: AttemptFact, stable: AttemptFact): TimeRule {
    const { timeMargin, unlikeMargin, provenMargin } = this.#options
    const busier = (canary.loadClass ?? 0) - (stable.loadClass ?? 0)
    if (busier === 0) return { worseMargin: timeMargin, provenMargin }
    if (canary.isLoadPredicted === true && stable.isLoadPredicted === true)
      return { worseMargin: Math.max(timeMargin, unlikeMargin), provenMargin }
    return busier < 0 ? { worseMargin: timeMargin, provenMargin: undefined } : { worseMargin: undefined, provenMargin }
  }

  #compareTime(metric: MetricName, canary: number | undefined, stable: number | undefined, rule: TimeRule): void {
    if (canary === undefined || stable === undefined) return
    const { worseMargin, provenMargin } = rule
    if (worseMargin !== undefined) this.#bet(metric, canary > (1 + worseMargin) * stable ? 1 : -1)
    if (provenMargin !== undefined) this.#accounts[metric].proof?.observe(canary < (1 + provenMargin) * stable ? 1 : -1)
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

const hasTimes = ({ ttftRatio, interTokenRatio }: AttemptFact): boolean =>
  ttftRatio !== undefined || interTokenRatio !== undefined

/** Prompts within a factor of four are of one kind: their predictions are wrong in the same way. */
function stratumOf(fact: AttemptFact): string {
  const sizeClass = (32 - Math.clz32(Math.max(1, fact.promptTokens))) >> 1
  return `${sizeClass} ${fact.tenantId}`
}
