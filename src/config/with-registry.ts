import type { Static } from 'typebox'
import { fillDefaults, isValid } from '../base/check-schema.ts'
import { Type } from '../base/schema.ts'
import type { RegistryBody, RegistryEntry, RegistryKind } from '../domain/registry.ts'
import { checkEntered } from './check-upstreams.ts'
import { crossCheck, poolIdOf, versionsOf } from './cross-check.ts'
import { asNode, explain, type Problem } from './explain.ts'
import type { Config, ModelConfig, PoolConfig } from './schema.ts'
import { httpUrl, item, name } from './schema-fields.ts'
import { ModelSchema, PoolSchema } from './schema-fleet.ts'
import { ReleaseSchema } from './schema-rollout.ts'

/**
 * The configuration file and the registry together. The file wins; the registry adds models, pools, releases of any
 * model, and replicas of the file's pools. Both have the same format and are checked by the same rules, so that an entry
 * of the registry could be pasted into the file.
 */
const { releases: _releases, rollout: _rollout, ...modelProperties } = ModelSchema.properties
const RegistryModelSchema = item(
  {
    ...modelProperties,
    stable: Type.Optional(name('The version that everybody gets who is told nothing else; the lowest if absent.')),
  },
  'A model that clients can ask for.',
)
const RegistryReleaseSchema = item(
  { model: name('The model that it is a version of.'), ...ReleaseSchema.properties },
  'One version of a model.',
)

const RegistryReplicaSchema = item(
  { pool: name('The pool of the configuration file that it joins.'), url: httpUrl('Address of the replica.') },
  'One replica more in a pool of the configuration file.',
)

/** An actuator runs commands and calls addresses: only the file may name one. */
const { autoscale: _autoscale, ...poolProperties } = PoolSchema.properties
const RegistryPoolSchema = item(poolProperties, 'Replicas of one release in one region.')

export const REGISTRY_SCHEMAS = {
  model: RegistryModelSchema,
  release: RegistryReleaseSchema,
  pool: RegistryPoolSchema,
  replica: RegistryReplicaSchema,
}

type CheckedKind = keyof typeof REGISTRY_SCHEMAS

type ModelBody = ModelConfig & { readonly stable?: string }

type ReleaseBody = Static<typeof RegistryReleaseSchema>

type ReplicaBody = Static<typeof RegistryReplicaSchema>

/** A problem and its place, in the words of the API. */
export interface EntryProblem {
  readonly kind: RegistryKind
  readonly name: string
  /** `backend.kind`; empty for the whole entry. */
  readonly param: string
  readonly text: string
}

/** The problem of one entry by itself. */
export function checkEntry({ kind, name, body }: RegistryEntry): EntryProblem[] {
  if (kind === 'rollout' || kind === 'drain' || kind === 'pause' || kind === 'mode') return []
  const schema = REGISTRY_SCHEMAS[kind]
  const filled = filledIn(kind, body)
  const problems = isValid(schema, filled) ? [] : explain(asNode(schema), filled)
  if (!isValid(schema, filled) && problems.length === 0) problems.push({ path: [], text: 'is not valid' })
  if (kind === 'pool' && hasPlainKey(body)) {
    const text = 'would be kept in the registry. Put the key into the environment and name it with apiKeyEnv'
    problems.push({ path: ['backend', 'apiKey'], text })
  }
  return problems.map((problem) => toEntryProblem(kind, name, problem))
}

/** What an administrator may not enter: this is asked of what is entered, not of what is in the registry already. */
export function checkEdit(config: Config, entry: RegistryEntry): EntryProblem[] {
  const own = checkEntry(entry)
  if (own.length > 0) return own
  return checkEntered(entry, config).map((problem) => toEntryProblem(entry.kind, entry.name, problem))
}

const hasPlainKey = (body: RegistryBody): boolean =>
  (body['backend'] as { readonly apiKey?: unknown } | undefined)?.apiKey !== undefined

function toEntryProblem(kind: RegistryKind, name: string, { path, text }: Problem): EntryProblem {
  return { kind, name, param: path.join('.').replace(/\.(\d+)/g, '[$1]'), text }
}

/** Entries that this version cannot read are left out: one such entry must not keep the others from being served. */
export function withRegistry(config: Config, entries: readonly RegistryEntry[]): Config {
  const good = entries.filter((entry) => checkEntry(entry).length === 0)
  const bodies = <T>(kind: CheckedKind): T[] =>
    good.filter((entry) => entry.kind === kind).map(({ body }) => filledIn(kind, body) as T)
  const releases = bodies<ReleaseBody>('release')
  const inFile = new Set(config.models.flatMap((model) => [model.name, ...model.aliases]))
  const added = bodies<ModelBody>('model').filter((model) => !inFile.has(model.name))
  const models = [
    ...config.models.map((model) => withReleases(model, releases, true)),
    ...added.map(({ stable, ...model }) => withReleases(model, releases, false, stable)),
  ]
  const poolIds = new Set(config.pools.map(poolIdOf))
  const replicas = bodies<ReplicaBody>('replica')
  const pools = [
    ...config.pools.map((pool) => withReplicas(pool, replicas)),
    ...bodies<PoolConfig>('pool')
      .map((pool) => ({ ...pool, id: poolIdOf(pool) }))
      .filter((pool) => !poolIds.has(pool.id)),
  ]
  const mode = modeIn(entries)
  const admission = mode === undefined ? config.admission : { ...config.admission, mode }
  return { ...config, models, pools, admission }
}

/** Name of the one entry of the kind `mode`. */
export const MODE_ENTRY = 'admission'

/** The mode that administrators chose at run time; undefined: the file's. */
function modeIn(entries: readonly RegistryEntry[]): Config['admission']['mode'] | undefined {
  const mode = entries.find(({ kind, name }) => kind === 'mode' && name === MODE_ENTRY)?.body['mode']
  return mode === 'observe' || mode === 'enforce' ? mode : undefined
}

/** The file's addresses first, then those that it does not list itself. */
function withReplicas(pool: PoolConfig, replicas: readonly ReplicaBody[]): PoolConfig {
  const { backend } = pool
  if (backend.kind === 'simulated') return pool
  const known = typeof pool.replicas !== 'number' ? pool.replicas : backend.url === undefined ? [] : [backend.url]
  const id = poolIdOf(pool)
  const added = replicas.filter(({ pool: of, url }) => of === id && !known.includes(url)).map(({ url }) => url)
  if (added.length === 0) return pool
  const { url: _url, ...rest } = backend
  return { ...pool, backend: rest, replicas: [...known, ...new Set(added)] }
}

/** The file's releases come first, or the stable one: the first release serves every request without a rollout. */
function withReleases(
  model: ModelConfig,
  releases: readonly ReleaseBody[],
  isInFile: boolean,
  stable?: string,
): ModelConfig {
  const own = isInFile ? versionsOf(model) : []
  const added = releases
    .filter((release) => release.model === model.name && !own.includes(release.version))
    .map(({ model: _model, ...release }) => release)
    .sort((a, b) => Number(b.version === stable) - Number(a.version === stable) || inVersionOrder(a.version, b.version))
  if (added.length === 0) return model
  const before = isInFile ? (model.releases ?? own.map((version) => ({ version }))) : []
  return { ...model, releases: [...before, ...added] }
}

/** Sorts `2` before `10`. */
const inVersionOrder = new Intl.Collator('en', { numeric: true }).compare

/** The problem of all entries together. A model without a pool is allowed, because its pool comes next. */
export function checkTogether(config: Config, entries: readonly RegistryEntry[]): EntryProblem[] {
  const together = withRegistry(config, entries)
  const unstable = entries.flatMap((entry) => [...checkStable(entry, together), ...checkReplica(entry, config)])
  const problems = crossCheck(
    { ...together, pools: together.pools.map(withoutResolvedKey) },
    { isServedLater: true },
  ).map((problem): EntryProblem => {
    const [list, index, ...rest] = problem.path
    const model = list === 'models' ? together.models[Number(index)] : undefined
    const pool = list === 'pools' ? together.pools[Number(index)] : undefined
    const release = rest[0] === 'releases' ? model?.releases?.[Number(rest[1])] : undefined
    if (model !== undefined && release !== undefined) {
      return toEntryProblem('release', `${model.name}@${release.version}`, { ...problem, path: rest.slice(2) })
    }
    if (model !== undefined) return toEntryProblem('model', model.name, { ...problem, path: rest })
    const id = pool === undefined ? String(list) : poolIdOf(pool)
    return toEntryProblem('pool', id, { ...problem, path: rest })
  })
  return [...unstable, ...problems]
}

/** A replica of the registry joins a pool of the file whose engines have addresses. */
function checkReplica({ kind, name, body }: RegistryEntry, { pools }: Config): EntryProblem[] {
  if (kind !== 'replica') return []
  const id = String(body['pool'])
  const pool = pools.find((known) => poolIdOf(known) === id)
  if (pool?.backend.kind !== undefined && pool.backend.kind !== 'simulated') return []
  const text =
    pool === undefined
      ? `is "${id}", but the configuration file has no such pool. Remove the replica, or keep the pool`
      : `is "${id}", whose engines are simulated and have no addresses. Change its replicas in the configuration file`
  return [{ kind, name, param: 'pool', text }]
}

function checkStable({ kind, name, body }: RegistryEntry, { models }: Config): EntryProblem[] {
  const stable = body['stable']
  const model = models.find((known) => known.name === name)
  if (kind !== 'model' || typeof stable !== 'string' || model === undefined) return []
  const versions = versionsOf(model)
  if (versions.includes(stable)) return []
  const text = `is "${stable}", but there is no such release. Known: ${versions.join(', ')}`
  return [{ kind, name, param: 'stable', text }]
}

/** The pool without the key that was read from the environment, which is not a second key. */
function withoutResolvedKey(pool: PoolConfig): PoolConfig {
  const { backend } = pool
  if (backend.kind === 'simulated' || backend.apiKeyEnv === undefined) return pool
  const { apiKey: _, ...unresolved } = backend
  return { ...pool, backend: unresolved }
}

function filledIn(kind: CheckedKind, body: RegistryBody): unknown {
  return fillDefaults(REGISTRY_SCHEMAS[kind], structuredClone(body))
}
