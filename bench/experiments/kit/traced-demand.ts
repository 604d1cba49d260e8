import { Rng } from '../../../src/base/rng.ts'
import { weightedTokens } from '../../../src/policy/planning/cost.ts'
import { openTrace } from '../../../src/sim/traces/fs-trace.ts'

/**
 * A recording as the demand of one day: its requests at their times and with their sizes, stretched by day and night.
 *
 * Recordings are of half an hour and of a few requests a second. So a recording is played there and back again (from its
 * end to its beginning there would be a jump that nobody recorded), at a speed that goes from 0.4 by night to 1.6 by day:
 * gaps are longer by night, and no request changes its size. A pool of many replicas has more requests than the recording;
 * there are two ways to have them.
 *
 * `grown`: one service with more users. Each recorded request stands for as many as are needed, somewhere within a minute,
 * so that the recording's minutes stay as they were and single requests are no larger than they are.
 * `many`: as many such services as are needed share the pool, each begun at a place of its own. Their minutes even out.
 *
 * All work is scaled to `meanReplicas` on average; a unit of work is what a replica does in a second.
 * Example: 5.6 requests a second, 14.4 replicas with 7 requests a second each: every recorded request stands for 18.
 */
export type TraceGrowth = 'grown' | 'many'

export interface TracedDay {
  readonly seed: number
  readonly seconds: number
  readonly meanReplicas: number
  readonly requestsPerWork: number
  readonly growth: TraceGrowth
}

export interface RecordedWork {
  readonly requests: readonly { readonly atS: number; readonly cost: number }[]
  readonly lengthS: number
}

const WAVE = 0.6
const SPREAD_S = 60

/** Left out: recordings begin thin, and played there and back that would be a hole in every hour. */
const BEGINNING_S = 60

export function readWork(path: string): RecordedWork {
  const there: { atS: number; cost: number }[] = []
  for (const { atUs, promptTokens, outputTokens } of openTrace(path).requests()) {
    const atS = atUs / 1e6 - BEGINNING_S
    if (atS >= 0) there.push({ atS, cost: weightedTokens({ promptTokens, outputTokens, cachedTokens: 0 }) })
  }
  const endS = there.at(-1)?.atS ?? 0
  const back = there.map(({ atS, cost }) => ({ atS: 2 * endS - atS, cost }))
  return { requests: [...there, ...back.toReversed()], lengthS: 2 * endS }
}

export function drawTracedDay({ requests, lengthS }: RecordedWork, day: TracedDay): Float64Array {
  const { seed, seconds, meanReplicas, requestsPerWork, growth } = day
  const rng = Rng.stream(seed, 'traced-day')
  const secondOf = playedAt(seconds, rng.next())
  const copies = Math.max(1, Math.round((meanReplicas * requestsPerWork * lengthS) / requests.length))
  const work = new Float64Array(seconds)
  const starts = Array.from({ length: copies }, () => rng.next() * lengthS)
  for (let copy = 0; copy < copies; copy++) {
    const from = starts[growth === 'many' ? copy : 0] as number
    const spreadS = growth === 'many' ? 0 : SPREAD_S
    // From the round before the first, for some of its requests fall into the day.
    for (let begin = -lengthS - from; begin < seconds + spreadS; begin += lengthS) {
      for (const { atS, cost } of requests) {
        const t = secondOf(begin + atS + (rng.next() - 0.5) * spreadS)
        if (t !== undefined) work[t] = (work[t] as number) + cost
      }
    }
  }
  const scale = (meanReplicas * seconds) / work.reduce((sum, each) => sum + each, 0)
  return work.map((each) => each * scale)
}

/** In which second of the day a second of the endless recording is played; the wave's mean is one, so both are as long. */
function playedAt(seconds: number, phase: number): (recordedS: number) => number | undefined {
  const played = new Float64Array(seconds)
  for (let t = 0, sum = 0; t < seconds; t++) {
    sum += 1 + WAVE * Math.sin(2 * Math.PI * (t / seconds + phase))
    played[t] = sum
  }
  // For each whole second of the recording, the second of the day in which it begins.
  const begun = new Int32Array(seconds)
  for (let second = 0, t = 0; second < seconds; second++) {
    while (t < seconds - 1 && (played[t] as number) <= second) t++
    begun[second] = t
  }
  return (recordedS) => {
    if (recordedS < 0 || recordedS >= seconds) return undefined
    let t = begun[Math.floor(recordedS)] as number
    while (t < seconds - 1 && (played[t] as number) <= recordedS) t++
    return t
  }
}
