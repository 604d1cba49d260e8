import { fillDefaults, isValid } from '../base/check-schema.ts'
import type { SchemaNode } from '../base/schema.ts'
import { headerValueProblem } from './check-address.ts'
import { leaderLines, sharedLimitLines } from './check-sharing.ts'
import { ConfigError } from './config-error.ts'
import { crossCheck } from './cross-check.ts'
import { defaultSlos, demoAdmin, demoModels, demoPools, demoTenants, isLoopback } from './demo.ts'
import { asNode, explain, type Path, type Problem, show } from './explain.ts'
import { type ConfigFile, readConfigFile } from './fs-config-file.ts'
import { readEnvFile } from './fs-env-file.ts'
import { withHoldoutItems } from './fs-holdout-file.ts'
import { FILE_VARIABLES, fileVariable, laySecretFiles, variableOf, withVariableFiles } from './fs-secret-files.ts'
import { editDistance, nearest } from './nearest.ts'
import { type Moved, moveRenamed, moveRenamedEnv, OLD_ENV_NAMES } from './renamed.ts'
import { type Config, ConfigSchema, type SecretFile, type Settings } from './schema.ts'
import { setIn, settings } from './settings.ts'

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
  const laid = laySecretFiles(tree, file?.path)
  const movedEnv = moveRenamedEnv(env)
  const warnings = [...renamedLines(moved, file, origins), ...movedEnv.warnings]
  const variables = withVariableFiles(movedEnv.env)
  layEnvironment(tree, variables.env, origins)
  layFlags(tree, flags, origins)
  layDemo(tree, file !== undefined)
  const filled: unknown = fillDefaults(ConfigSchema, tree)

  const problems = [...misspeltNames(env), ...movedEnv.problems, ...variables.problems]
  const tell = (found: readonly Problem[]) => problems.push(...found.map((problem) => lineFor(problem, file, origins)))
  tell([...moved.problems, ...laid.problems])
  if (isValid(ConfigSchema, filled)) {
    const checked: Settings = filled
    tell(crossCheck(checked))
    const resolved = withUpstreamKeys(checked, env)
    tell(resolved.problems)
    const held = withHoldoutItems(resolved.settings, file?.path)
    tell(held.problems)
    warnings.push(...sharedLimitLines(checked), ...leaderLines(checked))
    const secretFiles = [...laid.files, ...variables.files, ...resolved.files]
    if (problems.length === 0) return deepFreeze({ ...held.settings, file: file?.path, warnings, secretFiles })
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
export const adminKeyOfEnvironment = (): string | undefined => keyOfEnvironment('SPILLWAY_ADMIN_KEY')

/** A tenant's key of the environment, for commands that tenants use too. */
export const tenantKeyOfEnvironment = (): string | undefined => keyOfEnvironment('SPILLWAY_KEY')

/** What the SDKs of AWS read, for commands that ask AWS. */
export const awsOfEnvironment = () => ({
  accessKeyId: keyOfEnvironment('AWS_ACCESS_KEY_ID'),
  secretKey: keyOfEnvironment('AWS_SECRET_ACCESS_KEY'),
  sessionToken: keyOfEnvironment('AWS_SESSION_TOKEN'),
  region: keyOfEnvironment('AWS_REGION') ?? keyOfEnvironment('AWS_DEFAULT_REGION'),
})

function keyOfEnvironment(name: string): string | undefined {
  const { value, problem } = variableOf(name, environment())
  if (problem !== undefined) throw new ConfigError([`${problem}.`])
  return value
}

interface WithUpstreamKeys {
  readonly settings: Settings
  readonly problems: Problem[]
  readonly files: SecretFile[]
}

function withUpstreamKeys(settings: Settings, env: Readonly<Record<string, string | undefined>>): WithUpstreamKeys {
  const problems: Problem[] = []
  const files: SecretFile[] = []
  const withKey = <T extends { readonly apiKeyEnv?: string }>(at: T, path: Path): T => {
    if (at.apiKeyEnv === undefined) return at
    const { apiKey, problem, file } = keyOf(at.apiKeyEnv, env)
    if (file !== undefined) files.push({ ...file, name: [...path, 'apiKey'].join('.') })
    if (problem !== undefined) problems.push({ path: [...path, 'apiKeyEnv'], text: problem })
    return apiKey === undefined ? at : { ...at, apiKey }
  }
  const pools = settings.pools.map((pool, i) =>
    pool.backend.kind === 'simulated'
      ? pool
      : { ...pool, backend: withKey(pool.backend, ['pools', i, 'backend']) as typeof pool.backend },
  )
  const peers = settings.regions.peers.map((peer, i) => withKey(peer, ['regions', 'peers', i]))
  const sinks = settings.audit.sinks.map((sink, i) => withKey(sink, ['audit', 'sinks', i]))
  const { bucket } = settings.jobs
  const [regions, audit, jobs] = [
    { ...settings.regions, peers },
    { ...settings.audit, sinks },
    { ...settings.jobs, ...(bucket !== undefined && { bucket: withKey(bucket, ['jobs', 'bucket']) }) },
  ]
  return { settings: { ...settings, pools, regions, audit, jobs }, problems, files }
}

interface FoundKey {
  readonly apiKey?: string
  readonly problem?: string
  readonly file?: SecretFile
}

/** A key from the environment, or from a file that it names. A key with a line break in it would break its header. */
function keyOf(name: string, env: Readonly<Record<string, string | undefined>>): FoundKey {
  const { value: apiKey, file, problem } = variableOf(name, env)
  const called = `is ${show(name)}`
  if (problem !== undefined) return { problem: `${called}: ${problem}` }
  if (apiKey === undefined) return { problem: `${called}, but no such variable is set. Set it, or remove this line` }
  const wrong = headerValueProblem(apiKey)
  return wrong === undefined ? { apiKey, ...(file && { file }) } : { problem: `${called}, whose value ${wrong}` }
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
    ...[...FILE_VARIABLES, 'SPILLWAY_ADMIN_KEY', 'SPILLWAY_KEY'].map(fileVariable),
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
