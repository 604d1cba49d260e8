import { spentUs } from '../../domain/engine-time.ts'
import type { AttemptSecond, ReplicaSecond } from './second-report.ts'
import { splitExactly } from './split-exactly.ts'

/**
 * Who pays for one second of one replica?
 *
 * The second has a bill in whole nano-dollars. The time in which steps ran is split by engine time over the attempts that
 * were in them; what preempted sequences read again is waste, whoever they belong to; the rest of the second is idle.
 *
 *     measured   the weights are microseconds of the engine, and their sum is its busy time
 *     estimated  the weights are scaled to the time in which something was in flight. Each gateway knows that of its own
 *                requests; of several gateways the union is taken as if they were independent: 1 − Π(1 − busy)
 *
 * All claims, idle time included, are rounded together (`split-exactly.ts`): so the lines add up to the bill (law L15).
 * Deliberately not here: who pays in the end for an attempt that fails later (`second-closer.ts` moves that).
 *
 * Example: 1,180,556 nano-dollars, two attempts with 400,000 and 200,000 µs of engine time: 472,222 + 236,111 + idle
 * 472,223.
 */
export interface SecondToClose {
  readonly billNano: number
  /** Of the second, as long as the replica was there. */
  readonly spanUs: number
  readonly reports: readonly ReplicaSecond[]
  /** What gateways that have not reported had taken in their last second. */
  readonly crashedUs: number
  readonly lateUs: number
}

export interface SplitSecond {
  readonly busyUs: number
  readonly isMeasured: boolean
  /** Factor from reported to billed engine time. */
  readonly scale: number
  readonly rows: readonly SplitRow[]
  readonly idleNano: number
  readonly crashedNano: number
  readonly lateNano: number
}

export interface SplitRow {
  readonly row: AttemptSecond
  readonly usedNano: number
  readonly againNano: number
}

export function splitSecond({ billNano, spanUs, reports, crashedUs, lateUs }: SecondToClose): SplitSecond {
  const rows = reports.flatMap((report) => report.rows)
  const isMeasured = reports.every((report) => report.isMeasured)
  let claimedUs = crashedUs + lateUs
  for (const { time } of rows) claimedUs += spentUs(time)
  const busyUs = Math.min(spanUs, isMeasured ? claimedUs : unionUs(reports, spanUs, crashedUs + lateUs))
  const scale = claimedUs > 0 ? busyUs / claimedUs : 0
  const weights: number[] = []
  for (const { time } of rows) {
    weights.push(scale * (time.prefillUs + time.decodeUs))
    if (time.againUs > 0) weights.push(scale * time.againUs)
  }
  weights.push(scale * crashedUs, scale * lateUs)
  // Without work that anybody claims all of the second is idle, however short it is.
  weights.push(claimedUs > 0 ? Math.max(0, spanUs - busyUs) : 1)
  const parts = splitExactly(billNano, weights)
  let next = 0
  const take = (): number => parts[next++] as number
  return {
    busyUs: claimedUs > 0 ? busyUs : 0,
    isMeasured,
    scale,
    rows: rows.map((row) => ({ row, usedNano: take(), againNano: row.time.againUs > 0 ? take() : 0 })),
    crashedNano: take(),
    lateNano: take(),
    idleNano: take(),
  }
}

/** Time in which at least one gateway had something in flight. */
function unionUs(reports: readonly ReplicaSecond[], spanUs: number, missingUs: number): number {
  let idleRatio = Math.max(0, 1 - missingUs / Math.max(1, spanUs))
  for (const { busyUs } of reports) idleRatio *= Math.max(0, 1 - busyUs / Math.max(1, spanUs))
  return spanUs * (1 - idleRatio)
}
