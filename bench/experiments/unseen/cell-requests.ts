import { Rng } from '../../../src/base/rng.ts'
import { type FullWorkPrices, fullWorkUs } from '../../../src/engine/full-work.ts'
import type { TraceRequest } from '../../../src/sim/traces/trace.ts'

/**
 * One cell's requests: a window of the trace that the seed chooses, at the wanted rate. The trace is a ring, so that a
 * short one can fill a long cell; its gaps are stretched or shrunk by one number, which keeps bursts what they are. The
 * same seed gives the same window to every policy, and the same requests at every load as far as the window goes.
 */
export interface CellWish {
  readonly seed: number
  /** Engine time asked for in a second: the load × what the engine does. */
  readonly workPerS: number
  readonly seconds: number
  readonly requestsMax: number
}

export interface CellRequests {
  readonly requests: readonly TraceRequest[]
  readonly seconds: number
}

/** Names given to senders where the trace has none: the few largest send most of it, as in ServeGen's figures. */
const MADE_UP_TENANTS = 8
/** Tenants of a trace that stay apart; others share the seats of those, by the hash of their names. */
const TENANTS_MAX = 64

export function cellRequests(
  trace: readonly TraceRequest[],
  workOf: (request: TraceRequest) => number,
  wish: CellWish,
): CellRequests {
  const rng = Rng.stream(wish.seed, 'window')
  const start = rng.below(trace.length)
  const count = countFor(trace, workOf, start, wish)
  const lengthUs = ringUs(trace)
  const at = (index: number): TraceRequest => trace[(start + index) % trace.length] as TraceRequest
  const beginUs = at(0).atUs
  const chosen: TraceRequest[] = []
  let work = 0
  for (let index = 0; index < count; index++) {
    const request = at(index)
    const turns = Math.floor((start + index) / trace.length)
    work += workOf(request)
    chosen.push({ ...request, atUs: request.atUs + turns * lengthUs - beginUs })
  }
  const seconds = work / wish.workPerS
  const lastUs = Math.max(1, chosen.at(-1)?.atUs ?? 1)
  const stretch = ((seconds * 1e6) / lastUs) * (1 - 1 / (count + 1))
  const nameOf = tenantNames(trace, wish.seed)
  const requests = chosen.map((request) => ({
    ...request,
    atUs: Math.round(request.atUs * stretch),
    tenant: nameOf(request),
  }))
  return { requests, seconds }
}

/** As many as fill the seconds at that rate, within the bound. */
function countFor(
  trace: readonly TraceRequest[],
  workOf: (request: TraceRequest) => number,
  start: number,
  { workPerS, seconds, requestsMax }: CellWish,
): number {
  let work = 0
  let count = 0
  while (count < requestsMax && work < workPerS * seconds) {
    work += workOf(trace[(start + count) % trace.length] as TraceRequest)
    count++
  }
  return Math.max(2, count)
}

/** One turn of the ring: the trace and one gap more. */
function ringUs(trace: readonly TraceRequest[]): number {
  const lastUs = (trace.at(-1) as TraceRequest).atUs
  return lastUs + Math.max(1, lastUs / Math.max(1, trace.length - 1))
}

function tenantNames(trace: readonly TraceRequest[], seed: number): (request: TraceRequest) => string {
  const counts = new Map<string, number>()
  for (const { tenant } of trace) if (tenant !== undefined) counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
  const seats = [...counts].sort((a, b) => b[1] - a[1]).slice(0, TENANTS_MAX)
  const seatOf = new Map(seats.map(([name], index) => [name, `t${index + 1}`]))
  const rng = Rng.stream(seed, 'senders')
  const total = Array.from({ length: MADE_UP_TENANTS }, (_, i) => 1 / (i + 1)).reduce((a, b) => a + b)
  return ({ tenant }) => {
    if (tenant !== undefined) return seatOf.get(tenant) ?? `t${1 + (hashOf(tenant) % TENANTS_MAX)}`
    let draw = rng.next() * total
    for (let i = 1; i <= MADE_UP_TENANTS; i++) {
      draw -= 1 / i
      if (draw < 0) return `t${i}`
    }
    return `t${MADE_UP_TENANTS}`
  }
}

function hashOf(name: string): number {
  let hash = 0
  for (const letter of name) hash = (Math.imul(hash, 31) + (letter.codePointAt(0) ?? 0)) >>> 0
  return hash
}

/** Seconds of a full engine that a request takes, by its true lengths and without any cache. */
export function workS(prices: FullWorkPrices, { promptTokens, outputTokens }: LengthsOf): number {
  const contextTokens = outputTokens * (promptTokens + outputTokens / 2)
  return fullWorkUs(prices, { promptTokens, generationTokens: outputTokens, contextTokens }) / 1e6
}

type LengthsOf = Pick<TraceRequest, 'promptTokens' | 'outputTokens'>

export interface Promises {
  readonly ttftMs: number
  readonly totalMs: number
}

const TTFT_MS_MIN = 2_000
const TOTAL_MS_MIN = 60_000
const INTER_TOKEN_MS = 50

/**
 * What is promised for a trace: a first token within 2 s, or four times what the 99th percentile of its prompts takes to
 * read; the answer within a minute, or what the 99th percentile of its answers takes at 50 ms a token.
 */
export function promisesFor(trace: readonly TraceRequest[], prices: FullWorkPrices): Promises {
  const promptP99 = percentile(
    trace.map(({ promptTokens }) => promptTokens),
    0.99,
  )
  const outputP99 = percentile(
    trace.map(({ outputTokens }) => outputTokens),
    0.99,
  )
  const ttftMs = Math.max(TTFT_MS_MIN, Math.ceil((4 * promptP99 * prices.promptTokenUs) / 1e6) * 1_000)
  return { ttftMs, totalMs: Math.max(TOTAL_MS_MIN, ttftMs + outputP99 * INTER_TOKEN_MS) }
}

export function percentile(values: readonly number[], level: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(level * sorted.length))] ?? 0
}
