import type { RolloutReport } from '../../src/sim/report/rollout-tally.ts'
import { loadScenario } from '../../src/sim/scenario/fs-scenario.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import { play } from './kit/play.ts'
import type { Cell } from './kit/result.ts'

/**
 * Is α kept by whole rollouts, and not only by attempts that are drawn into the judge? The scenarios good-canary and
 * bad-canary with their own steps, dwell and pairs, at loads at which the 5 % and the 95 % pools are nothing alike.
 *
 * Seed n plays one load (in turn) and one layout of the stable release (one pool, then three that are never equally
 * busy), so that 200 seeds are 200 independent rollouts of each kind of canary over all loads and both layouts.
 */
const LOADS = [0.8, 0.9, 1, 1.1, 1.2, 1.3]
const LAYOUTS = ['one pool', 'three pools'] as const
type Layout = (typeof LAYOUTS)[number]

/** Rolled back without cause, at most: three times the half percent that the judge is designed for. */
const WRONG_RATIO_MAX = 3 / 200
const FAILED_ATTEMPTS_MAX = 50
const SLOW_ATTEMPTS_MAX = 2_000

/** A rollout of an equal release: three dwells and some, and its pairs, which come as slowly as its requests. */
const WHOLE_S = 120
const WHOLE_S_AT_LOAD_1 = 330
/** One that is worse is found within half a minute; this much is left for one that is not. */
const BAD_S = 60

const fault = (kind: string, more: object): object => ({ kind, target: 'chat@2', atS: 0, forS: 1_000, ...more })

interface Kind {
  readonly label: string
  readonly scenario: 'good-canary' | 'bad-canary'
  /** The scenario's own variant that has the stable release in three pools. */
  readonly threePools: string
  readonly set: (load: number) => Readonly<Record<string, unknown>>
}

const EQUAL: Kind = {
  label: 'no difference',
  scenario: 'good-canary',
  threePools: 'three-pools',
  set: (load) => ({ durationS: Math.round(WHOLE_S + WHOLE_S_AT_LOAD_1 / load) }),
}
const HALF_BROKEN: Kind = {
  label: 'every second attempt fails',
  scenario: 'bad-canary',
  threePools: 'half-broken',
  set: () => ({ durationS: BAD_S, 'faults.0': fault('replica-errors', { ratio: 0.5 }) }),
}
const SLOW: Kind = {
  label: '30 % slower',
  scenario: 'bad-canary',
  threePools: 'half-broken',
  set: () => ({ durationS: BAD_S, 'faults.0': fault('replica-slow', { factor: 1.3 }) }),
}

interface Story {
  readonly load: number
  readonly layout: Layout
  readonly end: RolloutReport
  readonly usersFailed: number
}

async function tell(kind: Kind, seed: number): Promise<Story> {
  const load = LOADS[seed % LOADS.length] as number
  const layout = LAYOUTS[Math.floor(seed / LOADS.length) % LAYOUTS.length] as Layout
  const { platform, variants } = loadScenario(kind.scenario).scenario
  const pools =
    layout === 'one pool' ? (platform as { pools?: unknown }).pools : variants?.[kind.threePools]?.['platform.pools']
  if (!Array.isArray(pools)) throw new Error(`${kind.scenario} has no pools for ${layout}`)
  const set = {
    ...kind.set(load),
    load,
    variants: {},
    expect: [],
    // The canary's pool is the last one. Which of its attempts fail follows from its name, so each seed gives it another.
    'platform.pools': pools.map((pool, i) => (i === pools.length - 1 ? { ...pool, id: `new-${seed}` } : pool)),
  }
  const { rollouts, requests } = await play({ scenario: kind.scenario, set, seed })
  const end = rollouts['chat']
  if (end === undefined) throw new Error(`${kind.scenario}, seed ${seed}: there was no rollout`)
  return { load, layout, end, usersFailed: requests.failed }
}

const COLUMNS = [
  'canary',
  'load',
  'rollouts',
  'rolled back',
  'promoted',
  'its attempts until then: p50',
  'most',
  'most failed attempts',
  'users who saw a failure',
]

function rowOf(label: string, at: string, stories: readonly Story[]): Cell[] {
  const sum = (of: (story: Story) => number): number => stories.reduce((total, story) => total + of(story), 0)
  const attempts = stories.map(({ end }) => end.canaryAttempts).toSorted((a, b) => a - b)
  return [
    label,
    at,
    stories.length,
    sum(({ end }) => end.rolledBack),
    sum(({ end }) => end.promoted),
    attempts[Math.floor(attempts.length / 2)] ?? null,
    attempts.at(-1) ?? null,
    Math.max(0, ...stories.map(({ end }) => end.canaryFailedAttempts)),
    sum(({ usersFailed }) => usersFailed),
  ]
}

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const told = new Map<Kind, Story[]>()
  for (const kind of [EQUAL, HALF_BROKEN, SLOW]) {
    const stories: Story[] = []
    for (const [i, seed] of seeds.entries()) {
      progress(`${kind.label}: ${i + 1} of ${seeds.length}`)
      stories.push(await tell(kind, seed))
    }
    told.set(kind, stories)
  }
  const rows = [...told].flatMap(([{ label }, stories]) => [
    ...LOADS.map((load) =>
      rowOf(
        label,
        load.toFixed(1),
        stories.filter((story) => story.load === load),
      ),
    ),
    ...LAYOUTS.map((layout) =>
      rowOf(
        label,
        `all, ${layout}`,
        stories.filter((story) => story.layout === layout),
      ),
    ),
  ])
  return { tables: [{ title: 'Whole rollouts', columns: COLUMNS, rows }], verdict: verdictOf(told) }
}

function verdictOf(told: ReadonlyMap<Kind, readonly Story[]>): string[] {
  const [equal = [], half = [], slow = []] = [EQUAL, HALF_BROKEN, SLOW].map((kind) => told.get(kind))
  const wrong = equal.filter(({ end }) => end.rolledBack > 0)
  const promoted = equal.filter(({ end }) => end.promoted > 0)
  const inTime = half.filter(({ end }) => end.rolledBack > 0 && end.canaryFailedAttempts <= FAILED_ATTEMPTS_MAX)
  const found = slow.filter(({ end }) => end.rolledBack > 0 && end.canaryAttempts <= SLOW_ATTEMPTS_MAX)
  const words = (isMet: boolean): string => (isMet ? 'Met' : 'Missed')
  const why = wrong.map(({ end, load, layout }) => `load ${load}, ${layout}: ${end.because}`).join('; ')
  return [
    `${words(wrong.length <= WRONG_RATIO_MAX * equal.length)}: ${wrong.length} of ${equal.length} equal releases were rolled back${why === '' ? '' : ` (${why})`}, ${promoted.length} were promoted.`,
    `${words(inTime.length === half.length)}: ${inTime.length} of ${half.length} that fail every second attempt were rolled back within ${FAILED_ATTEMPTS_MAX} failed attempts.`,
    `${words(found.length === slow.length)}: ${found.length} of ${slow.length} that are 30 % slower were rolled back within ${SLOW_ATTEMPTS_MAX.toLocaleString('en-US')} of their attempts.`,
  ]
}

await runExperiment({
  name: 'canary-loads',
  title: 'Canaries at six loads: whole rollouts',
  about:
    'Scenarios good-canary and bad-canary with their own steps, dwell and pairs, at 0.8 to 1.3 times their load, with the stable release in one pool and in three that are never equally busy; seed n plays one load and one layout. Good would be: at most 3 of 200 equal releases rolled back; every release that fails every second attempt rolled back within 50 failed attempts; every one that is 30 % slower within 2,000 attempts.',
  seeds: 12,
  run,
})
