import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Value } from 'typebox/value'
import { ConfigError } from '../config/config-error.ts'
import { asNode, explain, type Problem } from '../config/explain.ts'
import { type ConfigFile, readConfigFile } from '../config/fs-config-file.ts'
import { nearest } from '../config/nearest.ts'
import { type Lengths, type Scenario, ScenarioSchema } from '../sim/scenario.ts'
import { configOf, type ScenarioConfig } from './scenario-config.ts'

/** A scenario by the name of a shipped one or by path, checked; every mistake is told with its line. */
export interface LoadedScenario {
  readonly scenario: Scenario
  readonly file: ConfigFile
}

const SHIPPED = join(import.meta.dirname, '..', '..', 'scenarios')

export function shippedScenarios(): string[] {
  return readdirSync(SHIPPED)
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => name.slice(0, -'.yaml'.length))
    .sort()
}

export function loadScenario(nameOrPath: string): LoadedScenario {
  const file = readConfigFile(pathOf(nameOrPath))
  return { scenario: checkScenario(file, file.tree), file }
}

export function checkScenario(file: ConfigFile, tree: unknown): Scenario {
  const lineFor = (problem: Problem): string => {
    const name = problem.path.join('.').replace(/\.(\d+)/g, '[$1]')
    const line = name === '' ? undefined : file.lineOf(problem)
    const stop = /[.?]$/.test(problem.text) ? '' : '.'
    return `${file.path}${line === undefined ? '' : `:${line}`}: ${name || 'the scenario'} ${problem.text}${stop}`
  }
  if (!Value.Check(ScenarioSchema, tree)) throw new ConfigError(explain(asNode(ScenarioSchema), tree).map(lineFor))
  const problems = crossCheck(tree, configOf(tree, 1, file))
  if (problems.length > 0) throw new ConfigError(problems.map(lineFor))
  return tree
}

/** What a schema cannot see: names that nobody has, quantiles that do not ascend. */
function crossCheck(scenario: Scenario, { config, groupOf }: ScenarioConfig): Problem[] {
  const tenants = [...new Set([...config.tenants.map(({ id }) => id), ...groupOf.values()])]
  const models = config.models.flatMap(({ name, aliases }) => [name, ...aliases])
  return scenario.workload.flatMap((spec, i) => [
    ...named(spec.tenant, tenants, ['workload', i, 'tenant'], 'tenant or group'),
    ...named(spec.model, models, ['workload', i, 'model'], 'model'),
    ...ascending(spec.prompt, ['workload', i, 'prompt']),
    ...ascending(spec.output, ['workload', i, 'output']),
  ])
}

function named(name: string, known: readonly string[], path: Problem['path'], what: string): Problem[] {
  if (known.includes(name)) return []
  const guess = nearest(name, [...known])
  const hint = guess === undefined ? `Known: ${known.slice(0, 10).join(', ')}` : `Did you mean "${guess}"?`
  return [{ path, text: `is "${name}", but no ${what} is called so. ${hint}` }]
}

function ascending(lengths: Lengths, path: Problem['path']): Problem[] {
  if (lengths.kind !== 'quantiles') return []
  const { points } = lengths
  const wrong = points.findIndex(
    ([quantile = 0, tokens = 0], i) =>
      quantile > 1 || (i > 0 && (quantile <= (points[i - 1]?.[0] ?? 0) || tokens < (points[i - 1]?.[1] ?? 0))),
  )
  const text = 'does not ascend. Give pairs of quantile (0 to 1) and tokens, sorted'
  return wrong < 0 ? [] : [{ path: [...path, 'points', wrong], text }]
}

function pathOf(nameOrPath: string): string {
  if (nameOrPath.endsWith('.yaml') || nameOrPath.endsWith('.yml')) return nameOrPath
  const path = join(SHIPPED, `${nameOrPath}.yaml`)
  if (existsSync(path)) return path
  const names = shippedScenarios()
  const meant = nearest(nameOrPath, names)
  const hint = meant === undefined ? `Known: ${names.join(', ')}` : `Did you mean ${meant}?`
  throw new ConfigError([`no scenario is called "${nameOrPath}". ${hint}, or give a path that ends in .yaml.`])
}
