/**
 * How often is the canary's judge wrong, and how soon is it right?
 *
 * Many seeded worlds (test/support/canary-world.ts) for each kind of canary: skewed tenants, wrong predictions, waves of
 * load, and a judge that is asked all the time. "held" keeps the canary at 5 % for the whole run, so that a false alarm
 * has as long as it likes; the others climb 5, 25, 50 % and are promoted.
 *
 *   node bench/experiments/judge.ts [seeds] [attempts]
 */
import { type CanaryStory, type CanaryTraits, NO_DIFFERENCE, runCanary } from '../../test/support/canary-world.ts'

const SEEDS = Number(process.argv[2] ?? 200)
const ATTEMPTS = Number(process.argv[3] ?? 100_000)

const NEVER_ENOUGH = { pairsMin: Number.POSITIVE_INFINITY }

const canaries: Readonly<Record<string, { readonly traits: Partial<CanaryTraits>; readonly isHeld?: true }>> = {
  'no difference': { traits: {} },
  'no difference, held': { traits: {}, isHeld: true },
  'always fails': { traits: { failRatio: 1 } },
  'fails 5 % more': { traits: { failRatio: 0.05 } },
  'fails 1 % more, held': { traits: { failRatio: 0.01 }, isHeld: true },
  '30 % slower': { traits: { slower: 1.3 } },
  '30 % slower, held': { traits: { slower: 1.3 }, isHeld: true },
  '10 % slower, held': { traits: { slower: 1.1 }, isHeld: true },
  '3 % slower, held': { traits: { slower: 1.03 }, isHeld: true },
  'refuses 5 % more': { traits: { refuseRatio: 0.05 } },
  'scores 30 points less, held': { traits: { scoreDrop: 0.3 }, isHeld: true },
  '20 % faster': { traits: { slower: 0.8 } },
}

const quantile = (values: readonly number[], ratio: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(ratio * (values.length - 1))] ?? Number.NaN

console.log(`${SEEDS} seeds, at most ${ATTEMPTS} attempts each\n`)
console.log(
  'canary                        rolled back  promoted  canary attempts until the end: p50    p95    max   most failures',
)
for (const [name, { traits, isHeld }] of Object.entries(canaries)) {
  const stories: CanaryStory[] = []
  for (let seed = 1; seed <= SEEDS; seed++) {
    const judge = isHeld === true ? NEVER_ENOUGH : {}
    stories.push(runCanary({ seed, traits: { ...NO_DIFFERENCE, ...traits }, attemptsMax: ATTEMPTS, judge }))
  }
  const count = (end: CanaryStory['end']): string => String(stories.filter((story) => story.end === end).length)
  const attempts = stories.map(({ canaryAttempts }) => canaryAttempts)
  const failures = Math.max(...stories.map(({ canaryFailures }) => canaryFailures))
  const [p50, p95, most] = [0.5, 0.95, 1].map((ratio) => String(quantile(attempts, ratio)).padStart(7))
  console.log(
    `${name.padEnd(30)}${count('rolled-back').padStart(11)}${count('promoted').padStart(10)}${''.padEnd(28)}${p50}${p95}${most}${String(failures).padStart(16)}`,
  )
}
