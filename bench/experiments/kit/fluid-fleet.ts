import { secondsToUs } from '../../../src/base/clock.ts'
import { Rng } from '../../../src/base/rng.ts'
import type { ScalingRule } from '../../../src/policy/autoscale/scaling-rule.ts'

/**
 * A pool as a fluid, second by second: work flows in, ready replicas work it off, at most two seconds of work wait and
 * what is over is refused. The rules of scaling are those that run live (`policy/autoscale`). One unit of work is what a
 * replica does in a second.
 *
 * Replicas are paid for from their order on, work one cold start later, and leave at once.
 */
export interface FluidRun {
  readonly gpuHours: number
  /** Share of the work that was refused, because it would have waited for longer than two seconds. */
  readonly lateRatio: number
  /** Changes of direction: an order down after one up, or up after one down. */
  readonly turns: number
}

const QUEUE_S = 2
/** Left out of lateness and hours, so that no rule is judged by how many replicas it was given. */
const WARMUP_S = 600
/** How long a request runs: with it, what runs at once follows from the work done. */
const ANSWER_S = 5
/** Requests that one replica serves in a second: what a queue's length is counted in. */
export const REQUESTS_PER_WORK = 7
const US = 1_000_000

/**
 * Work offered in each second: two days' waves in six hours, gusts of minutes as in the Azure trace of conversations,
 * a few sudden rises, and the scatter of single requests (about a hundred a second, sizes with a variation of 0.9).
 */
export function drawDemand(seed: number, seconds: number, meanReplicas: number): Float64Array {
  const rng = Rng.stream(seed, 'fluid-demand')
  const normal = (): number => Math.sqrt(-2 * Math.log(1 - rng.next())) * Math.cos(2 * Math.PI * rng.next())
  const rises = Array.from({ length: 4 }, () => ({
    from: rng.next() * seconds,
    forS: 240 + 480 * rng.next(),
    by: 0.3 + 0.4 * rng.next(),
  }))
  const work = new Float64Array(seconds)
  const phase = rng.next()
  let gust = 0
  for (let t = 0; t < seconds; t++) {
    const wave = 1 + 0.6 * Math.sin(2 * Math.PI * ((2 * t) / seconds + phase))
    gust += -gust / 180 + 0.14 * Math.sqrt(2 / 180) * normal()
    let rise = 0
    for (const { from, forS, by } of rises) {
      const at = t - from
      if (at > 0 && at < forS) rise += by * Math.min(1, at / 60, (forS - at) / 60)
    }
    const mean = meanReplicas * wave * Math.exp(gust) * (1 + rise)
    const requests = Math.max(1, mean * REQUESTS_PER_WORK)
    work[t] = Math.max(0, mean * (1 + Math.sqrt(1.8 / requests) * normal()))
  }
  return work
}

export interface FluidOptions {
  readonly rule: ScalingRule
  readonly demand: Float64Array
  readonly coldStartS: number
}

export function playFluid({ rule, demand, coldStartS }: FluidOptions): FluidRun {
  let ready = Math.ceil(1.5 * Math.max(...demand.subarray(0, 60)))
  let pending: number[] = []
  let backlog = 0
  let [paidS, refused, offered, turns, direction, running] = [0, 0, 0, 0, 0, 0]
  for (let t = 0; t < demand.length; t++) {
    ready += pending.filter((dueS) => dueS <= t).length
    pending = pending.filter((dueS) => dueS > t)
    const work = demand[t] as number
    const isCounted = t >= WARMUP_S
    if (isCounted) offered += work
    const had = backlog + work
    const done = Math.min(had, ready)
    backlog = had - done
    const over = Math.max(0, backlog - QUEUE_S * ready)
    if (isCounted) refused += over
    backlog -= over
    // What runs at once is what began in the time that an answer takes, not in this second.
    running += done - running / ANSWER_S
    if (isCounted) paidS += ready + pending.length
    const current = ready + pending.length
    const wanted = rule.wanted(
      secondsToUs(t + 1),
      {
        offeredCost: work,
        elapsedUs: US,
        backlogCost: backlog,
        queuedCount: backlog * REQUESTS_PER_WORK,
        heldCount: running * REQUESTS_PER_WORK,
        drainPerReplicaUs: 1 / US,
        readyCount: ready,
        pendingCount: pending.length,
        workRatio: ready === 0 ? 0 : done / ready,
        coldStartUs: secondsToUs(coldStartS),
      },
      current,
    )
    if (wanted === current) continue
    const towards = Math.sign(wanted - current)
    if (isCounted && direction !== 0 && towards !== direction) turns++
    direction = towards
    for (let i = current; i < wanted; i++) pending.push(t + coldStartS)
    // Those on their way are called back first: they have cost least.
    for (let i = wanted; i < current; i++) if (pending.pop() === undefined) ready--
  }
  return { gpuHours: paidS / 3_600, lateRatio: refused / offered, turns }
}
