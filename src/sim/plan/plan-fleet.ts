import type { PlanPoint, PlanRun } from './plan-point.ts'
import { shortfallOf } from './plan-point.ts'
import type { PlanTarget } from './plan-scenario.ts'

/**
 * What is the smallest number of replicas that meets the target? The number is doubled until it does, then the gap to
 * the last number that did not is halved: sixteen numbers at most up to 256 replicas. A number counts when every seed
 * meets the target; its first failing seed ends it, so numbers that are too small cost one run.
 *
 * More replicas may not help: a prompt takes as long as it takes on an idle engine. The search ends when twice as many
 * changed nothing by more than 2 %.
 */
export interface PlanSearch {
  readonly target: PlanTarget
  readonly seeds: readonly number[]
  readonly replicasMax: number
  /** One simulated run. */
  readonly run: (replicas: number, seed: number, outlook: RunOutlook) => Promise<PlanRun>
}

/** How far the search is: runs that have ended, and about how many are to come after this one. */
export interface RunOutlook {
  readonly endedCount: number
  readonly comingCount: number
}

export interface FleetPlan {
  /** By number of replicas. */
  readonly points: readonly PlanPoint[]
  readonly answer: PlanPoint | undefined
  /** Why there is no answer; empty when there is one. */
  readonly because: string
}

const SAME_RATIO = 0.02

export async function planFleet(search: PlanSearch): Promise<FleetPlan> {
  const found = new Evaluations(search)
  let tooFew = 0
  let enough: PlanPoint | undefined
  let before: PlanPoint | undefined
  for (let replicas = 1; enough === undefined; replicas = Math.min(2 * replicas, search.replicasMax)) {
    const point = await found.at(replicas, halvingsOf(replicas - tooFew))
    if (point.meets) enough = point
    else {
      tooFew = replicas
      if (before !== undefined && isNoBetter(before, point)) return found.failed(noHelp(point))
      if (replicas === search.replicasMax) return found.failed(`${replicas} replicas do not suffice: ${point.because}.`)
      before = point
    }
  }
  while (enough.replicas - tooFew > 1) {
    const middle = Math.floor((tooFew + enough.replicas) / 2)
    const point: PlanPoint = await found.at(middle, halvingsOf((enough.replicas - tooFew) / 2))
    if (point.meets) enough = point
    else tooFew = middle
  }
  return { points: found.points(), answer: enough, because: '' }
}

/** Numbers to come, if the present one suffices: the gap is halved until it is one. */
const halvingsOf = (gap: number): number => Math.ceil(Math.log2(Math.max(1, gap)))

const noHelp = ({ replicas, because }: PlanPoint): string =>
  `more replicas do not help: with ${replicas / 2} and with ${replicas}, ${because}. ` +
  'Choose a faster GPU, or a target that one request alone can meet.'

/** Nothing was refused for want of room, and the times are those of half as many replicas. */
function isNoBetter(before: PlanPoint, point: PlanPoint): boolean {
  const [one, other] = [before.runs.at(-1), point.runs.at(-1)] as [PlanRun, PlanRun]
  const isSame = (of: (run: PlanRun) => number): boolean =>
    of(one) === of(other) || Math.abs(of(one) - of(other)) <= SAME_RATIO * of(one)
  const figures: Array<(run: PlanRun) => number> = [
    (run) => run.ttftP95,
    (run) => run.itlP95,
    (run) => run.peak.ttftP95,
    (run) => run.peak.itlP95,
    (run) => run.refusedRatio,
  ]
  return figures.every(isSame)
}

class Evaluations {
  readonly #search: PlanSearch
  readonly #points: PlanPoint[] = []
  #endedCount = 0

  constructor(search: PlanSearch) {
    this.#search = search
  }

  points(): PlanPoint[] {
    return this.#points.toSorted((a, b) => a.replicas - b.replicas)
  }

  failed(because: string): FleetPlan {
    return { points: this.points(), answer: undefined, because }
  }

  async at(replicas: number, numbersToCome: number): Promise<PlanPoint> {
    const { seeds, target, run } = this.#search
    const runs: PlanRun[] = []
    let because: string | undefined
    for (const [i, seed] of seeds.entries()) {
      // Half of the numbers to come fail with their first seed.
      const comingCount = seeds.length - 1 - i + (numbersToCome * (seeds.length + 1)) / 2
      const made = await run(replicas, seed, { endedCount: this.#endedCount++, comingCount })
      runs.push(made)
      because = shortfallOf(made, target)
      if (because !== undefined) break
    }
    const point = { replicas, runs, meets: because === undefined, because: because ?? '' }
    this.#points.push(point)
    return point
  }
}
