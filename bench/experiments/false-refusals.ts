import { secondsToUs, usToSeconds } from '../../src/base/clock.ts'
import type { Settled } from '../../src/domain/entry.ts'
import type { Platform } from '../../src/lifecycle/platform.ts'
import { lockUp } from '../../test/support/lock-up.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import { type Played, playRun, type Setting } from './kit/replay.ts'
import type { Cell } from './kit/result.ts'

/** How many refusals for lateness are false, and does the live audit say so? */
interface Case extends Omit<Setting, 'seed'> {
  readonly name: string
  /** Refusals between these are looked at. */
  readonly fromS: number
  readonly toS: number
}

const BURST = [{ fromS: 12, toS: 20, factor: 5 }]
const SHORT = { 'platform.slos.0.ttftMs': 500 }

const CASES: readonly Case[] = [
  { name: 'overshoot-500', scenario: 'overshoot', set: SHORT, fromS: 10, toS: 35 },
  { name: 'overshoot-1000', scenario: 'overshoot', set: {}, fromS: 10, toS: 35 },
  { name: 'unknown-engine', scenario: 'unknown-engine', set: {}, fromS: 10, toS: 35 },
  {
    name: 'burst',
    scenario: 'burst',
    set: Object.fromEntries([0, 1, 2, 3].map((stream) => [`workload.${stream}.phases`, BURST])),
    fromS: 10,
    toS: 25,
  },
  { name: 'noisy-neighbour', scenario: 'noisy-neighbour', set: {}, fromS: 15, toS: 25 },
  { name: 'lock-up', scenario: 'overshoot', set: SHORT, install: lockUp, fromS: 10, toS: 35 },
]

/**
 * Requests that come this long after the refusal are looked at, as in the audit. Others' decisions are held as they were,
 * and later ones would have been made by a gateway that knew of the request: held for 15 s instead, the queue that one
 * request leaves grows with nobody to answer it, to twice its work in some runs.
 */
const BEHIND_S = 5
/** Time after the last refusal that is looked at, until which the first run goes on: the audit's horizon and more. */
const AFTER_S = 10
/** Replays end at multiples of this, so that they share the runs that they are compared with. */
const CUT_STEP_S = 5
/**
 * Noise floor. A request is late *because of* the one that was admitted if it misses its promise by more than this share
 * of it, having kept it before. First tokens come with the end of a step, and the steps of two runs do not line up: a
 * step beside many sequences takes about 10 ms, one hundredth of a promise of a second.
 */
const NOISE_RATIO = 0.01
const SAMPLE = 200
const POINTS_MAX = 5

async function run({ seeds, sample = SAMPLE, only, progress }: ExperimentOptions): Promise<Findings> {
  const rows: Cell[][] = []
  const missed: string[] = []
  const pointsOf = new Map<string, number[]>()
  for (const seed of seeds)
    for (const one of CASES) {
      if (only !== undefined && !only.includes(one.name)) continue
      const found = await examine(one, seed, sample, progress)
      const points = found.live - found.replayed
      rows.push([one.name, seed, found.refused, found.sampled, found.replayed, found.live, points, found.agreed])
      pointsOf.set(one.name, [...(pointsOf.get(one.name) ?? []), points])
      if (!(Math.abs(points) <= POINTS_MAX)) missed.push(`${one.name} with seed ${seed}, by ${points.toFixed(1)}`)
    }
  return {
    tables: [
      {
        title: 'Refusals for lateness that were false',
        columns: ['', 'seed', 'refused', 'replayed', 'false by replay %', 'by the audit %', 'points apart', 'agreed %'],
        rows,
      },
    ],
    verdict: [
      missed.length === 0
        ? `The live audit is within ${POINTS_MAX} points of the replays everywhere.`
        : `The live audit is more than ${POINTS_MAX} points from the replays in ${missed.join('; ')}.`,
      // One ticket that is nearly late decides about all refusals of the seconds before it: one seed tells little.
      `Points apart, mean over seeds: ${[...pointsOf].map(([name, all]) => `${name} ${mean(all).toFixed(1)}`).join(', ')}.`,
    ],
  }
}

async function examine(
  one: Case,
  seed: number,
  sample: number,
  progress: (what: string) => void,
): Promise<Record<'refused' | 'sampled' | 'replayed' | 'live' | 'agreed', number>> {
  const judged = new Map<string, boolean>()
  const setting: Setting = { ...one, seed }
  const listen = (platform: Platform): void => {
    one.install?.(platform)
    for (const { audit } of platform.policies.poolsById.values())
      audit.onJudged = ({ ticketId }, isFalse) => judged.set(ticketId, isFalse)
  }
  const first = await playRun({ ...setting, install: listen }, { cutS: one.toS + AFTER_S })
  const refused = [...first.settled.values()].filter((settled) => isLateRefusal(settled, one))
  const replays = new Replays(setting, first)
  const sampled = Array.from(
    { length: Math.min(sample, refused.length) },
    (_, i) => refused[Math.floor((i * refused.length) / Math.min(sample, refused.length))] as Settled,
  )
  const isFalse = new Map<string, boolean>()
  for (const settled of sampled) {
    progress(`${one.name}, seed ${seed}: ${isFalse.size} of ${sampled.length} replayed`)
    isFalse.set(settled.ticketId, await replays.isFalse(settled))
  }
  const known = refused.filter(({ ticketId }) => judged.has(ticketId))
  const both = sampled.filter(({ ticketId }) => judged.has(ticketId))
  return {
    refused: refused.length,
    sampled: sampled.length,
    replayed: percent(sampled, ({ ticketId }) => isFalse.get(ticketId) === true),
    live: percent(known, ({ ticketId }) => judged.get(ticketId) === true),
    agreed: percent(both, ({ ticketId }) => judged.get(ticketId) === isFalse.get(ticketId)),
  }
}

function isLateRefusal({ refusal, at }: Settled, { fromS, toS }: Case): boolean {
  return refusal?.code === 'predicted-late' && at >= secondsToUs(fromS) && at < secondsToUs(toS)
}

function percent(settled: readonly Settled[], is: (one: Settled) => boolean): number {
  return (100 * settled.filter(is).length) / settled.length
}

/** One run, replayed with one more request at a time. */
class Replays {
  readonly #setting: Setting
  readonly #decisions: Played['decisions']
  /** The same run without any, by where it was cut. */
  readonly #before = new Map<number, Played>()

  constructor(setting: Setting, { decisions }: Played) {
    this.#setting = setting
    this.#decisions = decisions
  }

  /** In time itself, and nobody made late by more than the noise floor who was in time before. */
  async isFalse({ ticketId, at }: Settled): Promise<boolean> {
    const cutS = Math.ceil((usToSeconds(at) + BEHIND_S) / CUT_STEP_S) * CUT_STEP_S
    const decisions = this.#decisions
    const before = this.#before.get(cutS) ?? (await playRun(this.#setting, { cutS, decisions }))
    this.#before.set(cutS, before)
    const { missed, settled } = await playRun(this.#setting, { cutS, decisions, forcedId: ticketId })
    if (missed.get(ticketId) !== 0) return false
    const until = at + secondsToUs(BEHIND_S)
    for (const [id, ratio] of missed) {
      const isLateNow = ratio > NOISE_RATIO && before.missed.get(id) === 0
      if (isLateNow && (settled.get(id) as Settled).arrivedAt <= until) return false
    }
    return true
  }
}

await runExperiment({
  name: 'false-refusals',
  title: 'Refusals for lateness: replayed, and as the live audit judges them',
  about: `Each of up to ${SAMPLE} refusals (\`--sample N\`) is replayed: the same seed and the same decisions about all others, with that one request admitted. The refusal was false if the request keeps its promises and no other that kept its own misses it by more than ${100 * NOISE_RATIO} % now. Requests that came within ${BEHIND_S} s of the refusal are looked at; replays end within ${BEHIND_S + CUT_STEP_S} s of it and are compared with the same run, cut at the same instant. *By the audit*: of all refusals of that time that the running gateway judged. In the lock-up, which is forced, first tokens are predicted to take longer than the promise, whatever the load.`,
  seeds: 1,
  hasLoads: true,
  hasSample: true,
  run,
})
