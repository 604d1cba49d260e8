import { COMPARISONS } from '../../../src/sim/scenario/comparisons.ts'
import type { TraceRequest } from '../../../src/sim/traces/trace.ts'
import { type Cell, type PlayedCell, playCell } from './play-cell.ts'

/**
 * A yardstick that no gateway can be: hindsight. The cell is played first come, first served, with everything admitted;
 * then, where answers were late, the largest requests of the time before are left out, by their true lengths, and it is
 * played again; when hardly any is late, the smallest of those come back. The best of the rounds counts. It is not the optimum, which nobody can compute,
 * and it is unfair to long answers: it says how much there was to gain.
 */
const ROUNDS_MAX = 12
/** Late answers, as a share of what came, that are not worth another round. */
const LATE_RATIO_MIN = 0.002
/** Of the late ones, the share of requests that is left out in a round: with all at once too many would go. */
const LEFT_OUT_RATIO = 0.4
/** Of those left out, the share that comes back when hardly any is late. */
const BACK_RATIO = 0.3

export async function playClairvoyant(
  cell: Cell,
  workOf: (request: TraceRequest) => number,
  holdS: number,
): Promise<PlayedCell> {
  const workAt = ({ requests }: Cell, index: number): number => workOf(requests[index] as TraceRequest)
  const leftOut = new Set<number>()
  let best: PlayedCell | undefined
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const played = await playCell(cell, { set: COMPARISONS['fifo']! }, (index) => !leftOut.has(index))
    if (best === undefined || played.goodPerS > best.goodPerS) best = played
    const late = [...played.missed].filter((index) => !leftOut.has(index))
    if (late.length <= LATE_RATIO_MIN * cell.requests.length) {
      if (leftOut.size === 0) break
      const smallest = [...leftOut].sort((a, b) => workAt(cell, a) - workAt(cell, b))
      for (const index of smallest.slice(0, Math.ceil(BACK_RATIO * leftOut.size))) leftOut.delete(index)
      continue
    }
    for (const index of toLeaveOut(cell.requests, late, leftOut, { workOf, holdS })) leftOut.add(index)
  }
  return best as PlayedCell
}

/** For each stretch of time with late answers, the largest requests of it and of the time before that they stood behind. */
function toLeaveOut(
  requests: readonly TraceRequest[],
  late: readonly number[],
  leftOut: ReadonlySet<number>,
  { workOf, holdS }: { readonly workOf: (request: TraceRequest) => number; readonly holdS: number },
): Set<number> {
  const stretchUs = (holdS * 1e6) / 2
  const stretchOf = (index: number): number => Math.floor((requests[index]?.atUs ?? 0) / stretchUs)
  const lateIn = new Map<number, number>()
  for (const index of late) lateIn.set(stretchOf(index), (lateIn.get(stretchOf(index)) ?? 0) + 1)
  const members = new Map<number, number[]>()
  for (const index of requests.keys()) {
    const stretch = stretchOf(index)
    members.set(stretch, [...(members.get(stretch) ?? []), index])
  }
  const chosen = new Set<number>()
  for (const [stretch, count] of lateIn) {
    const near = [stretch - 2, stretch - 1, stretch].flatMap((each) => members.get(each) ?? [])
    const there = near.filter((index) => !leftOut.has(index) && !chosen.has(index))
    const largest = there.sort((a, b) => workOf(requests[b] as TraceRequest) - workOf(requests[a] as TraceRequest))
    for (const index of largest.slice(0, Math.ceil(LEFT_OUT_RATIO * count))) chosen.add(index)
  }
  return chosen
}
