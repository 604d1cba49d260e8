import { Rng } from '../../src/base/rng.ts'
import { type RooflineCoefficients, servingCoefficients } from '../../src/engine/gpu-profile.ts'
import { findGpuProfile } from '../../src/engine/gpu-profiles.ts'
import { shapleyShares } from '../../test/support/naive-shares.ts'
import { drawStep, RULES, shapleyOfMany, splitBy } from './attribution/step-rules.ts'
import { TENANTS, type TenantShares, tenantShares, type Way } from './attribution/tenant-shares.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import type { Table } from './kit/result.ts'

/**
 * How fair is the split of engine time, and how far are token prices and a gateway's estimate from it?
 *
 * Its own options: `--seconds N` of each simulated run; `--gathered`: engines hand over an answer in two pieces, its first
 * token and the rest, so that the gateway has to suppose what was made between.
 */
const STEPS = 400
const MANY = [16, 64, 256] as const
const GPUS = ['a100-llama-8b', 'h100-llama-8b', 'h200-llama-8b'] as const
const PROFILE = 'h100-llama-8b'
const SECONDS = 30
const POINTS_MAX = 2

const WAYS: Readonly<Record<Way, string>> = {
  engine: 'engine time',
  estimate: 'gateway’s estimate',
  flat: 'flat token price',
  weighted: 'input 1 : output 4',
}

async function run({ seeds, loads, given, progress }: ExperimentOptions): Promise<Findings> {
  const durationS = Number(given['seconds'] ?? SECONDS)
  const tellsEveryToken = given['gathered'] !== true
  const small = smallSteps()
  const many = manySequences()
  const byLoad = new Map<number, TenantShares[]>()
  for (const load of loads) {
    for (const seed of seeds) {
      progress(`${load} × load, seed ${seed}`)
      const one = await tenantShares({ load, seed, durationS, profile: PROFILE, tellsEveryToken })
      byLoad.set(load, [...(byLoad.get(load) ?? []), one])
    }
  }
  const full = Math.max(...loads)
  const tables = [small.table, many, shapes(full, byLoad.get(full) ?? []), estimates(byLoad)]
  return { tables, verdict: verdictOf(small.errors, byLoad) }
}

function smallSteps(): { readonly table: Table; readonly errors: readonly number[] } {
  const c = coefficientsOf(PROFILE)
  const draw = (chunksMax: number) => {
    const rng = Rng.stream(1, 'small steps')
    return Array.from({ length: STEPS }, () => drawStep(rng, 2 + Math.floor(rng.next() * 9), chunksMax))
  }
  const steps = draw(1)
  const errorsOf = (rule: (typeof RULES)[number]): number[] =>
    steps.flatMap((members) => errors(splitBy(rule, c, members), shapleyShares(c, members)))
  const closed = errorsOf('closed form')
  const two = draw(2).flatMap((members) => errors(splitBy('closed form', c, members), shapleyShares(c, members)))
  return {
    errors: closed,
    table: {
      title: `Error against exact Shapley values, ${STEPS} drawn steps of 2 to 10 sequences (half of them read a prompt), ${PROFILE}`,
      columns: ['rule', 'median %', 'p95 %'],
      rows: [
        ...RULES.map((rule) => {
          const all = rule === 'closed form' ? closed : errorsOf(rule)
          return [rule, 100 * quantile(all, 0.5), 100 * quantile(all, 0.95)]
        }),
        ['closed form, up to two prompts read', 100 * quantile(two, 0.5), 100 * quantile(two, 0.95)],
      ],
    },
  }
}

function manySequences(): Table {
  return {
    title: 'The closed form against exact Shapley values, larger steps (at most one prompt is read), mean error %',
    columns: ['GPU', ...MANY.map((count) => `${count} sequences`)],
    rows: GPUS.map((name) => {
      // The maximum of serial attention and floors is no sum, and has no value in closed form: kernels alone.
      const c = { ...coefficientsOf(name), contextUsPerToken: 0, decodeFloorUs: 0, prefillFloorUs: 0 }
      const rng = Rng.stream(2, name)
      return [
        name,
        ...MANY.map((count) => {
          const steps = Array.from({ length: 50 }, () => drawStep(rng, count, 1))
          const all = steps.flatMap((members) => errors(splitBy('closed form', c, members), shapleyOfMany(c, members)))
          return (100 * all.reduce((sum, error) => sum + error, 0)) / all.length
        }),
      ]
    }),
  }
}

function shapes(load: number, runs: readonly TenantShares[]): Table {
  const requests = runs.reduce((sum, one) => sum + one.requests, 0) / Math.max(1, runs.length)
  return {
    title: `Shares of one replica at ${load} × load, %: three tenants, ${Math.round(requests)} requests in the mean of ${runs.length} seeds`,
    columns: [
      '',
      ...Object.entries(TENANTS).map(
        ([id, { promptTokens, outputTokens }]) => `${id} (${promptTokens} → ${outputTokens})`,
      ),
    ],
    rows: (Object.keys(WAYS) as Way[]).map((way) => [
      WAYS[way],
      ...Object.keys(TENANTS).map((id) => 100 * mean(runs.map(({ shares }) => shares[way][id] as number))),
    ]),
  }
}

function estimates(byLoad: ReadonlyMap<number, readonly TenantShares[]>): Table {
  return {
    title: 'The gateway’s estimate (a hidden engine, its twin learned from nothing) less the engine’s own time, points',
    columns: ['load', 'seeds', ...Object.keys(TENANTS).map((id) => `${id}, mean`), 'worst of all'],
    rows: [...byLoad].map(([load, runs]) => [
      load,
      runs.length,
      ...Object.keys(TENANTS).map((id) => 100 * mean(runs.map((one) => offBy(one, id)))),
      worst(runs),
    ]),
  }
}

const offBy = ({ shares }: TenantShares, id: string): number =>
  (shares.estimate[id] as number) - (shares.engine[id] as number)

const worst = (runs: readonly TenantShares[]): number =>
  100 * Math.max(...runs.flatMap((one) => Object.keys(TENANTS).map((id) => Math.abs(offBy(one, id)))))

function verdictOf(small: readonly number[], byLoad: ReadonlyMap<number, readonly TenantShares[]>): string[] {
  const isNear = quantile(small, 0.5) <= 0.002 && quantile(small, 0.95) <= 0.02
  const far = [...byLoad].filter(([, runs]) => worst(runs) > POINTS_MAX)
  return [
    `Closed form within 0.2 % (median) and 2 % (p95) of exact Shapley values: ${isNear ? 'met' : 'missed'}.`,
    `Estimate within ${POINTS_MAX} points per tenant at every load and seed: ${far.length === 0 ? 'met' : `missed at ${far.map(([load, runs]) => `${load} × (${worst(runs).toFixed(1)})`).join(', ')}`}.`,
  ]
}

function coefficientsOf(name: string): RooflineCoefficients {
  const profile = findGpuProfile(name)
  if (profile === undefined) throw new Error(`there is no profile ${name}`)
  return servingCoefficients(profile) as RooflineCoefficients
}

const errors = (split: readonly number[], exact: readonly number[]): number[] =>
  exact.map((share, i) => Math.abs((split[i] as number) - share) / share)

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(q * (values.length - 1))] as number

await runExperiment({
  name: 'attribution',
  title: 'Whose is an engine’s time?',
  about:
    'Every step of an engine is split over its sequences in closed form. First against the Shapley value, which needs a timing of every subset, beside simpler rules. Then three tenants of different shapes on one replica that the gateway is told nothing about: shares by the engine’s own time, by token prices, and by the gateway’s estimate from what it saw. Good would be: 0.2 % and 2 % at the median and p95 of small steps, and an estimate within 2 points of every tenant.',
  seeds: 1,
  hasLoads: true,
  loads: '0.3,0.6,1',
  options: { seconds: { type: 'string' }, gathered: { type: 'boolean' } },
  run,
})
