import { Rng } from '../../src/base/rng.ts'
import { type AttemptFact, Judge, type JudgeOptions, type JudgeVerdict } from '../../src/policy/rollout/judge.ts'
import { Rollout, type RolloutChange } from '../../src/policy/rollout/rollout.ts'
import { chooseRelease } from '../../src/policy/rollout/split.ts'

/**
 * A platform as the judge sees it: skewed tenants whose predictions are wrong in their own ways, a load that rises and
 * falls for everybody, heavy-tailed noise, sessions, and a canary that may be worse in one respect. Attempts come one
 * after the other; the judge is asked after each of them, because peeking must not fool it.
 */
export interface CanaryTraits {
  /** Times as slow: 1.3 is 30 % slower. */
  readonly slower: number
  readonly failRatio: number
  readonly refuseRatio: number
  readonly scoreDrop: number
}

export const NO_DIFFERENCE: CanaryTraits = { slower: 1, failRatio: 0, refuseRatio: 0, scoreDrop: 0 }

/** Pools that are not equally busy. An attempt takes longer by 3 % for each sequence in flight beside it. */
export interface UnequalLoads {
  /** Sequences in flight at the replicas of each stable pool; requests go to one of them at random. */
  readonly stable: readonly number[]
  readonly canary: number
  /** Whether predictions include what the load costs. */
  readonly isPredicted: boolean
  /** Where they do: by how much they are too low for each doubling of the load; 0.02 is 2 %. */
  readonly errorPerClass?: number
}

const SLOWER_PER_SEQUENCE = 0.03

export interface CanaryRun {
  readonly seed: number
  readonly traits: CanaryTraits
  readonly attemptsMax: number
  readonly steps?: readonly number[]
  readonly judge?: Partial<JudgeOptions>
  /** Absent: both releases are equally busy, in one pool each. */
  readonly loads?: UnequalLoads
}

export interface CanaryStory {
  readonly end: 'rolled-back' | 'promoted' | 'undecided'
  readonly canaryAttempts: number
  readonly canaryFailures: number
  readonly changes: readonly RolloutChange[]
  readonly verdict: JudgeVerdict
}

const TENANTS = 40
/** Scatter of measured ÷ predicted, as the logarithm's standard deviation. */
const TTFT_SCATTER = 0.6
const TOKEN_SCATTER = 0.2
const HOLDOUT_EVERY = 200

interface TenantHabits {
  readonly id: string
  readonly share: number
  readonly bias: number
  readonly failRatio: number
  readonly promptTokens: number
}

/** A few tenants make most of the traffic, and each is predicted wrongly in its own way. */
function makeTenants(rng: Rng): TenantHabits[] {
  let total = 0
  const weights = Array.from({ length: TENANTS }, (_, i) => 1 / (i + 1) ** 1.2)
  for (const weight of weights) total += weight
  let share = 0
  return weights.map((weight, i) => {
    share += weight / total
    const bias = Math.exp(0.5 * normal(rng))
    return { id: `t${i}`, share, bias, failRatio: 0.02 * rng.next() ** 3, promptTokens: 2 ** (5 + rng.below(8)) }
  })
}

function normal(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - rng.next())) * Math.cos(2 * Math.PI * rng.next())
}

export function runCanary(run: CanaryRun): CanaryStory {
  const rng = Rng.stream(run.seed, 'attempts')
  const tenants = makeTenants(Rng.stream(run.seed, 'tenants'))
  const judge = new Judge(run.judge)
  const rollout = new Rollout({
    name: `rollout-${run.seed}`,
    model: 'm',
    stable: 'v1',
    canary: 'v2',
    stickyBy: 'session',
    steps: run.steps ?? [0.05, 0.25, 0.5],
    dwellUs: 0,
    pins: [],
  })
  const changes = [rollout.start(0, 'test', 'begin')]
  let canaryAttempts = 0
  let canaryFailures = 0
  let split = rollout.split()
  for (let now = 1; now <= run.attemptsMax && rollout.phase === 'canary'; now++) {
    const at = rng.next()
    const tenant = tenants.find(({ share }) => at < share) ?? (tenants.at(-1) as TenantHabits)
    const session = `s${rng.below(2_000)}`
    const ask = { tenantId: tenant.id, keyId: 'k', session, headers: {} }
    const isCanary = chooseRelease(split, ask).release === 'v2'
    const drawn = makeFact(rng, tenant, isCanary ? run.traits : NO_DIFFERENCE, now)
    const fact = run.loads === undefined ? drawn : underLoad(rng, drawn, isCanary, run.loads)
    if (isCanary) {
      canaryAttempts++
      if (fact.isFailed) canaryFailures++
      judge.observeCanary(fact)
    } else judge.observeStable(fact)
    if (now % HOLDOUT_EVERY === 0) judge.observeHoldout(score(rng, run.traits.scoreDrop), score(rng, 0))
    // A tenth of them, to be quick; the answers in between could only be later ones.
    if (!isCanary && now % 10 !== 0) continue
    const change = rollout.judge(now, judge.verdict())
    if (change === undefined) continue
    changes.push(change)
    split = change.split
    judge.beginStep()
  }
  const end = rollout.phase === 'canary' ? 'undecided' : rollout.phase
  return { end, canaryAttempts, canaryFailures, changes, verdict: judge.verdict() }
}

const score = (rng: Rng, drop: number): number => (rng.next() < 0.8 - drop ? 1 : 0)

function makeFact(rng: Rng, tenant: TenantHabits, traits: CanaryTraits, now: number): AttemptFact {
  // Waves of load that the predictions miss, the same for both releases.
  const load = 1 + 0.3 * Math.sin(now / 700) + 0.2 * Math.sin(now / 4_100)
  const isFailed = rng.next() < tenant.failRatio + traits.failRatio
  const slower = traits.slower * load * tenant.bias
  return {
    tenantId: tenant.id,
    promptTokens: tenant.promptTokens * (1 + rng.below(3)),
    isFailed,
    isRefused: rng.next() < 0.01 + traits.refuseRatio,
    ttftRatio: isFailed ? undefined : slower * Math.exp(TTFT_SCATTER * normal(rng)),
    interTokenRatio: isFailed ? undefined : slower * Math.exp(TOKEN_SCATTER * normal(rng)),
    costRatio: isFailed ? undefined : Math.exp(0.3 * normal(rng)),
  }
}

function underLoad(rng: Rng, fact: AttemptFact, isCanary: boolean, loads: UnequalLoads): AttemptFact {
  const { isPredicted, errorPerClass = 0 } = loads
  const sequences = isCanary ? loads.canary : (loads.stable[rng.below(loads.stable.length)] as number)
  const loadClass = 32 - Math.clz32(sequences)
  const factor = isPredicted ? (1 + errorPerClass) ** loadClass : 1 + SLOWER_PER_SEQUENCE * sequences
  const times = (ratio: number | undefined): number | undefined => (ratio === undefined ? undefined : ratio * factor)
  return {
    ...fact,
    ttftRatio: times(fact.ttftRatio),
    interTokenRatio: times(fact.interTokenRatio),
    loadClass,
    isLoadPredicted: isPredicted,
  }
}
