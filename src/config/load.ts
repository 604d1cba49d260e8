import { Value } from 'typebox/value'
import { headerValueProblem } from './check-address.ts'
import { leaderLines, sharedLimitLines } from './check-sharing.ts'
import { ConfigError } from './config-error.ts'
import { crossCheck } from './cross-check.ts'
import { defaultSlos, demoAdmin, demoModels, demoPools, demoTenants, isLoopback } from './demo.ts'
import { asNode, explain, type Problem, type SchemaNode, show } from './explain.ts'
import { type ConfigFile, readConfigFile } from './fs-config-file.ts'
import { readEnvFile } from './fs-env-file.ts'
import { withHoldoutItems } from './fs-holdout-file.ts'
import { editDistance, nearest } from './nearest.ts'
import { type Moved, moveRenamed, moveRenamedEnv, OLD_ENV_NAMES } from './renamed.ts'
import { type Config, ConfigSchema, type Settings } from './schema.ts'
import { setIn, settings } from './settings.ts'
import { sharedUrlLines } from './shared-urls.ts'

/**
 * Loads the settings. This is the only place that reads the environment. A flag wins over the environment, the
 * environment over the file, the file over the defaults. The result is complete, checked and frozen. All errors are
 * reported at once, one line each: what, where, and what to do.
 */
export interface LoadOptions {
  /** Path given with --config; SPILLWAY_CONFIG if absent. */
  readonly path?: string | undefined
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Settings given as flags, by path: `{ 'server.port': '9000' }`. */
  readonly flags?: Readonly<Record<string, string | undefined>>
}

export function loadConfig({ path, env = environment(), flags = {} }: LoadOptions = {}): Config {
  const filePath = path ?? (env['SPILLWAY_CONFIG'] || undefined)
  const file = filePath === undefined ? undefined : readConfigFile(filePath)
  return buildConfig(file, env, flags)
}

const environment = () => ({ ...readEnvFile(), ...process.env })

export function buildConfig(
  file: ConfigFile | undefined,
  env: Readonly<Record<string, string | undefined>>,
  flags: Readonly<Record<string, string | undefined>> = {},
): Config {
  const tree = withoutEmptySections(file?.tree ?? {})
  const origins = new Map<string, string>()
  const moved = moveRenamed(tree)
  const movedEnv = moveRenamedEnv(env)
  const warnings = [...renamedLines(moved, file, origins), ...movedEnv.warnings]
  layEnvironment(tree, movedEnv.env, origins)
  layFlags(tree, flags, origins)
  layDemo(tree, file !== undefined)
  const filled: unknown = Value.Default(ConfigSchema, tree)

  const problems = [...misspeltNames(env), ...movedEnv.problems]
  const tell = (found: readonly Problem[]) => problems.push(...found.map((problem) => lineFor(problem, file, origins)))
  tell(moved.problems)
  if (Value.Check(ConfigSchema, filled)) {
    const checked: Settings = filled
    tell(crossCheck(checked))
    const resolved = withUpstreamKeys(checked, env)
    tell(resolved.problems)
    const held = withHoldoutItems(resolved.settings, file?.path)
    tell(held.problems)
    warnings.push(...sharedUrlLines(checked), ...sharedLimitLines(checked), ...leaderLines(checked))
    if (problems.length === 0) return deepFreeze({ ...held.settings, file: file?.path, warnings })
  } else {
    const found = explain(asNode(ConfigSchema), filled)
    tell(found.length > 0 ? found : [{ path: [], text: 'is not valid. Compare it with docs/operations/settings.md' }])
  }
  throw new ConfigError(problems)
}

/** What is said of settings under old names; and complaints about them name the place where they stand. */
function renamedLines({ oldNames }: Moved, file: ConfigFile | undefined, origins: Map<string, string>): string[] {
  return [...oldNames].map(([name, from]) => {
    const place = lineFor({ path: from, text: '', isAboutKey: true }, file, new Map()).replace(/ \.$/, '')
    origins.set(name, place)
    return `${place} is called ${name} now.`
  })
}

/** Published keys open loopback only: the server refuses any other address with them. */
export function demoBindProblem(config: Config): string | undefined {
  if (config.file !== undefined || isLoopback(config.server.host)) return undefined
  return (
    `will not listen on ${config.server.host} with the demo keys, which everybody knows. ` +
    'Write a configuration file with tenants of your own ("spillway keys create") and give it with --config, ' +
    'or leave HOST at 127.0.0.1'
  )
}

/** An empty section (`server:` with everything commented out) counts as absent. */
function withoutEmptySections(tree: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return structuredClone(Object.fromEntries(Object.entries(tree).filter(([, value]) => value !== null)))
}

function layEnvironment(tree: Record<string, unknown>, env: LoadOptions['env'], origins: Map<string, string>): void {
  for (const setting of settings) {
    const text = setting.env === undefined ? undefined : env?.[setting.env]
    // An empty variable counts as unset: `PORT= npm start` and compose files mean that.
    if (text === undefined || text === '' || setting.env === undefined) continue
    setIn(tree, setting.path, parseText(text, typeOf(setting.node)))
    origins.set(setting.path.join('.'), setting.env)
  }
}

function layFlags(tree: Record<string, unknown>, flags: LoadOptions['flags'], origins: Map<string, string>): void {
  for (const [path, text] of Object.entries(flags ?? {})) {
    if (text === undefined) continue
    const setting = settings.find((candidate) => candidate.path.join('.') === path)
    setIn(tree, path.split('.'), parseText(text, setting && typeOf(setting.node)))
    origins.set(path, `--${path.split('.').at(-1)?.replace('listen', '').toLowerCase()}`)
  }
}

/** A setting that is a number or a word is read as a number where it is one. */
const typeOf = ({ type, anyOf }: SchemaNode): string | undefined =>
  type ?? anyOf?.find((branch) => branch.type === 'integer')?.type

function parseText(text: string, type: string | undefined): unknown {
  const isNumber = type === 'integer' || type === 'number'
  // A value that is no number stays text, so that the error can show it.
  return isNumber && text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
}

function layDemo(tree: Record<string, unknown>, hasFile: boolean): void {
  tree['slos'] ??= defaultSlos()
  if (tree['models'] === undefined && tree['pools'] === undefined) {
    tree['models'] = demoModels()
    tree['pools'] = demoPools()
  }
  if (hasFile) return
  tree['tenants'] ??= demoTenants()
  tree['admin'] ??= demoAdmin()
}

/** Problems with the keys of pools added after the start: their keys come from the environment too. */
export function upstreamKeyProblems<S extends Settings>(settings: S): { settings: S; problems: Problem[] } {
  const resolved = withUpstreamKeys(settings, environment())
  return { settings: { ...settings, pools: resolved.settings.pools }, problems: resolved.problems }
}

/** The admin key of the environment, for commands without --key. */
export const adminKeyOfEnvironment = (): string | undefined => environment()['SPILLWAY_ADMIN_KEY'] || undefined

/** A tenant's key of the environment, for commands that tenants use too. */
export const tenantKeyOfEnvironment = (): string | undefined => environment()['SPILLWAY_KEY'] || undefined

function withUpstreamKeys(
  settings: Settings,
  env: Readonly<Record<string, string | undefined>>,
): { settings: Settings; problems: Problem[] } {
  const problems: Problem[] = []
  const pools = settings.pools.map((pool, i) => {
    const { backend } = pool
    if (backend.kind === 'simulated' || backend.apiKeyEnv === undefined) return pool
    const { apiKey, problem } = keyOf(backend.apiKeyEnv, env)
    if (apiKey !== undefined) return { ...pool, backend: { ...backend, apiKey } }
    problems.push({ path: ['pools', i, 'backend', 'apiKeyEnv'], text: problem })
    return pool
  })
  const peers = settings.regions.peers.map((peer, i) => {
    if (peer.apiKeyEnv === undefined) return peer
    const { apiKey, problem } = keyOf(peer.apiKeyEnv, env)
    if (apiKey !== undefined) return { ...peer, apiKey }
    problems.push({ path: ['regions', 'peers', i, 'apiKeyEnv'], text: problem })
    return peer
  })
  return { settings: { ...settings, pools, regions: { ...settings.regions, peers } }, problems }
}

type FoundKey =
  | { readonly apiKey: string; readonly problem?: undefined }
  | { readonly apiKey: undefined; readonly problem: string }

/** A key from the environment. A key with a line break, which many files of secrets end with, would break its header. */
function keyOf(name: string, env: Readonly<Record<string, string | undefined>>): FoundKey {
  const apiKey = env[name]
  const called = `is ${show(name)}`
  if (!apiKey)
    return { apiKey: undefined, problem: `${called}, but no such variable is set. Set it, or remove this line` }
  const wrong = headerValueProblem(apiKey)
  return wrong === undefined ? { apiKey } : { apiKey: undefined, problem: `${called}, whose value ${wrong}` }
}

/**
 * A variable whose name is nearly one of ours is a typing mistake. Other names are ignored: Kubernetes sets SPILLWAY_…
 * variables of its own beside a service called `spillway`.
 */
function misspeltNames(env: Readonly<Record<string, string | undefined>>): string[] {
  const known = [
    ...settings.flatMap((setting) => setting.env ?? []),
    'SPILLWAY_CONFIG',
    'SPILLWAY_ADMIN_KEY',
    'SPILLWAY_KEY',
    ...OLD_ENV_NAMES,
  ]
  return Object.keys(env)
    .filter((name) => name.startsWith('SPILLWAY_') && !known.includes(name))
    .flatMap((name) => {
      const guess = nearest(name, known)
      return guess !== undefined && editDistance(name, guess) <= 2
        ? [`${name} (environment) is not a setting. Did you mean ${guess}?`]
        : []
    })
}

function lineFor(problem: Problem, file: ConfigFile | undefined, origins: ReadonlyMap<string, string>): string {
  const name = problem.path.join('.').replace(/\.(\d+)/g, '[$1]')
  const origin = origins.get(problem.path.join('.'))
  const stop = /[.?]$/.test(problem.text) ? '' : '.'
  if (origin !== undefined) return `${origin} (${name}) ${problem.text}${stop}`
  if (file === undefined) return `${name || 'the configuration'} ${problem.text}${stop}`
  const line = name === '' ? undefined : file.lineOf(problem)
  return `${file.path}${line === undefined ? '' : `:${line}`}: ${name || 'the file'} ${problem.text}${stop}`
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const child of Object.values(value)) deepFreeze(child)
  }
  return value
}
