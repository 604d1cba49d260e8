import { PLATFORM_TENANT_ID } from '../domain/tenant.ts'
import { parseRange } from '../policy/authority/client-range.ts'
import { checkAudit } from './check-audit.ts'
import { checkBudgets } from './check-budgets.ts'
import { checkFrontDoor } from './check-front-door.ts'
import { checkJobs } from './check-jobs.ts'
import { checkOidc } from './check-oidc.ts'
import { checkPrices } from './check-prices.ts'
import { checkScreening } from './check-screening.ts'
import { checkSharing } from './check-sharing.ts'
import { checkTrust } from './check-trust.ts'
import { checkUpstreams } from './check-upstreams.ts'
import { commonEngineProblems } from './engine-ids.ts'
import type { Path, Problem } from './explain.ts'
import { nearest } from './nearest.ts'
import { profileProblem } from './profile-problem.ts'
import type { ModelConfig, PoolConfig, Settings } from './schema.ts'
import { VERSION_DEFAULT } from './schema-rollout.ts'

/** Checks across settings: unknown names, names used twice, settings that exclude each other. */
export interface CrossCheckOptions {
  /** A model without a pool is allowed: its pool comes later. */
  readonly isServedLater?: boolean
}

export function crossCheck(settings: Settings, { isServedLater = false }: CrossCheckOptions = {}): Problem[] {
  return [
    ...checkModels(settings, isServedLater),
    ...checkReleases(settings),
    ...checkPools(settings),
    ...checkTenants(settings),
    ...checkOrgs(settings),
    ...checkRetrieval(settings),
    ...checkRegions(settings),
    ...checkUpstreams(settings),
    ...checkOidc(settings),
    ...checkFrontDoor(settings),
    ...checkProxies(settings),
    ...checkSharing(settings),
    ...checkBudgets(settings),
    ...checkPrices(settings),
    ...checkScreening(settings),
    ...checkAudit(settings),
    ...checkJobs(settings),
  ]
}

function checkProxies({ server: { trustedProxies } }: Settings): Problem[] {
  return trustedProxies.flatMap((text, i): Problem[] => {
    const range = parseRange(text)
    const path = ['server', 'trustedProxies', i]
    if (typeof range === 'string') return [{ path, text: range }]
    if (range.prefixBits > 0) return []
    return [{ path, text: 'trusts everybody, so that anybody could invent an address. Name the proxies\u2019 own' }]
  })
}

function checkRegions({ regions: { local, peers } }: Settings): Problem[] {
  if (peers.length > 0 && local === undefined) {
    return [{ path: ['regions'], text: 'has peers, but does not say which region is our own. Set regions.local' }]
  }
  return [
    ...peers.flatMap((peer, i): Problem[] => {
      const path = ['regions', 'peers', i]
      const problems: Problem[] = []
      if (peer.region === local)
        problems.push({ path: [...path, 'region'], text: 'is our own region. A peer is the gateway of another one' })
      if (peer.apiKey !== undefined && peer.apiKeyEnv !== undefined)
        problems.push({ path: [...path, 'apiKey'], text: 'and apiKeyEnv are both set. Keep apiKeyEnv' })
      if (peer.apiKey === undefined && peer.apiKeyEnv === undefined)
        problems.push({ path, text: 'has no key to call it with. Set apiKeyEnv' })
      if ((peer.url === undefined) === (peer.urls === undefined))
        problems.push({
          path,
          text: 'needs the address of its gateway in url, or those of several gateways in urls. Set one of the two',
        })
      return problems
    }),
    ...peers.flatMap(({ urls = [] }, i) =>
      repeated(
        'a gateway of the region',
        urls.map((url, nth) => ({ name: url, path: ['regions', 'peers', i, 'urls', nth] })),
      ),
    ),
    ...repeated(
      'a peer\u2019s region',
      peers.map(({ region }, i) => ({ name: region, path: ['regions', 'peers', i, 'region'] })),
    ),
  ]
}

function checkRetrieval({ retrieval, models }: Settings): Problem[] {
  return [...checkEmbedder(retrieval.embedder, models), ...checkRemote(retrieval)]
}

function checkEmbedder({ kind, url, model }: Settings['retrieval']['embedder'], models: Settings['models']): Problem[] {
  const path = ['retrieval', 'embedder']
  if (kind === 'http' && url === undefined) return [{ path, text: 'is of kind "http" but has no url. Add one' }]
  if (kind !== undefined && kind !== 'http' && url !== undefined) {
    return [{ path: [...path, 'url'], text: `is set, but the embedder is of kind "${kind}". Remove one of them` }]
  }
  if (kind !== 'platform') return []
  const known = models.filter((one) => one.kind === 'embedding').map(({ name }) => name)
  return pointsAt('embedding model', model, known, [...path, 'model'])
}

function checkRemote(retrieval: Settings['retrieval']): Problem[] {
  if (retrieval.url === undefined || retrieval.apiKey !== undefined) return []
  const text = 'is missing, but retrieval.url needs it. Set RETRIEVAL_KEY to the secret of that process'
  return [{ path: ['retrieval', 'apiKey'], text }]
}

function checkModels({ models, pools, regions }: Settings, isServedLater: boolean): Problem[] {
  const isServedElsewhere = isServedLater || regions.peers.length > 0
  const names = models.map((model) => model.name)
  const problems = models.flatMap((model, i): Problem[] => {
    const found: Problem[] = []
    if (model.fallback !== undefined) found.push(...pointsAt('model', model.fallback, names, ['models', i, 'fallback']))
    found.push(...checkFallbackKind(model, models, ['models', i, 'fallback']))
    if (leadsBack(model.name, models)) {
      found.push({ path: ['models', i, 'fallback'], text: 'leads back to the model itself. Point it at a smaller one' })
    }
    if (!isServedElsewhere && !pools.some((pool) => pool.model === model.name)) {
      found.push({
        path: ['models', i],
        text: `is "${model.name}", which no pool serves. Add a pool for it, or remove it`,
      })
    }
    return found
  })
  const used = models.flatMap((model, i) => [
    { name: model.name, path: ['models', i, 'name'] },
    ...model.aliases.map((alias, j) => ({ name: alias, path: ['models', i, 'aliases', j] })),
  ])
  return [...problems, ...repeated('a model or alias', used)]
}

/** A model without releases of its own has one. */
export const versionsOf = (model: ModelConfig): readonly string[] =>
  model.releases?.map(({ version }) => version) ?? [VERSION_DEFAULT]

export function versionOf(pool: PoolConfig, models: readonly ModelConfig[]): string {
  const model = models.find(({ name }) => name === pool.model)
  return pool.release ?? (model === undefined ? undefined : versionsOf(model)[0]) ?? VERSION_DEFAULT
}

function checkReleases({ models, pools }: Settings): Problem[] {
  const names = models.map((model) => model.name)
  return models.flatMap((model, i): Problem[] => {
    const versions = versionsOf(model)
    const served = pools.filter((pool) => pool.model === model.name).map((pool) => versionOf(pool, models))
    const at = ['models', i]
    return [
      ...repeated(
        'a version',
        versions.map((name, j) => ({ name, path: [...at, 'releases', j, 'version'] })),
      ),
      ...(model.releases ?? []).flatMap(({ fallback }, j) =>
        fallback === undefined ? [] : pointsAt('model', fallback, names, [...at, 'releases', j, 'fallback']),
      ),
      ...checkRollout(model, versions, served, [...at, 'rollout']),
      ...(served.length > 0 && model.rollout === undefined && !served.includes(versions[0] as string)
        ? [{ path: at, text: `sends everybody to its first release, ${versions[0]}, which no pool serves` }]
        : []),
    ]
  })
}

function checkRollout(model: ModelConfig, versions: readonly string[], served: readonly string[], at: Path): Problem[] {
  const { rollout } = model
  if (rollout === undefined) return []
  const named = [
    { version: rollout.stable, path: [...at, 'stable'] },
    ...(rollout.canary === undefined ? [] : [{ version: rollout.canary, path: [...at, 'canary'] }]),
    ...rollout.rules.map((rule, j) => ({ version: rule.release, path: [...at, 'rules', j, 'release'] })),
    ...(rollout.shadow?.release === undefined
      ? []
      : [{ version: rollout.shadow.release, path: [...at, 'shadow', 'release'] }]),
  ]
  const problems = named.flatMap(({ version, path }): Problem[] => {
    const unknown = pointsAt('release', version, versions, path)
    if (unknown.length > 0 || served.includes(version)) return unknown
    return [{ path, text: `is "${version}", which no pool serves. Give a pool \`release: ${version}\`` }]
  })
  if (rollout.canary === rollout.stable) problems.push({ path: [...at, 'canary'], text: 'is the stable release too' })
  const falls = rollout.steps.findIndex((percent, j) => percent <= (rollout.steps[j - 1] ?? 0))
  if (falls > 0) problems.push({ path: [...at, 'steps', falls], text: 'is not above the step before it' })
  if (rollout.shadow !== undefined && rollout.shadow.release === undefined && rollout.canary === undefined)
    problems.push({ path: [...at, 'shadow'], text: 'has no release, and there is no canary. Give it one' })
  for (const [j, held] of (rollout.holdout?.items ?? []).entries()) {
    const problem = holdoutProblem(held)
    if (problem !== undefined) problems.push({ path: [...at, 'holdout', 'items', j], text: problem })
  }
  for (const [j, { tenant, key, header }] of rollout.rules.entries()) {
    if (tenant === undefined && key === undefined && header === undefined)
      problems.push({ path: [...at, 'rules', j], text: 'names nobody. Give it a tenant, a key or a header' })
  }
  return problems
}

/**
 * A fallback must be of the same kind; an embedding model has none, because its vectors cannot be compared with others.
 */
function checkFallbackKind(model: Settings['models'][number], models: Settings['models'], path: Path): Problem[] {
  const fallback = models.find(({ name }) => name === model.fallback)
  if (fallback === undefined) return []
  if (model.kind === 'embedding') {
    return [{ path, text: 'cannot be: vectors of two models cannot be compared. Remove it' }]
  }
  if (fallback.kind === model.kind) return []
  return [
    { path, text: `is "${fallback.name}", which is for ${fallback.kind}, not ${model.kind}. Name one of its kind` },
  ]
}

/** The problem of an item of a holdout set, from the configuration or a file. */
export function holdoutProblem({ expected, pattern }: { expected?: string; pattern?: string }): string | undefined {
  if ((expected === undefined) === (pattern === undefined)) return 'needs `expected` or `pattern`, one of them'
  try {
    new RegExp(pattern ?? '')
    return undefined
  } catch (error) {
    return `has a pattern that is no regular expression: ${(error as Error).message}`
  }
}

function leadsBack(name: string, models: Settings['models']): boolean {
  const next = new Map(models.map((model) => [model.name, model.fallback]))
  let at = next.get(name)
  for (let steps = 0; at !== undefined && steps < models.length; steps++) {
    if (at === name) return true
    at = next.get(at)
  }
  return false
}

function checkPools({ models, pools, tenants }: Settings): Problem[] {
  // A guard model may have a pool that only the platform's own questions use.
  const ownerIds = [...tenants.map((tenant) => tenant.id), PLATFORM_TENANT_ID]
  const names = models.map((model) => model.name)
  const problems = pools.flatMap((pool, i) => [
    ...pointsAt('model', pool.model, names, ['pools', i, 'model']),
    ...checkPoolRelease(pool, models, ['pools', i, 'release']),
    ...checkAddresses(pool, ['pools', i]),
    ...checkTransit(pool, models, ['pools', i, 'backend']),
    ...(pool.dedicatedTo ?? []).flatMap((id, j) => pointsAt('tenant', id, ownerIds, ['pools', i, 'dedicatedTo', j])),
    ...checkProfile(pool, ['pools', i, 'backend', 'profile']),
  ])
  const ids = pools.map((pool, i) => ({
    name: poolIdOf(pool),
    path: ['pools', i, ...(pool.id === undefined ? [] : ['id'])],
  }))
  return [...problems, ...commonEngineProblems({ models, pools }, poolIdOf), ...repeated('a pool id', ids)]
}

function checkPoolRelease({ model, release }: PoolConfig, models: Settings['models'], path: Path): Problem[] {
  const served = models.find(({ name }) => name === model)
  return served === undefined || release === undefined ? [] : pointsAt('release', release, versionsOf(served), path)
}

export const poolIdOf = ({ id, model, release, region }: PoolConfig): string =>
  id ?? [model, ...(release === undefined ? [] : [release]), region].join('-')

function checkProfile({ backend }: PoolConfig, path: Path): Problem[] {
  if (!('profile' in backend) || backend.profile === undefined) return []
  const named = [
    { name: backend.profile, at: path },
    ...(('profiles' in backend ? backend.profiles : undefined) ?? []).map((name, i) => ({
      name,
      at: [...path.slice(0, -1), 'profiles', i],
    })),
  ]
  return named.flatMap(({ name, at }) => {
    const text = profileProblem(name)
    return text === undefined ? [] : [{ path: at, text }]
  })
}

/** Only engines behind OpenAI's API have endpoints to pass through to. */
function checkTransit({ model, backend }: PoolConfig, models: Settings['models'], path: Path): Problem[] {
  const served = models.find(({ name }) => name === model)
  const isOneDoor = backend.kind === 'http-openai' && backend.engine === 'sagemaker'
  if (served === undefined || (backend.kind === 'http-openai' && !isOneDoor)) return []
  const name = isOneDoor ? 'sagemaker' : backend.kind
  const text = (what: string): string => `is ${name}, which has no ${what}. Make it http-openai`
  if (served.kind === 'audio' || served.kind === 'image') return [{ path, text: text(`models for ${served.kind}`) }]
  return served.transit === undefined || served.transit.length === 0
    ? []
    : [{ path, text: text(`${served.transit.join(', ')} to pass through to, as model ${model} wants`) }]
}

function checkAddresses({ backend, replicas }: PoolConfig, path: Path): Problem[] {
  const at = [...path, 'replicas']
  if (backend.kind === 'simulated') {
    return typeof replicas === 'number'
      ? []
      : [{ path: at, text: 'is a list of addresses, but the backend is simulated. Set it to a number' }]
  }
  const problems: Problem[] = []
  if (typeof replicas !== 'number' && backend.url !== undefined) {
    problems.push({ path: at, text: 'and backend.url both give addresses. Keep one of them' })
  }
  const { discover } = backend
  if (typeof replicas === 'number' && backend.url === undefined && discover === undefined) {
    problems.push({
      path,
      text: 'has no address. Set backend.url, list the addresses under replicas, or let backend.discover find them',
    })
  }
  if (typeof replicas === 'number' && backend.url !== undefined && replicas > 1) {
    problems.push({
      path: at,
      text: `is ${replicas}, but backend.url is one address. List the addresses under replicas`,
    })
  }
  const sources = discover === undefined ? [] : [discover.dns, discover.kubernetes, discover.inferencePool]
  if (discover !== undefined && sources.filter((source) => source !== undefined).length !== 1) {
    const text = 'names nobody, or two. Give it dns, kubernetes or inferencePool'
    problems.push({ path: [...path, 'backend', 'discover'], text })
  }
  return [...problems, ...checkTrust(backend, [...path, 'backend'])]
}

/** A weight for an org that nobody belongs to is a typing mistake, and would leave the org that is meant without one. */
function checkOrgs({ orgs, tenants }: Settings): Problem[] {
  const known = [...new Set(tenants.map(({ org, id }) => org ?? id))]
  return [
    ...orgs.flatMap(({ id }, i) => pointsAt('org of a tenant', id, known, ['orgs', i, 'id'])),
    ...repeated(
      'an org',
      orgs.map(({ id }, i) => ({ name: id, path: ['orgs', i, 'id'] })),
    ),
  ]
}

function checkTenants({ tenants, slos }: Settings): Problem[] {
  const names = slos.map((slo) => slo.name)
  const keys = tenants.flatMap((tenant, i) => tenant.keys.map((key, j) => ({ key, path: ['tenants', i, 'keys', j] })))
  return [
    ...tenants.flatMap(({ id }, i) =>
      id === PLATFORM_TENANT_ID
        ? [{ path: ['tenants', i, 'id'], text: `is "${id}", which is the platform's own. Choose another` }]
        : [],
    ),
    ...tenants.flatMap((tenant, i) => pointsAt('SLO', tenant.slo, names, ['tenants', i, 'slo'])),
    ...repeated(
      'an SLO',
      names.map((name, i) => ({ name, path: ['slos', i, 'name'] })),
    ),
    ...repeated(
      'a tenant',
      tenants.map((tenant, i) => ({ name: tenant.id, path: ['tenants', i, 'id'] })),
    ),
    ...repeated(
      'a key id',
      keys.map(({ key, path }) => ({ name: key.id, path: [...path, 'id'] })),
    ),
    ...repeated(
      'a key\u2019s hash',
      keys.map(({ key, path }) => ({ name: key.hash, path: [...path, 'hash'] })),
    ),
  ]
}

function pointsAt(what: string, name: string, known: readonly string[], path: Path): Problem[] {
  if (known.includes(name)) return []
  const guess = nearest(name, known)
  const advice = guess === undefined ? `Known: ${known.join(', ')}` : `Did you mean "${guess}"?`
  return [{ path, text: `is "${name}", but there is no such ${what}. ${advice}` }]
}

function repeated(what: string, used: readonly { name: string; path: Path }[]): Problem[] {
  const seen = new Set<string>()
  return used.flatMap(({ name, path }) => {
    if (!seen.has(name)) {
      seen.add(name)
      return []
    }
    return [{ path, text: `is "${name}", which is ${what} already. Give each its own` }]
  })
}
