import { secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { hashKey } from '../config/key-hash.ts'
import { buildConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { toKeys, toPools, toTenants } from '../config/to-domain.ts'
import type { Entry } from '../domain/entry.ts'
import { findGpuProfile } from '../engine/gpu-profiles.ts'
import { COST_DEFAULTS } from '../policy/planning/cost.ts'
import { Collector } from '../sim/collector.ts'
import { LawChecker } from '../sim/laws.ts'
import { makeReport, type Report } from '../sim/report.ts'
import { runScenario } from '../sim/run-scenario.ts'
import type { Scenario } from '../sim/scenario.ts'
import { ClientScripts } from '../sim/scripts.ts'
import { SimulatedFleet } from '../sim/world.ts'
import { assemble } from './assemble.ts'
import { engineOptionsOf } from './engine-options.ts'

/** One scenario, one seed, one report: the platform of the configuration in a simulated world. */
export interface SimulateOptions {
  readonly seed: number
  readonly onProgress?: (atS: number) => void
  /** Hears every journal entry, in order. */
  readonly onEntry?: (entry: Entry) => void
  /** Measures real time; only the report's `wall` depends on it. */
  readonly wallMs?: () => number
}

const WINDOW_S = 5

export async function simulate(scenario: Scenario, options: SimulateOptions): Promise<Report> {
  const { config, groupOf } = configOf(scenario, options.seed)
  const clock = new VirtualClock()
  const tenants = new Map(toTenants(config).map((tenant) => [tenant.id, tenant]))
  const collector = new Collector({
    tenants,
    startAt: 0,
    warmUntil: secondsToUs(scenario.warmupS ?? 0),
    windowUs: secondsToUs(scenario.windowS ?? WINDOW_S),
    outputWeight: COST_DEFAULTS.outputWeight,
  })
  const laws = new LawChecker()
  const journal = {
    record(entry: Entry): void {
      laws.take(entry)
      collector.take(entry)
      options.onEntry?.(entry)
    },
  }
  const scripts = new ClientScripts()
  const fleet = new SimulatedFleet(clock, replicasOf(config), scripts)
  const platform = assemble(config, { clock, journal, backends: fleet })
  const wallMs = options.wallMs ?? (() => 0)
  const startedMs = wallMs()
  const callers = toKeys(config).map(({ key }) => ({
    tenant: tenants.get(key.tenantId)!,
    key,
    group: groupOf.get(key.tenantId),
  }))
  const end = await runScenario({
    scenario,
    seed: options.seed,
    clock,
    platform,
    fleet,
    scripts,
    callers,
    collector,
    laws,
    onProgress: options.onProgress ?? (() => {}),
  })
  return makeReport(collector, {
    scenario: scenario.name,
    seed: options.seed,
    endAt: end.endAt,
    engine: end.engine,
    usdPerHour: usdPerHour(config),
    laws: laws.violations,
    wallSeconds: (wallMs() - startedMs) / 1_000,
  })
}

/** The scenario's platform as a configuration: groups become tenants, and everybody gets a key that nobody needs. */
function configOf(scenario: Scenario, seed: number): { config: Config; groupOf: ReadonlyMap<string, string> } {
  const groupOf = new Map<string, string>()
  const tenants: Array<Record<string, unknown>> = []
  for (const tenant of (scenario.platform as { tenants?: Array<Record<string, unknown>> }).tenants ?? [])
    tenants.push(tenant)
  for (const group of scenario.groups ?? []) {
    for (let i = 1; i <= group.count; i++) {
      const id = `${group.name}-${String(i).padStart(String(group.count).length, '0')}`
      groupOf.set(id, group.name)
      tenants.push({ ...group.like, id })
    }
  }
  const keyed = tenants.map((tenant) => ({
    ...tenant,
    keys: tenant['keys'] ?? [{ id: `${String(tenant['id'])}-key`, hash: hashKey(String(tenant['id'])) }],
  }))
  const tree = { ...scenario.platform, tenants: keyed, seed }
  return { config: buildConfig({ path: scenario.name, tree, lineOf: () => undefined } as never, {}), groupOf }
}

function replicasOf(config: Config) {
  return toPools(config).flatMap((setup) => {
    const profile = setup.backend.kind === 'simulated' ? setup.backend.profile : 'h100-llama-8b'
    const options = engineOptionsOf(config, profile)
    return setup.pool.replicas.map((replica) => ({ replica, options }))
  })
}

function usdPerHour(config: Config): number {
  return toPools(config).reduce((sum, { pool, backend }) => {
    const profile = backend.kind === 'simulated' ? findGpuProfile(backend.profile) : undefined
    return sum + (profile?.usdPerHour ?? 0) * pool.replicas.length
  }, 0)
}
