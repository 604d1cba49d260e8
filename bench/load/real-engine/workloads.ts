import { Rng } from '../../../src/base/rng.ts'

/**
 * What is sent, when, and by whom: an open loop, so a slow server does not slow its clients down.
 *
 *   calmN   three tenants, N requests a second together
 *   overN   ten tenants alike, N a second together
 *   noisy   two calm tenants and one that sends fifteen times as much in the middle of the run
 *
 * Lengths are those of Azure's conversations (prompts P50 1,020, answers P50 129), cut to what the engine takes.
 */
export interface Ask {
  readonly atS: number
  readonly tenant: string
  readonly promptTokens: number
  readonly outputTokens: number
}

export interface Workload {
  readonly name: string
  readonly seconds: number
  readonly asks: readonly Ask[]
  /** Of a run with a spike: whose answers are looked at by themselves, and when. */
  readonly calm?: { readonly tenants: readonly string[]; readonly fromS: number; readonly toS: number }
}

const PROMPTS: readonly (readonly [number, number])[] = [
  [0, 8],
  [0.01, 39],
  [0.05, 181],
  [0.1, 310],
  [0.25, 398],
  [0.5, 1_020],
  [0.75, 1_204],
  [0.9, 2_734],
  [1, 3_300],
]
const OUTPUTS: readonly (readonly [number, number])[] = [
  [0, 7],
  [0.01, 16],
  [0.05, 38],
  [0.1, 49],
  [0.25, 80],
  [0.5, 129],
  [0.75, 390],
  [0.9, 424],
  [0.95, 460],
  [1, 590],
]

/** Share of the run before the spike, and until its end. */
const SPIKE = { from: 2 / 7, to: 5 / 7, factor: 15, calmPerS: 4 }

export const tenantsOf = (name: string): readonly string[] =>
  name === 'noisy' || name.startsWith('calm') ? ['a', 'b', 'c'] : Array.from({ length: 10 }, (_, i) => `t${i}`)

export function makeWorkload(name: string, seed: number, seconds: number): Workload | undefined {
  const match = /^(calm|over)(\d+(?:\.\d+)?)$/.exec(name)
  if (match === null && name !== 'noisy') return undefined
  const tenants = tenantsOf(name)
  const rng = Rng.stream(seed, `real-engine/${name}`)
  const [fromS, toS] = [seconds * SPIKE.from, seconds * SPIKE.to]
  const perS = match === null ? SPIKE.calmPerS : Number(match[2]) / tenants.length
  const isSpike = (tenant: string, atS: number): boolean =>
    match === null && tenant === 'c' && atS >= fromS && atS < toS
  const asks = tenants.flatMap((tenant) =>
    arrivals(rng, tenant, seconds, (atS) => (isSpike(tenant, atS) ? SPIKE.factor : 1) * perS),
  )
  asks.sort((a, b) => a.atS - b.atS)
  return { name, seconds, asks, ...(match === null && { calm: { tenants: ['a', 'b'], fromS, toS } }) }
}

function arrivals(rng: Rng, tenant: string, seconds: number, perS: (atS: number) => number): Ask[] {
  const asks: Ask[] = []
  for (let atS = gap(rng, perS(0)); atS < seconds; atS += gap(rng, perS(atS))) {
    asks.push({ atS, tenant, promptTokens: draw(rng, PROMPTS), outputTokens: draw(rng, OUTPUTS) })
  }
  return asks
}

const gap = (rng: Rng, perS: number): number => -Math.log(1 - rng.next()) / perS

function draw(rng: Rng, points: readonly (readonly [number, number])[]): number {
  const at = rng.next()
  const next = points.findIndex(([quantile]) => quantile >= at)
  const [q1, v1] = points[Math.max(1, next)]!
  const [q0, v0] = points[Math.max(1, next) - 1]!
  return Math.round(v0 + ((v1 - v0) * (at - q0)) / (q1 - q0))
}
