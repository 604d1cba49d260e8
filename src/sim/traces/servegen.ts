import { US_PER_S } from '../../base/clock.ts'
import { type HeapItem, IndexedHeap } from '../../base/indexed-heap.ts'
import { Rng } from '../../base/rng.ts'
import { drawTokens, drawUnitGap } from '../clients/draw.ts'
import type { Lengths } from '../scenario/scenario.ts'
import { hasFields, parseJsonLine } from './json-line.ts'
import { LineFault, shown, type TraceFormat, type TraceLine, type TraceOptions, type TraceRequest } from './trace.ts'

/**
 * ServeGen's clients (Alibaba): one client a line, with quantiles of its lengths and, for windows of time, its rate and
 * burstiness. Requests are drawn from these, from the seed, and the clients are merged by time: memory is one line per
 * client, for any duration.
 */
export const servegen: TraceFormat = {
  name: 'servegen',
  example: '{"client": "a", "mean_rps": 2, "input": {"p50": 800, …}, "output": {…}, "windows": [[0, 2.5, 1.1], …]}',
  claims: (firstLine) => hasFields(firstLine, ['client', 'input', 'output', 'windows']),
  *read(lines, options) {
    const heads = new IndexedHeap<Head>()
    let sequence = 0
    for (const line of lines) {
      const source = requestsOf(clientOf(line), options)[Symbol.iterator]()
      const first = source.next()
      if (first.done === true) continue
      heads.push({ heapIndex: -1, sequence: sequence++, next: first.value, source }, first.value.atUs)
    }
    for (let head = heads.peek(); head !== undefined; head = heads.peek()) {
      yield head.next
      const next = head.source.next()
      if (next.done === true) heads.remove(head)
      else {
        head.next = next.value
        heads.update(head, next.value.atUs)
      }
    }
  },
}

/** One client: its next request, by whose time the clients are merged; at one instant, in the order of the lines. */
interface Head extends HeapItem {
  next: TraceRequest
  readonly source: Iterator<TraceRequest>
}

interface ServegenClient {
  readonly name: string
  readonly input: Lengths
  readonly output: Lengths
  readonly windows: readonly Window[]
}

interface Window {
  readonly startS: number
  readonly ratePerS: number
  readonly cv: number
}

/** Length of the last window, which has no successor: the length of the other windows. */
const WINDOW_S = 600

function* requestsOf(client: ServegenClient, { factor, seed }: TraceOptions): Iterable<TraceRequest> {
  const rng = Rng.stream(seed, `trace/${client.name}`)
  for (const [i, { startS, ratePerS, cv }] of client.windows.entries()) {
    if (ratePerS === 0) continue
    const endS = client.windows[i + 1]?.startS ?? startS + WINDOW_S
    // A window with one request has no variation: its gaps are drawn as Poisson.
    const arrivals = { kind: 'gamma', ratePerS, cv: cv > 0 ? cv : 1 } as const
    // The first gap begins at a random point before the window; otherwise every window would begin with a burst.
    let atS = startS + (drawUnitGap(arrivals, rng) / ratePerS) * rng.next()
    for (; atS < endS; atS += drawUnitGap(arrivals, rng) / ratePerS) {
      yield {
        atUs: Math.round((atS * US_PER_S) / factor),
        tenant: client.name,
        promptTokens: drawTokens(client.input, rng),
        outputTokens: drawTokens(client.output, rng),
      }
    }
  }
}

function clientOf(line: TraceLine): ServegenClient {
  const { client, input, output, windows } = parseJsonLine(line)
  if (typeof client !== 'string' || client === '') {
    throw new LineFault(line.number, `client is ${shown(client)}, not a name.`)
  }
  if (!Array.isArray(windows)) throw new LineFault(line.number, `windows is ${shown(windows)}, not a list.`)
  let lastS = -1
  const read = windows.map((window: unknown): Window => {
    const [startS, ratePerS, cv] = Array.isArray(window) ? (window as unknown[]) : []
    if (!isAtLeastZero(startS) || !isAtLeastZero(ratePerS) || !isAtLeastZero(cv)) {
      throw new LineFault(line.number, `a window is ${shown(window)}, not [start, rate, variation].`)
    }
    if (startS <= lastS) throw new LineFault(line.number, `the window at ${startS} s is not after the one before it.`)
    lastS = startS
    return { startS, ratePerS, cv }
  })
  return {
    name: client,
    input: lengthsOf(line, 'input', input),
    output: lengthsOf(line, 'output', output),
    windows: read,
  }
}

function isAtLeastZero(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}

/** `{"p10": 76, "p50": 822, …}` as points to interpolate; the first and last points are the ends of the data. */
function lengthsOf(line: TraceLine, field: string, value: unknown): Lengths {
  const points: Array<[number, number]> = []
  for (const [name, tokens] of Object.entries(typeof value === 'object' && value !== null ? value : {})) {
    const quantile = Number(/^p(\d+(?:\.\d+)?)$/.exec(name)?.[1]) / 100
    if (!(quantile > 0 && quantile < 1) || !isAtLeastZero(tokens)) {
      throw new LineFault(line.number, `${field}.${name} is ${shown(tokens)}, not a quantile of token counts.`)
    }
    points.push([quantile, Math.max(1, Math.round(tokens))])
  }
  points.sort((a, b) => a[0] - b[0])
  const lowest = points[0]
  const highest = points.at(-1)
  if (lowest === undefined || highest === undefined) {
    throw new LineFault(line.number, `${field} is ${shown(value)}, not a block of quantiles like {"p50": 800}.`)
  }
  for (const [i, [, tokens]] of points.entries()) {
    if (tokens < (points[i - 1]?.[1] ?? 0)) throw new LineFault(line.number, `${field}'s quantiles do not ascend.`)
  }
  return { kind: 'quantiles', points: [[0, Math.max(1, Math.round(lowest[1] / 2))], ...points, [1, highest[1]]] }
}
