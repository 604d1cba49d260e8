/**
 * From samples to medians, spreads and ratios.
 *
 * A ratio compares two targets inside one round, where both saw the same neighbours on the machine; the ratios of the rounds are
 * then summarised. That is steadier than dividing two medians.
 */
import type { Sample } from './measure.ts'
import { METRICS, type Metric } from './metrics.ts'

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
  readonly rounds: number
}

export interface Cell {
  readonly target: string
  readonly value?: Spread
  /** Keyed by the target that it is divided by. */
  readonly ratios: Readonly<Record<string, Spread>>
}

export interface Row {
  readonly metric: Metric
  readonly cells: readonly Cell[]
}

/** A slice that did not go as asked: its figures are shown, but not to be trusted. */
export interface Fault {
  readonly slice: string
  readonly target: string
  readonly round: number
  readonly what: string
}

export const REFERENCES = ['nginx', 'portkey'] as const

function spread(values: readonly number[]): Spread | undefined {
  if (values.length === 0) return undefined
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const median =
    sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
  return { median, min: sorted[0] ?? 0, max: sorted.at(-1) ?? 0, rounds: sorted.length }
}

type ByRound = ReadonlyMap<number, number>

function valuesByRound(metric: Metric, target: string, samples: readonly Sample[]): ByRound {
  const values = new Map<number, number>()
  for (const sample of samples) {
    if (sample.slice !== metric.slice || sample.target !== target) continue
    const direct = samples.find((s) => s.slice === sample.slice && s.round === sample.round && s.target === 'direct')
    const value = metric.value(sample, direct)
    if (value !== undefined && Number.isFinite(value)) values.set(sample.round, value)
  }
  return values
}

/** Rounds in which noise made either side "add" less than nothing say nothing about a ratio, and are left out. */
function ratiosByRound(own: ByRound, reference: ByRound): number[] {
  const ratios: number[] = []
  for (const [round, value] of own) {
    const divisor = reference.get(round)
    if (divisor !== undefined && divisor > 0 && value >= 0) ratios.push(value / divisor)
  }
  return ratios
}

export function summarise(samples: readonly Sample[]): readonly Row[] {
  const targets = [...new Set(samples.map((sample) => sample.target))]
  const measured = METRICS.filter((metric) => samples.some((sample) => sample.slice === metric.slice))
  return measured.map((metric) => {
    const values = new Map(targets.map((target) => [target, valuesByRound(metric, target, samples)]))
    const cells = targets.map((target): Cell => {
      const own = values.get(target) ?? new Map<number, number>()
      const ratios: Record<string, Spread> = {}
      for (const reference of REFERENCES) {
        const found = spread(ratiosByRound(own, values.get(reference) ?? new Map()))
        if (found !== undefined && target !== 'direct') ratios[reference] = found
      }
      const value = spread([...own.values()])
      return value === undefined ? { target, ratios } : { target, value, ratios }
    })
    return { metric, cells }
  })
}

export function findFaults(samples: readonly Sample[]): readonly Fault[] {
  return samples.flatMap(({ slice, target, round, client }) => {
    const parts: string[] = []
    if (client.bad > 0)
      parts.push(`${client.bad} bad answers (first: ${client.badStatus} ${client.badBody.slice(0, 120)})`)
    if (client.errors > 0) parts.push(`${client.errors} connections broken`)
    if (client.unopened > 0) parts.push(`${client.unopened} streams not opened`)
    if (client.unfinished > 0) parts.push(`${client.unfinished} unfinished`)
    if (client.lost > 0) parts.push(`${client.lost} frames lost`)
    if (client.disordered > 0) parts.push(`${client.disordered} frames out of order`)
    if (client.undone > 0) parts.push(`${client.undone} streams without [DONE]`)
    return parts.length === 0 ? [] : [{ slice, target, round, what: parts.join(', ') }]
  })
}
