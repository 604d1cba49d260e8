/** What the project asks of its own gateway, judged from a run's figures. */
import type { Cell, Fault, Row } from './summary.ts'

export interface Aim {
  readonly text: string
  readonly found: string
  readonly isMet: boolean
}

interface Findings {
  readonly rows: readonly Row[]
  readonly faults: readonly Fault[]
  readonly streams: number
}

const REQUESTS_RATIO_MIN = { nginx: 0.2, portkey: 10 } as const
const ADDED_P50_MS_MAX = 0.5
const STREAMS = 5000
const RSS_MB_MAX = 400

const flaw = (isClean: boolean): string => (isClean ? '' : ', with faults')

function requestAims(requests: Cell, isClean: boolean): Aim[] {
  return (['nginx', 'portkey'] as const).flatMap((reference) => {
    const ratio = requests.ratios[reference]
    if (ratio === undefined) return []
    const least = REQUESTS_RATIO_MIN[reference]
    const text = `requests per CPU-second at least ${least} x ${reference}'s (median)`
    return [{ text, found: ratio.median.toFixed(2) + flaw(isClean), isMet: ratio.median >= least && isClean }]
  })
}

/** Medians for speed, the worst round for what must never happen. A slice with faults meets no aim. */
export function judgeAims({ rows, faults, streams }: Findings, target: string): readonly Aim[] {
  const cellOf = (id: string): Cell | undefined =>
    rows.find((row) => row.metric.id === id)?.cells.find((cell) => cell.target === target)
  const isClean = (slice: string): boolean => !faults.some((f) => f.target === target && f.slice === slice)
  const aims: Aim[] = []
  const requests = cellOf('json-c64.requests-per-cpu-second')
  if (requests !== undefined) aims.push(...requestAims(requests, isClean('json-c64')))
  const p50 = cellOf('json-r500.added-p50')?.value
  if (p50 !== undefined) {
    const text = `added p50 at 500 requests a second under ${ADDED_P50_MS_MAX} ms (median)`
    const isSound = isClean('json-r500')
    const found = `${p50.median.toFixed(2)} ms${flaw(isSound)}`
    aims.push({ text, found, isMet: p50.median < ADDED_P50_MS_MAX && isSound })
  }
  const held = cellOf('sse-held.streams')?.value
  const lost = cellOf('sse-held.lost')?.value
  const rss = cellOf('sse-held.rss-mb')?.value
  // Fewer streams than the aim names say nothing about it.
  if (held === undefined || lost === undefined || rss === undefined || streams < STREAMS) return aims
  const isWhole = held.min >= STREAMS && lost.max === 0 && isClean('sse-held')
  aims.push({
    text: `${STREAMS} streams open at once without a lost frame (worst round)`,
    found: `${held.min} open, ${lost.max} frames lost${flaw(isClean('sse-held'))}`,
    isMet: isWhole,
  })
  const text = `${STREAMS} open streams in under ${RSS_MB_MAX} MB (worst round)`
  aims.push({ text, found: `${rss.max.toFixed(0)} MB`, isMet: rss.max < RSS_MB_MAX && isWhole })
  return aims
}
