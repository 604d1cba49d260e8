import { type Instant, msToUs, secondsToUs } from '../../base/clock.ts'
import { PEER_CONCURRENCY_MAX } from '../../config/defaults.ts'
import type { ConfigFile } from '../../config/fs-config-file.ts'
import { hashKey } from '../../config/key-hash.ts'
import { buildConfig } from '../../config/load.ts'
import type { Config } from '../../config/schema.ts'
import { toKeys, toTenants } from '../../config/to-domain.ts'
import type { Key, Tenant } from '../../domain/tenant.ts'
import type { Scenario, StreamSpec } from './scenario.ts'

/**
 * The scenario's platform as a configuration: groups become tenants, and every tenant gets a key, which the schema
 * requires and nothing uses.
 */
export interface ScenarioConfig {
  readonly config: Config
  /** The group of a tenant. */
  readonly groupOf: ReadonlyMap<string, string>
}

/**
 * Checked configurations: ten thousand tenants take a second to check, and the same scenario is asked for several
 * times.
 */
const known = new WeakMap<Scenario, ScenarioConfig>()

/** `file` is for error messages: with it an error names its line. */
export function configOf(scenario: Scenario, seed: number, file?: ConfigFile): ScenarioConfig {
  const made = known.get(scenario) ?? makeConfig(scenario, file)
  known.set(scenario, made)
  return { ...made, config: { ...made.config, seed } }
}

function makeConfig(scenario: Scenario, file: ConfigFile | undefined): ScenarioConfig {
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
  const tree = { ...scenario.platform, tenants: keyed }
  const lineOf: ConfigFile['lineOf'] = (problem) => file?.lineOf({ ...problem, path: ['platform', ...problem.path] })
  return { config: buildConfig({ path: file?.path ?? scenario.name, tree, lineOf }, {}), groupOf }
}

/** The configuration of each region's gateway; one with everything, where the scenario has no regions. */
export function gatewaysOf({ regions }: Scenario, config: Config): Array<{ region: string; config: Config }> {
  const names = [...new Set(config.pools.map(({ region }) => region))]
  if (regions === undefined) return [{ region: config.regions.local ?? names[0] ?? '', config }]
  const roundTrips = roundTripsOf(regions)
  return names.map((local) => {
    const others = names.filter((region) => region !== local)
    const peers = others.map((region) => ({
      region,
      url: `http://${region}.invalid/v1`,
      roundTripMs: roundTrips(local, region) / 1_000,
      concurrencyMax: PEER_CONCURRENCY_MAX,
    }))
    const pools = config.pools.filter(({ region }) => region === local)
    return { region: local, config: { ...config, pools, regions: { ...config.regions, local, peers } } }
  })
}

const ROUND_TRIP_MS = 100

export function roundTripsOf(regions: Scenario['regions']): (from: string, to: string) => number {
  return (from, to) => {
    if (from === to || regions === undefined) return 0
    const named = regions.roundTrips.find(({ between }) => between.includes(from) && between.includes(to))
    return msToUs(named?.ms ?? ROUND_TRIP_MS)
  }
}

/** The parts of the scenario. */
export function partsOf({ parts = {} }: Scenario): ReadonlyMap<string, { fromAt: Instant; toAt: Instant }> {
  return new Map(
    Object.entries(parts).map(([name, { fromS, toS }]) => [
      name,
      { fromAt: secondsToUs(fromS), toAt: secondsToUs(toS) },
    ]),
  )
}

/** Names and aliases of the models that clients can talk to. */
export const chatModelsOf = ({ models }: Config): ReadonlySet<string> =>
  new Set(models.filter(({ kind }) => kind === 'chat').flatMap(({ name, aliases }) => [name, ...aliases]))

export interface ScenarioCaller {
  readonly tenant: Tenant
  readonly key: Key
  readonly group: string | undefined
}

export function callersOf(config: Config, groupOf: ReadonlyMap<string, string>): ScenarioCaller[] {
  const tenants = new Map(toTenants(config).map((tenant) => [tenant.id, tenant]))
  return toKeys(config).map(({ key }) => ({
    tenant: tenants.get(key.tenantId)!,
    key,
    group: groupOf.get(key.tenantId),
  }))
}

/** One tenant's stream; a group's stream becomes one for each of its tenants. */
export interface TenantStream {
  readonly name: string
  readonly caller: ScenarioCaller
  readonly spec: StreamSpec
}

/**
 * The names are those of the simulator, so that the same seed sends the same requests at the same times, live and
 * simulated.
 */
export function streamsOf(scenario: Scenario, { config, groupOf }: ScenarioConfig): TenantStream[] {
  const callers = callersOf(config, groupOf)
  const counts = new Map<string, number>()
  return scenario.workload.flatMap((spec) =>
    callers
      .filter(({ tenant, group }) => tenant.id === spec.tenant || group === spec.tenant)
      .map((caller) => {
        const { id } = caller.tenant
        const count = (counts.get(id) ?? 0) + 1
        counts.set(id, count)
        return { name: count === 1 ? id : `${id}.${count}`, caller, spec }
      }),
  )
}
