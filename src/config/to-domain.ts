import { msToUs, secondsToUs } from '../base/clock.ts'
import type { AuditTerms } from '../domain/audit-event.ts'
import { type Model, type ModelKind, type Pool, type Release, type Replica, releaseIdOf } from '../domain/fleet.ts'
import type { Allowance, AnswerCacheTerms, Key, RateLimit, Slo, Tenant } from '../domain/tenant.ts'
import type { TransitRoute } from '../domain/transit.ts'
import { BURST_MAX } from '../policy/budgets/token-bucket.ts'
import type { HoldoutItem, HoldoutOptions } from '../policy/rollout/holdout.ts'
import type { RolloutSettings } from '../policy/rollout/model-rollout.ts'
import type { ShadowRule } from '../policy/rollout/shadow.ts'
import { poolIdOf, versionOf, versionsOf } from './cross-check.ts'
import { CONTEXT_TOKENS_MAX } from './defaults.ts'
import { addressesOf, engineIdsOf } from './engine-ids.ts'
import type { BackendConfig, Config, ModelConfig, PeerConfig, PoolConfig, SloConfig, TenantConfig } from './schema.ts'
import { peerUrls } from './schema-regions.ts'
import { type ScalingSetup, toScaledPool, toScaling } from './to-autoscale.ts'
import { toScreening } from './to-screening.ts'
import { toSpendLimit } from './to-spend-limit.ts'

/** Turns settings (milliseconds, names) into domain objects (microseconds, references). */

export function toModels(config: Config): Model[] {
  return config.models.map((model) => {
    const { name, kind, aliases, contextTokensMax, outputTokensDefault, fallback, createdAtS } = model
    const transit = model.transit ?? TRANSIT_OF_KIND[kind] ?? []
    const releases = versionsOf(model).map((version) => releaseIdOf(name, version))
    const bound = outputTokensDefault === undefined ? {} : { outputTokensDefault }
    return { name, kind, transit, aliases, contextTokensMax, ...bound, fallback, createdAtS, releases }
  })
}

/** What models of a kind serve by transit where their settings do not say. */
const TRANSIT_OF_KIND: Partial<Record<ModelKind, readonly TransitRoute[]>> = {
  audio: ['audio'],
  image: ['images'],
  ranking: ['rerank'],
}

/** A release names only what differs from its model. */
export function toReleases(config: Config): Release[] {
  return config.models.flatMap((model) =>
    versionsOf(model).map((version): Release => {
      const own: Partial<ReleaseConfig> = model.releases?.find((release) => release.version === version) ?? {}
      return {
        id: releaseIdOf(model.name, version),
        model: model.name,
        version,
        ...(own.artifact !== undefined && { artifact: own.artifact }),
        ...(own.labels !== undefined && { labels: own.labels }),
        contextTokensMax: own.contextTokensMax ?? model.contextTokensMax,
        fallback: own.fallback ?? model.fallback,
        ...(own.price !== undefined && { price: own.price }),
        createdAtS: own.createdAtS ?? model.createdAtS,
      }
    }),
  )
}

/** Percentages become ratios, versions become ids. */
export function toRollouts(config: Config): RolloutSettings[] {
  return config.models.flatMap((model): RolloutSettings[] => {
    const { rollout } = model
    if (rollout === undefined) return []
    const idOf = (version: string): string => releaseIdOf(model.name, version)
    const { stable, canary, stickyBy, steps, dwellMs, rules, judge } = rollout
    return [
      {
        model: model.name,
        stable: idOf(stable),
        canary: canary === undefined ? undefined : idOf(canary),
        stickyBy,
        steps: steps.map((percent) => percent / 100),
        dwellUs: msToUs(dwellMs),
        pins: rules.map(({ release, tenant, key, header }) => ({
          release: idOf(release),
          ...(tenant !== undefined && { tenantId: tenant }),
          ...(key !== undefined && { keyId: key }),
          ...(header !== undefined && { header }),
        })),
        judge,
        ...toShadow(rollout, idOf),
      },
    ]
  })
}

/** Questions with known answers, of the models that have some. */
export interface HoldoutSetup {
  readonly model: string
  readonly items: readonly HoldoutItem[]
  readonly options: HoldoutOptions
}

export function toHoldouts(config: Config): HoldoutSetup[] {
  return config.models.flatMap(({ name: model, rollout }): HoldoutSetup[] => {
    if (rollout?.holdout === undefined) return []
    const { items, perMinute, inFlightMax, outputTokensMax } = rollout.holdout
    return [{ model, items, options: { perMinute, inFlightMax, outputTokensMax } }]
  })
}

type RolloutConfig = NonNullable<ModelConfig['rollout']>

function toShadow({ shadow, canary }: RolloutConfig, idOf: (version: string) => string): { shadow?: ShadowRule } {
  const version = shadow?.release ?? canary
  if (shadow === undefined || version === undefined) return {}
  const { percent, inFlightMax, excludedTenants: excludedTenantIds } = shadow
  return { shadow: { release: idOf(version), ratio: percent / 100, inFlightMax, excludedTenantIds } }
}

type ReleaseConfig = NonNullable<ModelConfig['releases']>[number]

/** A pool with everything needed to reach it. */
export interface PoolSetup {
  readonly pool: Pool
  /** Kind of the pool's model, and the longest request or input. */
  readonly kind: ModelKind
  readonly contextTokensMax: number
  readonly backend: BackendConfig | PeerBackend
  readonly limit: PoolConfig['limit']
  /** Tells engines at the same address apart, and simulated ones of several pools together (`engine-ids.ts`). */
  readonly engineName?: string | undefined
  readonly isLocal: boolean
  readonly roundTripUs: number
  /** Dollars for an hour of one replica, where the pool says so. */
  readonly usdPerHour?: number | undefined
  /** Who carries out its autoscaling, and what tells its GPUs' use. */
  readonly scaling?: ScalingSetup | undefined
  /** Address of each replica, by id; empty for simulated replicas. */
  readonly urls: ReadonlyMap<string, string>
}

/** The gateways of another region, as the backend of a pool. */
export interface PeerBackend {
  readonly kind: 'peer'
  readonly peer: PeerConfig
}

export function toPools(config: Config): PoolSetup[] {
  return [...enginePools(config), ...peerPools(config)]
}

/**
 * One pool per model and other region, with that region's gateways as its replicas. A peer itself reports whether it has
 * the model and chooses its release, so these pools belong to no release of ours. The only gateway of a region is called
 * as its pool.
 */
function peerPools({ models, regions }: Config): PoolSetup[] {
  return regions.peers.flatMap((peer) =>
    models.map(({ name: model, kind, contextTokensMax }): PoolSetup => {
      const { region, concurrencyMax } = peer
      const id = `${region}:${model}`
      const releaseId = releaseIdOf(model, `in-${region}`)
      const addresses = peerUrls(peer)
      const ids = peer.urls === undefined ? [id] : replicaNames(addresses).map((gateway) => `${id}-${gateway}`)
      const replicas = ids.map((one): Replica => ({ id: one, poolId: id, model, releaseId, region }))
      return {
        pool: { id, model, releaseId, region, replicas, isPeer: true },
        kind,
        contextTokensMax,
        backend: { kind: 'peer', peer },
        limit: { kind: 'fixed', concurrencyMax },
        isLocal: false,
        roundTripUs: 0,
        urls: new Map(addresses.map((url, i) => [ids[i] as string, url])),
      }
    }),
  )
}

function enginePools(config: Config): PoolSetup[] {
  const { local } = config.regions
  return config.pools.map((setup) => {
    const id = poolIdOf(setup)
    const addresses = addressesOf(setup)
    const { model, region } = setup
    const known = config.models.find(({ name }) => name === model)
    const releaseId = releaseIdOf(model, versionOf(setup, config.models))
    const names = replicaNames(addresses)
    const engineIds = engineIdsOf(setup, addresses)
    const inside = setup.inside === true ? { isInside: true } : {}
    const replicas = names.map((name, i): Replica => {
      const engineId = engineIds[i]
      const replica = { id: `${id}-${name}`, poolId: id, model, releaseId, region }
      return engineId === undefined ? replica : { ...replica, engineId }
    })
    const urls = new Map(
      replicas.flatMap((replica, i) => (addresses[i] === undefined ? [] : [[replica.id, addresses[i]]])),
    )
    return {
      pool: {
        id,
        model,
        releaseId,
        region,
        replicas,
        dedicatedTo: setup.dedicatedTo,
        ...inside,
        ...toScaledPool(setup),
      },
      scaling: toScaling(setup),
      kind: known?.kind ?? 'chat',
      contextTokensMax: known?.contextTokensMax ?? CONTEXT_TOKENS_MAX,
      backend: setup.backend,
      limit: setup.limit,
      engineName: setup.engineName,
      isLocal: local === undefined || region === local,
      roundTripUs: local === undefined || region === local ? 0 : msToUs(setup.roundTripMs),
      usdPerHour: setup.usdPerHour,
      urls,
    }
  })
}

/**
 * What replicas are called within their pool: by their address, which stays when others come and go, or by a number
 * where engines are simulated and have none. An address that is listed twice is two replicas.
 */
function replicaNames(addresses: readonly (string | undefined)[]): string[] {
  const seen = new Map<string, number>()
  return addresses.map((url, i) => {
    if (url === undefined) return String(i)
    const name = addressName(url)
    const count = (seen.get(name) ?? 0) + 1
    seen.set(name, count)
    return count === 1 ? name : `${name}#${count}`
  })
}

/** `http://gpu-1:8000/v1` is `gpu-1:8000`; a password in the address is in no name. */
const addressName = (url: string): string => url.replace(/^https?:\/\/([^@/]*@)?/, '').replace(/\/(v1\/?)?$/, '')

/** The id of the replica at this address. */
export const replicaIdOf = (poolId: string, url: string): string => `${poolId}-${addressName(url)}`

/** The GPU profile of a pool's replica; undefined where its engines are not simulated. */
export function profileOf(
  { backend, pool }: Pick<PoolSetup, 'backend' | 'pool'>,
  replica: Replica,
): string | undefined {
  if (backend.kind !== 'simulated') return undefined
  const { profile, profiles = [profile] } = backend
  // By its number, which a replica that comes later has too.
  const number = Number(replica.id.slice(pool.id.length + 1))
  return profiles[number % profiles.length] ?? profile
}

export function toTenants(config: Config): Tenant[] {
  const slos = new Map(config.slos.map((slo) => [slo.name, toSlo(slo)]))
  const orgWeights = toOrgWeights(config)
  const orgAllowances = toOrgAllowances(config)
  const screeningOf = sharedScreening(config)
  return config.tenants.map((tenant) => ({
    id: tenant.id,
    orgId: tenant.org ?? tenant.id,
    weight: tenant.weight,
    // The SLO's name was checked when the configuration was read.
    slo: slos.get(tenant.slo)!,
    bands: tenant.bands,
    allowance: toAllowance(tenant.allowance),
    bidMax: tenant.bidMax,
    contract: tenant.contract,
    queueUsMax: msToUs(tenant.waitMsMax ?? config.queue.waitMsMax),
    ...(orgWeights.has(tenant.org ?? tenant.id) && { orgWeight: orgWeights.get(tenant.org ?? tenant.id)! }),
    ...(orgAllowances.has(tenant.org ?? tenant.id) && { orgAllowance: orgAllowances.get(tenant.org ?? tenant.id)! }),
    ...(tenant.prefixCache !== 'tenant' && { prefixCache: tenant.prefixCache }),
    ...(tenant.answerCache !== undefined && { answerCache: toAnswerTerms(tenant.answerCache) }),
    ...(tenant.storing !== undefined && { storing: tenant.storing }),
    ...screeningOf(tenant.screening),
    ...(tenant.strict && { isStrict: true }),
    ...(tenant.tellPrice && { tellsPrice: true }),
    ...(tenant.audit !== undefined && { audit: toAuditTerms(tenant.audit) }),
  }))
}

/** Terms of screening by what a tenant says itself; those of tenants that say nothing are one object. */
export function sharedScreening({
  screening,
}: Pick<Config, 'screening'>): (own: TenantConfig['screening']) => Pick<Tenant, 'screening'> {
  const terms = toScreening(screening)
  const platform = terms === undefined ? {} : { screening: terms }
  return (own) => {
    if (own === undefined) return platform
    const made = toScreening(screening, own)
    return made === undefined ? {} : { screening: made }
  }
}

function toAuditTerms({ strict, onFull }: NonNullable<TenantConfig['audit']>): Partial<AuditTerms> {
  return {
    ...(strict !== undefined && { isStrict: strict }),
    ...(onFull !== undefined && { refusesWhenFull: onFull === 'refuse' }),
  }
}

/** Weights of the orgs that have one of their own. */
export function toOrgWeights({ orgs }: Pick<Config, 'orgs'>): ReadonlyMap<string, number> {
  return new Map(orgs.flatMap(({ id, weight }) => (weight === undefined ? [] : [[id, weight]])))
}

function toAnswerTerms({ ttlS, ...terms }: NonNullable<TenantConfig['answerCache']>): AnswerCacheTerms {
  return { ...terms, ttlUs: secondsToUs(ttlS) }
}

/** A key with the hash of its secret. */
export interface KeySetup {
  readonly key: Key
  readonly hash: string
}

export function toKeys(config: Config): KeySetup[] {
  return config.tenants.flatMap((tenant) =>
    tenant.keys.map(({ id, weight, allowance, hash }) => ({
      key: { id, tenantId: tenant.id, weight, allowance: toAllowance(allowance) },
      hash,
    })),
  )
}

export function toSlo({ name, ttftMs, interTokenMs, totalMs, cutOff }: SloConfig): Slo {
  const promise = { name, ttftUs: msToUs(ttftMs), interTokenUs: msToUs(interTokenMs), totalUs: msToUs(totalMs) }
  return cutOff ? { ...promise, isCutOff: true } : promise
}

/** What orgs may use, of those that have a bound. */
export function toOrgAllowances({ orgs }: Pick<Config, 'orgs'>): ReadonlyMap<string, Allowance> {
  const made = orgs.map(({ id, allowance }) => [id, toAllowance(allowance)] as const)
  return new Map(made.filter(([, allowance]) => Object.keys(allowance).length > 0))
}

export function toAllowance({ requests, tokens, concurrencyMax, budgets }: TenantConfig['allowance']): Allowance {
  return {
    ...(requests && { requests: toRate(requests) }),
    ...(tokens && { tokens: toRate(tokens) }),
    ...(concurrencyMax !== undefined && { concurrencyMax }),
    ...(budgets !== undefined && budgets.length > 0 && { budgets: budgets.map(toSpendLimit) }),
  }
}

function toRate({ perMinute, burst = perMinute }: { perMinute: number; burst?: number }): RateLimit {
  return { perMinute, burst: Math.min(burst, BURST_MAX) }
}
