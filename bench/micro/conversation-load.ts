/**
 * Chat traffic as a large cloud saw it (Azure 2023, conversations): from a file of arrival_s, input_tokens,
 * output_tokens, or drawn to the same figures: 5.5 requests a second, coefficient of variation of the gaps 1.1, input
 * p50/p90/p99 1,020/2,734/4,142, output 129/424/601. Used by the engine's benches.
 */
import { readFileSync } from 'node:fs'
import { Rng } from '../../src/base/rng.ts'

export interface LoadItem {
  readonly atUs: number
  readonly promptTokens: number
  readonly outputTokens: number
}

const RATE_PER_S = 5.5

/** Share of requests below, tokens; straight in the logarithm between. */
const INPUT = [
  [0, 20],
  [0.05, 180],
  [0.25, 400],
  [0.5, 1_020],
  [0.75, 1_210],
  [0.9, 2_734],
  [0.99, 4_142],
  [1, 4_300],
] as const
const OUTPUT = [
  [0, 7],
  [0.05, 38],
  [0.25, 80],
  [0.5, 129],
  [0.75, 396],
  [0.9, 424],
  [0.99, 601],
  [1, 1_000],
] as const

export function readLoad(path: string): readonly LoadItem[] {
  const rows = readFileSync(path, 'utf8').trim().split('\n').slice(1)
  return rows.map((row) => {
    const [arrivalS, promptTokens, outputTokens] = row.split(',').map(Number) as [number, number, number]
    return { atUs: Math.round(arrivalS * 1e6), promptTokens, outputTokens: Math.max(1, outputTokens) }
  })
}

export function drawLoad(count: number, seed: number): readonly LoadItem[] {
  const gaps = Rng.stream(seed, 'arrivals')
  const lengths = Rng.stream(seed, 'lengths')
  let atUs = 0
  return Array.from({ length: count }, () => {
    atUs += Math.round(gapS(gaps) * 1e6)
    return {
      atUs,
      promptTokens: fromQuantiles(INPUT, lengths.next()),
      outputTokens: fromQuantiles(OUTPUT, lengths.next()),
    }
  })
}

/** The same arrivals, faster. */
export function quickened(load: readonly LoadItem[], factor: number): readonly LoadItem[] {
  return load.map((item) => ({ ...item, atUs: Math.round(item.atUs / factor) }))
}

/** A mix of two exponentials with equal shares of the time: CV² = 1.21 when the rarer has p = 0.346 of the draws. */
function gapS(rng: Rng): number {
  const p = 0.346
  const share = rng.next() < p ? p : 1 - p
  return -Math.log(1 - rng.next()) / (2 * share * RATE_PER_S)
}

function fromQuantiles(knots: readonly (readonly [number, number])[], at: number): number {
  const above = knots.findIndex(([share]) => share > at)
  const [[fromShare, from], [toShare, to]] = [knots[above - 1], knots[above]] as [[number, number], [number, number]]
  return Math.round(from * (to / from) ** ((at - fromShare) / (toShare - fromShare)))
}
