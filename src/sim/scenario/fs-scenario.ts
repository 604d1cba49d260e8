import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { loadProfile } from '../../assembly/fs-profiles.ts'
import { isValid } from '../../base/check-schema.ts'
import { ConfigError } from '../../config/config-error.ts'
import { asNode, explain, type Problem } from '../../config/explain.ts'
import { type ConfigFile, readConfigFile } from '../../config/fs-config-file.ts'
import { nearest } from '../../config/nearest.ts'
import { addGpuProfile } from '../../engine/gpu-profiles.ts'
import { type Scenario, ScenarioSchema } from './scenario.ts'
import { crossCheckScenario } from './scenario-checks.ts'
import { configOf } from './scenario-config.ts'

/** Loads and checks a scenario by the name of a shipped one or by path; every error names its line. */
export interface LoadedScenario {
  readonly scenario: Scenario
  readonly file: ConfigFile
}

const SHIPPED = join(import.meta.dirname, '..', '..', '..', 'scenarios')

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
  if (!isValid(ScenarioSchema, tree)) throw new ConfigError(explain(asNode(ScenarioSchema), tree).map(lineFor))
  addProfileFiles(tree)
  const problems = crossCheckScenario(tree, configOf(tree, 1, file))
  if (problems.length > 0) throw new ConfigError(problems.map(lineFor))
  return tree
}

/** A pool of a scenario may name a file where it names a profile: what `engine fit` wrote, or what was learned. */
function addProfileFiles({ platform }: Scenario): void {
  const pools = (platform as { pools?: unknown }).pools
  for (const pool of Array.isArray(pools) ? (pools as unknown[]) : []) {
    const backend = (pool as { backend?: { profile?: unknown; profiles?: unknown } } | null)?.backend
    const listed = Array.isArray(backend?.profiles) ? (backend.profiles as unknown[]) : []
    for (const name of [backend?.profile, ...listed]) {
      if (typeof name !== 'string' || !name.includes('.json')) continue
      const [path = ''] = name.split('+')
      addGpuProfile(path, loadProfile(path))
    }
  }
}

function pathOf(nameOrPath: string): string {
  if (nameOrPath.endsWith('.yaml') || nameOrPath.endsWith('.yml')) {
    if (existsSync(nameOrPath)) return nameOrPath
    throw new ConfigError([
      `${nameOrPath}: there is no such file. Give the path of a scenario, or a shipped one's name.`,
    ])
  }
  const path = join(SHIPPED, `${nameOrPath}.yaml`)
  if (existsSync(path)) return path
  const names = shippedScenarios()
  const meant = nearest(nameOrPath, names)
  const hint = meant === undefined ? `Known: ${names.join(', ')}.` : `Did you mean ${meant}?`
  throw new ConfigError([`no scenario is called "${nameOrPath}". ${hint} Or give a path that ends in .yaml.`])
}
