import type { RolloutReport } from '../../src/sim/report/rollout-tally.ts'
import { NO_DIFFERENCE, runCanary } from '../../test/support/canary-world.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import { play } from './kit/play.ts'
import type { Cell } from './kit/result.ts'

/**
 * How often is a release rolled back that is no worse, and how soon one that is? The whole platform in simulation, with
 * the tenants of the scenarios good-canary and bad-canary; and, for longer stories, attempts drawn straight into the
 * judge (test/support/canary-world.ts), as `judge.ts` does for more kinds of canary.
 */
const ROLLOUT = 'platform.models.0.rollout'

/** Two steps of 20 seconds at least: a whole rollout in two minutes. */
const QUICK = {
  durationS: 120,
  variants: {},
  expect: [],
  [`${ROLLOUT}.steps`]: [25, 50],
  [`${ROLLOUT}.dwellMs`]: 20_000,
  [`${ROLLOUT}.judge`]: { pairsMin: 100 },
}

const BAD = { durationS: 60, variants: {}, expect: [] }
const SLOW = { kind: 'replica-slow', target: 'chat@2', factor: 1.3, atS: 0, forS: 300 }

const CASES: ReadonlyArray<readonly [label: string, scenario: string, set: Readonly<Record<string, unknown>>]> = [
  ['no difference', 'good-canary', QUICK],
  ['no difference, a third of the replicas', 'good-canary', { ...QUICK, 'platform.pools.1.replicas': 1 }],
  ['always fails, at 5 %', 'bad-canary', { ...BAD, durationS: 30 }],
  ['30 % slower, at 5 %', 'bad-canary', { ...BAD, 'faults.0': SLOW }],
]

/** Cheap enough for as many as the claim speaks of. */
const DRAWN_SEEDS = Array.from({ length: 200 }, (_, index) => index + 1)

const COLUMNS = [
  'canary',
  'rolled back',
  'promoted',
  'its attempts until then: p50',
  'most',
  'most failed attempts',
  'users who saw a failure',
]

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const whole: Cell[][] = []
  for (const [label, scenario, set] of CASES) {
    const ends: RolloutReport[] = []
    let failed = 0
    for (const seed of seeds) {
      progress(`${label}: ${seed} of ${seeds.length}`)
      const report = await play({ scenario, set, seed })
      failed += report.requests.failed
      const end = report.rollouts['chat']
      if (end !== undefined) ends.push(end)
    }
    whole.push([label, ...summary(ends), failed])
  }
  const drawn: Cell[][] = [
    ['no difference', { ...NO_DIFFERENCE }] as const,
    ['always fails', { ...NO_DIFFERENCE, failRatio: 1 }] as const,
    ['30 % slower', { ...NO_DIFFERENCE, slower: 1.3 }] as const,
  ].map(([label, traits]) => {
    progress(label)
    const stories = DRAWN_SEEDS.map((seed) => runCanary({ seed, traits, attemptsMax: 40_000 }))
    const ends = stories.map(({ end, canaryAttempts, canaryFailures }) => ({
      rolledBack: Number(end === 'rolled-back'),
      promoted: Number(end === 'promoted'),
      canaryAttempts,
      canaryFailedAttempts: canaryFailures,
    }))
    return [label, ...summary(ends)]
  })
  const wrong = [whole[0], whole[1], drawn[0]].map((row) => Number(row?.[1]))
  return {
    tables: [
      { title: 'The whole platform, simulated', columns: COLUMNS, rows: whole },
      {
        title: 'Attempts drawn into the judge, 200 seeds: 40 unequal tenants, steps of 5, 25 and 50 %',
        columns: COLUMNS.slice(0, -1),
        rows: drawn,
      },
    ],
    verdict: [
      `Rolled back without cause: ${wrong[0]} and ${wrong[1]} of ${seeds.length} simulated rollouts, ${wrong[2]} of ${DRAWN_SEEDS.length} drawn ones (the judge is designed for at most 0.5 %).`,
      `One that always fails is rolled back after at most ${String(whole[2]?.[5])} failed attempts, of which users saw ${String(whole[2]?.[6])}; one that is 30 % slower after at most ${String(whole[3]?.[4])} of its attempts.`,
    ],
  }
}

type End = Pick<RolloutReport, 'rolledBack' | 'promoted' | 'canaryAttempts' | 'canaryFailedAttempts'>

function summary(ends: readonly End[]): Cell[] {
  const sum = (of: (end: End) => number): number => ends.reduce((total, end) => total + of(end), 0)
  const attempts = ends.map(({ canaryAttempts }) => canaryAttempts).toSorted((a, b) => a - b)
  return [
    sum(({ rolledBack }) => rolledBack),
    sum(({ promoted }) => promoted),
    attempts[Math.floor(attempts.length / 2)] ?? null,
    attempts.at(-1) ?? null,
    Math.max(...ends.map(({ canaryFailedAttempts }) => canaryFailedAttempts)),
  ]
}

await runExperiment({
  name: 'canary',
  title: 'Canaries: rolled back in time, and hardly ever without cause',
  about:
    'Scenarios good-canary (shortened: steps of 25 and 50 %, 20 s and 100 pairs each) and bad-canary (5 %), 14 unequal tenants, one of them bursty. Good would be: at most 3 of 200 rolled back without cause; a canary that always fails rolled back within 50 failed attempts, with no failure seen by users; one that is 30 % slower within 2,000 of its attempts.',
  seeds: 10,
  run,
})
