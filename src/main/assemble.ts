import type { Clock, Instant } from '../base/clock.ts'
import { msToUs } from '../base/clock.ts'
import { Rng } from '../base/rng.ts'
import type { Config } from '../config/schema.ts'
import { type PoolSetup, toModels, toPools, toReleases, toTenants } from '../config/to-domain.ts'
import type { Replica } from '../domain/fleet.ts'
import { Platform } from '../lifecycle/platform.ts'
import type { Policies, PoolPolicies } from '../lifecycle/policies.ts'
import type { Backends, Capacity, Journal } from '../lifecycle/ports.ts'
import type { Retriever } from '../lifecycle/retrieval-ports.ts'
import { Turnstile } from '../lifecycle/turnstile.ts'
import { Calibration } from '../policy/admission/calibration.ts'
import { LengthReport } from '../policy/admission/length-report.ts'
import { PredictedWait } from '../policy/admission/predicted-wait.ts'
import { RefusalAudit } from '../policy/admission/refusal-audit.ts'
import { Budgets } from '../policy/budgets/budgets.ts'
import { Dispatcher } from '../policy/dispatch/dispatcher.ts'
import { Demand } from '../policy/ladder/demand.ts'
import { Ladder } from '../policy/ladder/ladder.ts'
import { OfflineShedding } from '../policy/ladder/offline-shedding.ts'
import { DEFAULT_RUNGS } from '../policy/ladder/rungs.ts'
import { type LimitSpec, makeLimit } from '../policy/limits/make-limit.ts'
import { COST_DEFAULTS } from '../policy/planning/cost.ts'
import { ObservedSpeed } from '../policy/planning/observed-speed.ts'
import { OutputLengths } from '../policy/planning/output-length.ts'
import { TokenRatio } from '../policy/planning/token-ratio.ts'
import { Health } from '../policy/routing/health.ts'
import { RoutingPlacer } from '../policy/routing/placer.ts'
import { PrefixIndex } from '../policy/routing/prefix-index.ts'
import { engineOptionsOf } from './engine-options.ts'
import { type PoolSpeed, speedOfEngine, speedUnknown } from './pool-speed.ts'

/**
 * Configuration → platform. The live server and the simulator both call this: they differ in the clock, the journal
 * and the backends that they bring, and in nothing else.
 */
export interface Parts {
  readonly clock: Clock
  readonly journal: Journal
  readonly backends: Backends
  /** Nothing is ever found if absent. */
  readonly retriever?: Retriever
  /** A secret of the process for its index of prefixes; simulations have none, so that they repeat. */
  readonly prefixSalt?: number
}

export function assemble(config: Config, parts: Parts): Platform {
  const setups = toPools(config)
  const now = parts.clock.now()
  const pools = setups.map((setup) => ({ setup, speed: speedOf(config, setup, COST_DEFAULTS.outputWeight) }))
  const policies = makePolicies(config, pools, { now, prefixSalt: parts.prefixSalt ?? 0 })
  // Any tenant may come to any pool, so the tightest promise holds.
  const interTokenUsMax = Math.min(...toTenants(config).map(({ slo }) => slo.interTokenUs))
  for (const pool of pools) addReplicas(policies, pool, { now, interTokenUsMax })
  const turnstile = new Turnstile(parts.clock, policies.dispatcher, (poolId) => policies.poolsById.get(poolId)?.wait)
  return new Platform({
    world: { ...parts, capacity: soleHolder, retriever: parts.retriever ?? noRetriever },
    turnstile,
    policies,
    pools: setups.map(({ pool }) => pool),
    queueUsMax: msToUs(config.queue.waitMsMax),
    retrievalUsMax: msToUs(config.retrieval.budgetMs),
  })
}

/** One gateway alone holds all the room there is; limits bound it. */
const soleHolder: Capacity = { allowance: (_replica: Replica) => Number.POSITIVE_INFINITY }

const noRetriever: Retriever = {
  retrieve: () => Promise.resolve({ outcome: 'skipped', because: 'there is no retrieval here', passages: [] }),
}

interface Circumstances {
  readonly now: Instant
  readonly prefixSalt: number
}

interface KnownPool {
  readonly setup: PoolSetup
  readonly speed: PoolSpeed
}

function makePolicies(config: Config, known: readonly KnownPool[], { now, prefixSalt }: Circumstances): Policies {
  const { outputWeight } = COST_DEFAULTS
  const pools = known.map((pool) => makePool(pool, now))
  const models = toModels(config)
  const rng = Rng.stream(config.seed, 'retry-jitter')
  const placer = new RoutingPlacer({
    rng: Rng.stream(config.seed, 'routing'),
    options: config.routing,
    index: new PrefixIndex({ salt: prefixSalt }),
  })
  const rungs = config.ladder.enabled ? DEFAULT_RUNGS : DEFAULT_RUNGS.slice(0, 1)
  return {
    mode: config.admission.mode,
    rungs,
    ladder: new Ladder(rungs),
    calibration: new Calibration({ marginFloor: config.admission.safetyMargin }),
    lengths: new LengthReport(),
    tightestTtftUs: Math.min(...toTenants(config).map((tenant) => tenant.slo.ttftUs)),
    dispatcher: new Dispatcher({
      options: {
        queueDepthMax: config.queue.requestsMax,
        outputTokenCost: outputWeight,
        fairness: config.fairness.order,
      },
      placer,
    }),
    budgets: new Budgets(),
    outputs: new OutputLengths(),
    models: new Map(models.map((model) => [model.name, model])),
    releases: new Map(toReleases(config).map((release) => [release.id, release])),
    ratios: new Map(models.map((model) => [model.name, new TokenRatio()])),
    poolsByRelease: Map.groupBy(pools, (known) => known.pool.releaseId),
    placer,
    health: new Health(),
    poolsById: new Map(pools.map((known) => [known.pool.id, known])),
    outputWeight,
    jitter: () => rng.next(),
  }
}

function makePool({ setup: { pool }, speed }: KnownPool, now: Instant): PoolPolicies {
  return {
    pool,
    wait: waitOf(speed),
    speed: new ObservedSpeed(speed.alone),
    speedAlone: speed.alone,
    kvTokensMax: speed.kvTokensMax,
    demand: new Demand(),
    shedding: new OfflineShedding(now, pool.id),
    audit: new RefusalAudit(),
  }
}

/** A full engine's work in a microsecond, in microseconds: some is lost where steps do not fill up. */
const FULL_ENGINE_RATE = 0.95

/** Where steps are known, work is counted in engines' time; else in cost, and its rate is learned from a guess. */
function waitOf({ alone, drainPerReplicaUs }: PoolSpeed): PredictedWait {
  if (alone.shareUs === undefined) return new PredictedWait(drainPerReplicaUs)
  return new PredictedWait(FULL_ENGINE_RATE, {
    costPerShareUs: drainPerReplicaUs,
    perReplicaUsMax: FULL_ENGINE_RATE,
  })
}

function speedOf(config: Config, setup: PoolSetup, outputWeight: number): PoolSpeed {
  const { backend } = setup
  return backend.kind === 'simulated'
    ? speedOfEngine(engineOptionsOf(config, backend.profile), outputWeight)
    : speedUnknown(outputWeight)
}

/** Not ready until the first tick has looked at them. */
function addReplicas(
  policies: Policies,
  { setup, speed }: KnownPool,
  { now, interTokenUsMax }: { readonly now: Instant; readonly interTokenUsMax: number },
): void {
  policies.dispatcher.addPool(setup.pool.id)
  for (const replica of setup.pool.replicas) {
    const limit = makeLimit(limitSpecOf(setup, speed, interTokenUsMax))
    policies.health.add(now, replica.id, setup.pool.id, true)
    policies.dispatcher.addReplica(now, { replica, limit, kvTokensMax: speed.kvTokensMax, isReady: false })
    policies.dispatcher.replicaChanged(now, replica.id, { allowance: soleHolder.allowance(replica) })
  }
}

function limitSpecOf({ limit }: PoolSetup, { steps }: PoolSpeed, interTokenUsMax: number): LimitSpec {
  const { concurrencyMax: sequencesMax } = limit
  if (limit.kind !== 'auto') return { kind: limit.kind, sequencesMax }
  if (steps === undefined) return { kind: 'gradient', sequencesMax }
  const options = { sequencesMax, prefillTokensMax: steps.tokenBudget }
  return { kind: 'reported', model: steps, interTokenUsMax, options }
}
