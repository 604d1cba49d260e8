import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Value } from 'typebox/value'
import { ConfigError } from '../config/config-error.ts'
import { asNode, explain, type Problem } from '../config/explain.ts'
import { parseConfigFile } from '../config/fs-config-file.ts'
import { buildConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { toKeys, toTenants } from '../config/to-domain.ts'
import type { Key, Tenant } from '../domain/tenant.ts'
import { type Scenario, ScenarioSchema, type StreamSpec } from '../sim/scenario.ts'

/**
 * A scenario file, read, checked and put together with its platform: every mistake is one line that says where it
 * stands and what to do. A shipped scenario may be named without its folder: `viral-spike-20x`.
 */
export interface LoadedScenario {
  readonly scenario: Scenario
  readonly config: Config
  readonly streams: readonly StreamOf[]
}

/** One tenant's stream: a group's stream is one of these for each of its tenants. */
export interface StreamOf {
  readonly name: string
  readonly caller: { readonly tenant: Tenant; readonly key: Key }
  readonly spec: StreamSpec
}

const SHIPPED = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'scenarios')

export function loadScenario(nameOrPath: string): LoadedScenario {
  const path = scenarioPath(nameOrPath)
  return parseScenario(path, readFileSync(path, 'utf8'))
}

export function parseScenario(path: string, text: string): LoadedScenario {
  const file = parseConfigFile(path, text)
  const { tree } = file
  const lineFor = (problem: Problem): string => {
    const name = problem.path.join('.').replace(/\.(\d+)/g, '[$1]')
    const line = name === '' ? undefined : file.lineOf(problem)
    const stop = /[.?]$/.test(problem.text) ? '' : '.'
    return `${path}${line === undefined ? '' : `:${line}`}: ${name || 'the scenario'} ${problem.text}${stop}`
  }
  if (!Value.Check(ScenarioSchema, tree)) {
    const found = explain(asNode(ScenarioSchema), tree)
    const problems = found.length > 0 ? found : [{ path: [], text: 'is not valid. See docs/operations' }]
    throw new ConfigError(problems.map(lineFor))
  }
  const scenario: Scenario = tree
  const config = buildConfig(
    {
      path,
      tree: withGroups(scenario),
      lineOf: (problem) => file.lineOf({ ...problem, path: ['platform', ...problem.path] }),
    },
    {},
  )
  const problems = crossCheck(scenario, config)
  if (problems.length > 0) throw new ConfigError(problems.map(lineFor))
  return { scenario, config, streams: streamsOf(scenario, config) }
}

function scenarioPath(nameOrPath: string): string {
  const shipped = join(SHIPPED, `${nameOrPath}.yaml`)
  const path = [nameOrPath, shipped].find((candidate) => existsSync(candidate))
  if (path !== undefined) return path
  throw new ConfigError([`${nameOrPath}: there is no such scenario. Give a file, or one of the folder scenarios/.`])
}

/** Tenants of a group are named after it: `small-0`, `small-1` … */
export function groupTenantIds(group: { readonly name: string; readonly count: number }): string[] {
  return Array.from({ length: group.count }, (_, i) => `${group.name}-${i}`)
}

function withGroups(scenario: Scenario): Record<string, unknown> {
  const platform = structuredClone(scenario.platform) as Record<string, unknown>
  const own = Array.isArray(platform['tenants']) ? (platform['tenants'] as unknown[]) : []
  const grouped = (scenario.groups ?? []).flatMap((group) =>
    groupTenantIds(group).map((id) => ({ ...structuredClone(group.like), id })),
  )
  if (own.length + grouped.length > 0) platform['tenants'] = [...own, ...grouped]
  return platform
}

function crossCheck(scenario: Scenario, config: Config): Problem[] {
  const tenants = new Set([...config.tenants.map(({ id }) => id), ...(scenario.groups ?? []).map(({ name }) => name)])
  const models = new Set(config.models.flatMap(({ name, aliases }) => [name, ...aliases]))
  const problems: Problem[] = []
  scenario.workload.forEach((spec, i) => {
    if (!tenants.has(spec.tenant)) {
      problems.push({
        path: ['workload', i, 'tenant'],
        text: `is "${spec.tenant}", which no tenant or group is called`,
      })
    }
    if (!models.has(spec.model)) {
      problems.push({ path: ['workload', i, 'model'], text: `is "${spec.model}", which no model is called` })
    }
    if (spec.prompt.kind === 'quantiles') problems.push(...ascending(spec.prompt.points, ['workload', i, 'prompt']))
    if (spec.output.kind === 'quantiles') problems.push(...ascending(spec.output.points, ['workload', i, 'output']))
  })
  return problems
}

function ascending(points: ReadonlyArray<readonly [number, number]>, path: Problem['path']): Problem[] {
  const wrong = points.findIndex(([q, tokens], i) => i > 0 && (q <= points[i - 1]![0] || tokens < points[i - 1]![1]))
  return wrong < 0 ? [] : [{ path: [...path, 'points', wrong], text: 'does not ascend. Sort the points by quantile' }]
}

function streamsOf(scenario: Scenario, config: Config): StreamOf[] {
  const tenants = new Map(toTenants(config).map((tenant) => [tenant.id, tenant]))
  const keys = new Map(toKeys(config).map(({ key }) => [key.tenantId, key]))
  const groups = new Map((scenario.groups ?? []).map((group) => [group.name, groupTenantIds(group)]))
  return scenario.workload.flatMap((spec, i) =>
    (groups.get(spec.tenant) ?? [spec.tenant]).map((id) => ({
      name: `${id}/${i}`,
      caller: {
        tenant: tenants.get(id)!,
        key: keys.get(id) ?? { id: `${id}-key`, tenantId: id, weight: 1, allowance: {} },
      },
      spec,
    })),
  )
}
