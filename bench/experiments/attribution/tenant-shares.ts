import { spentUs } from '../../../src/domain/engine-time.ts'
import type { Call, Ending } from '../../../src/lifecycle/ports.ts'
import { checkScenario, loadScenario } from '../../../src/sim/scenario/fs-scenario.ts'
import { simulate } from '../../../src/sim/simulate.ts'

/** Shares of three tenants of different shapes on one replica, by the engine's own time and by what others can see. */
export interface TenantShares {
  readonly requests: number
  /** By way of counting, then by tenant: 0 … 1. */
  readonly shares: Readonly<Record<Way, Readonly<Record<string, number>>>>
}

export type Way = 'engine' | 'estimate' | 'flat' | 'weighted'

/** Prompt and output tokens, and requests a second of a replica that is full. */
export const TENANTS = {
  chat: { promptTokens: 1_000, outputTokens: 130, perS: 17 },
  code: { promptTokens: 5_000, outputTokens: 13, perS: 1.6 },
  writer: { promptTokens: 200, outputTokens: 800, perS: 8 },
} as const

const OUTPUT_PRICE = 4
/** Names the file in messages about the scenario; nothing else of it is used. */
const BASE = 'unknown-engine-calm'

export async function tenantShares(options: {
  readonly load: number
  readonly seed: number
  readonly durationS: number
  readonly profile: string
  readonly tellsEveryToken: boolean
}): Promise<TenantShares> {
  const { file } = loadScenario(BASE)
  const scenario = checkScenario(file, scenarioOf(options))
  const truth: Record<string, number> = {}
  const report = await simulate(scenario, {
    seed: options.seed,
    tellsEveryToken: options.tellsEveryToken,
    onAssembled: (_platform, fleet) => {
      for (const replica of fleet.all()) {
        const generate = replica.generate.bind(replica)
        // The platform is told nothing of it: it learns the engine, and estimates.
        replica.generate = async (call: Call): Promise<Ending> => {
          const ending = await generate(call)
          const { id } = call.request.tenant
          truth[id] = (truth[id] ?? 0) + (ending.engineTime === undefined ? 0 : spentUs(ending.engineTime))
          return ending
        }
      }
    },
  })
  if (report.laws.length > 0) throw new Error(`a law is broken: ${JSON.stringify(report.laws[0])}`)
  const ids = Object.keys(TENANTS)
  const of = (worthOf: (id: string) => number): Record<string, number> => {
    const sum = ids.reduce((total, id) => total + worthOf(id), 0)
    return Object.fromEntries(ids.map((id) => [id, worthOf(id) / sum]))
  }
  const tokensOf = (id: string) => report.tenants[id]?.tokens ?? { prompt: 0, output: 0 }
  return {
    requests: report.requests.completed,
    shares: {
      engine: of((id) => truth[id] ?? 0),
      estimate: of((id) => report.cost.statement.tenants[id]?.usedUsd ?? 0),
      flat: of((id) => tokensOf(id).prompt + tokensOf(id).output),
      weighted: of((id) => tokensOf(id).prompt + OUTPUT_PRICE * tokensOf(id).output),
    },
  }
}

function scenarioOf({ load, durationS, profile }: { load: number; durationS: number; profile: string }): object {
  const about = (tokens: number): object => ({
    kind: 'quantiles',
    points: [
      [0, Math.round(0.7 * tokens)],
      [0.5, tokens],
      [1, Math.round(1.3 * tokens)],
    ],
  })
  return {
    name: 'attribution',
    about: 'Three tenants of different shapes on one replica.',
    durationS,
    warmupS: 0,
    platform: {
      models: [{ name: 'large', contextTokensMax: 32_768 }],
      pools: [{ model: 'large', backend: { kind: 'simulated', profile, hidden: true }, replicas: 1 }],
      slos: [{ name: 'patient', ttftMs: 20_000, interTokenMs: 500, totalMs: 120_000 }],
      ladder: { enabled: false },
      tenants: Object.keys(TENANTS).map((id) => ({ id, slo: 'patient' })),
    },
    workload: Object.entries(TENANTS).map(([tenant, { promptTokens, outputTokens, perS }]) => ({
      tenant,
      model: 'large',
      arrivals: { kind: 'poisson', ratePerS: load * perS },
      prompt: about(promptTokens),
      output: about(outputTokens),
    })),
  }
}
