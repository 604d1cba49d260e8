import type { Clock, Instant } from '../base/clock.ts'
import { msToUs } from '../base/clock.ts'
import { Rng } from '../base/rng.ts'
import type { Config } from '../config/schema.ts'
import {
  type PoolSetup,
  profileOf,
  toHoldouts,
  toModels,
  toOrgWeights,
  toPools,
  toReleases,
  toRollouts,
  toTenants,
} from '../config/to-domain.ts'
import { toPriceLists } from '../config/to-prices.ts'
import { NO_AUTOSCALE } from '../domain/autoscale.ts'
import type { PoolSpeed } from '../domain/engine-speed.ts'
import type { Replica } from '../domain/fleet.ts'
import { WHOLE_ROOM } from '../domain/pool-share.ts'
import { speedOfBatches, speedOfEngine } from '../engine/pool-speed.ts'
import type { AuditTrail } from '../lifecycle/audit-ports.ts'
import type { Actuators, CellDrains } from '../lifecycle/autoscale-ports.ts'
import { Fleet } from '../lifecycle/fleet/fleet.ts'
import { LastReports } from '../lifecycle/fleet/last-reports.ts'
import type { PoolPolicies } from '../lifecycle/fleet/pool-policies.ts'
import { WorkMeter } from '../lifecycle/fleet/work-meter.ts'
import { WaitMeters } from '../lifecycle/learning/wait-meters.ts'
import type { Books } from '../lifecycle/ledger-ports.ts'
import { markEntry } from '../lifecycle/mark-entry.ts'
import { Platform } from '../lifecycle/platform.ts'
import type { Policies } from '../lifecycle/policies.ts'
import type {
  AnswerCache,
  Backends,
  Capacity,
  Journal,
  Leadership,
  RolloutKeeper,
  SharedSecondStore,
  TwinKeeper,
} from '../lifecycle/ports.ts'
import type { Retriever } from '../lifecycle/retrieval-ports.ts'
import type { Screener } from '../lifecycle/screening-ports.ts'
import type { SliceFetcher } from '../lifecycle/sharing-ports.ts'
import { Standings } from '../lifecycle/standings.ts'
import { Turnstile } from '../lifecycle/turnstile.ts'
import { Calibration } from '../policy/admission/calibration.ts'
import { LengthReport } from '../policy/admission/length-report.ts'
import { PredictedWait } from '../policy/admission/predicted-wait.ts'
import { RefusalAudit } from '../policy/admission/refusal-audit.ts'
import { ReturnSlots } from '../policy/admission/return-slots.ts'
import { Attainment } from '../policy/autoscale/attainment.ts'
import { OfferedWork } from '../policy/autoscale/offered-work.ts'
import { PoolScaler } from '../policy/autoscale/pool-scaler.ts'
import { Budgets } from '../policy/budgets/budgets.ts'
import { type BudgetParts, OWN_PARTS, type QuotaLedger } from '../policy/budgets/scope-budget.ts'
import { CODEL_DEFAULTS } from '../policy/dispatch/codel.ts'
import { Dispatcher } from '../policy/dispatch/dispatcher.ts'
import type { Reading } from '../policy/dispatch/long-prompts.ts'
import { Demand } from '../policy/ladder/demand.ts'
import { Ladder } from '../policy/ladder/ladder.ts'
import { OfflineShedding } from '../policy/ladder/offline-shedding.ts'
import { DEFAULT_RUNGS } from '../policy/ladder/rungs.ts'
import { TightestPromise } from '../policy/ladder/tightest-promise.ts'
import type { OfflineTerms } from '../policy/limits/limit.ts'
import { type LimitSpec, makeLimit } from '../policy/limits/make-limit.ts'
import { OfflineWaste } from '../policy/limits/offline-waste.ts'
import type { LearnedCeiling, PromisedPace } from '../policy/limits/reported.ts'
import { PriceList } from '../policy/money/price-list.ts'
import { COST_DEFAULTS } from '../policy/planning/cost.ts'
import { OutputLengths } from '../policy/planning/output-length.ts'
import { speedUnknown } from '../policy/planning/unknown-speed.ts'
import { Holdout } from '../policy/rollout/holdout.ts'
import { ModelRollout } from '../policy/rollout/model-rollout.ts'
import { POOL_CHOICE_DEFAULTS } from '../policy/routing/choose-pool.ts'
import { Health } from '../policy/routing/health.ts'
import { RoutingPlacer } from '../policy/routing/placer.ts'
import { PoolDenial } from '../policy/routing/pool-denial.ts'
import { PrefixIndex } from '../policy/routing/prefix-index.ts'
import { Presence } from '../policy/routing/presence.ts'
import { RegionOutlook } from '../policy/routing/region-outlook.ts'
import { ObservedSpeed } from '../policy/twin/observed-speed.ts'
import type { Twins } from '../policy/twin/twins.ts'
import { MemoryRolloutKeeper } from '../store/memory-rollout-keeper.ts'
import { batchOptionsOf } from './batch-options.ts'
import { type EngineSettings, engineOptionsOf } from './engine-options.ts'
import { kvBytesPerTokenOf } from './kv-bytes.ts'
import { replicaPrices } from './replica-price.ts'
import { twinsOf } from './twins.ts'

/**
 * Configuration → platform. The live server and the simulator both call this. They differ in the clock, the journal and
 * the backends that they pass, and in nothing else.
 */
export interface Parts {
  readonly clock: Clock
  readonly journal: Journal
  readonly backends: Backends
  /** Absent: no passages are found. */
  readonly retriever?: Retriever
  /** Absent: no answers are stored. */
  readonly answers?: AnswerCache
  /** Nothing is kept over a restart if absent. */
  readonly rolloutKeeper?: RolloutKeeper
  readonly twinKeeper?: TwinKeeper
  /** Budgets that several gateways share (`policy/sharing`); if absent, each budget is this process' own. */
  readonly budgetParts?: BudgetParts
  /** Asks the store of shared budgets for more; comes with `budgetParts`. */
  readonly slices?: SliceFetcher
  /** Absent: nothing is screened. */
  readonly screener?: Screener
  /** Absent: nothing is written down. */
  readonly books?: Books
  /** Room of replicas that several gateways share; if absent, all of it is this process' own. */
  readonly capacity?: Capacity
  /** Absent: this gateway is the only one, and leads. */
  readonly leadership?: Leadership
  /** What was used of budgets before this process began; absent: nothing. */
  readonly balances?: QuotaLedger & SliceFetcher
  /** Seconds of replicas that other gateways use, too; if absent, this gateway closes them itself. */
  readonly seconds?: SharedSecondStore
  /** Absent: nothing is audited. */
  readonly audit?: AuditTrail
  /** Absent: numbers of replicas do not change. */
  readonly actuators?: Actuators
  /** Absent: a drain is this gateway's own. */
  readonly cellDrains?: CellDrains
  /** A secret of the process for its prefix index; absent in simulations, so that they repeat exactly. */
  readonly prefixSalt?: number
}

export function assemble(config: Config, parts: Parts): Platform {
  const now = parts.clock.now()
  const policies = makePolicies(config, parts)
  const turnstile = new Turnstile(parts.clock, policies.dispatcher)
  const platform = new Platform({
    world: {
      ...parts,
      capacity: parts.capacity ?? soleHolder,
      retriever: parts.retriever ?? noRetriever,
      answers: parts.answers ?? noAnswers,
      rolloutKeeper: parts.rolloutKeeper ?? new MemoryRolloutKeeper(),
      twinKeeper: parts.twinKeeper ?? forgetful,
      books: parts.books ?? noBooks,
      leadership: parts.leadership ?? soleGateway,
    },
    turnstile,
    policies,
    queueUsMax: msToUs(config.queue.waitMsMax),
    retrievalUsMax: msToUs(config.retrieval.budgetMs),
    idle: { policy: config.cost.idle, weights: toTenants(config).map(({ id, weight }) => ({ tenantId: id, weight })) },
  })
  const { tightestPromise } = policies
  const pools = toPools(config).map((setup) => makePoolPolicies(config, setup, tightestPromise, now))
  platform.fleetChanges.found(toModels(config), toReleases(config), pools)
  return platform
}

/** A single gateway may use the whole room of every replica, up to its limit. */
const soleHolder: Capacity = { allowance: (_replica: Replica) => WHOLE_ROOM }

const soleGateway: Leadership = { role: () => ({ kind: 'leads', fence: undefined }) }

const noRetriever: Retriever = {
  retrieve: () => Promise.resolve({ outcome: 'skipped', because: 'there is no retrieval here', passages: [] }),
  lookUp: () => ({ kind: 'unknown' }),
}

const noBooks: Books = { isCosting: false, opened: () => {}, settled: () => {}, costed: () => {} }

const forgetful: TwinKeeper = { keep: () => {}, recall: () => undefined }

const noAnswers: AnswerCache = {
  find: () => Promise.resolve({ kind: 'skipped', because: 'there is no answer cache here' }),
  keep: () => {},
  likeness: () => Promise.resolve(undefined),
}

function makePolicies(config: Config, { clock, journal, prefixSalt = 0, budgetParts, balances }: Parts): Policies {
  const { outputWeight } = COST_DEFAULTS
  const fleet = new Fleet()
  const rng = Rng.stream(config.seed, 'retry-jitter')
  const checks = Rng.stream(config.seed, 'answer-checks')
  const placer = new RoutingPlacer({
    rng: Rng.stream(config.seed, 'routing'),
    options: config.routing,
    index: new PrefixIndex({ salt: prefixSalt }),
  })
  const dispatcher = new Dispatcher({
    options: {
      queueRequestsMax: config.queue.requestsMax,
      outputTokenCost: outputWeight,
      fairness: config.fairness.order,
      areLaneBoundsKept: config.admission.mode === 'enforce',
      codel: config.queue.discipline === 'codel' ? CODEL_DEFAULTS : undefined,
    },
    placer,
    listener: new WaitMeters(fleet),
  })
  for (const [orgId, weight] of toOrgWeights(config)) dispatcher.reweigh({ kind: 'org', orgId, weight })
  const rungs = config.ladder.enabled ? DEFAULT_RUNGS : DEFAULT_RUNGS.slice(0, 1)
  return {
    mode: config.admission.mode,
    paused: new Map(),
    rungs,
    ladder: new Ladder(rungs),
    calibration: new Calibration({ marginFloor: config.admission.safetyMargin }),
    returnSlots: new ReturnSlots({ share: config.admission.returnShare }),
    lengths: new LengthReport(),
    tightestPromise: new TightestPromise(toTenants(config)),
    dispatcher,
    budgets: new Budgets({
      ...(budgetParts ?? OWN_PARTS),
      ...(balances && { ledger: balances }),
      onMark: (passed) => journal.record(markEntry(clock.now(), passed)),
    }),
    offline: offlineTermsOf(config),
    offlineWaste: new OfflineWaste({ ratioMax: config.offline.wasteRatioMax }),
    standings: new Standings(),
    outputs: new OutputLengths(),
    prices: new PriceList(toPriceLists(config)),
    fleet,
    models: fleet.models,
    releases: fleet.releases,
    ratios: fleet.ratios,
    poolsByRelease: fleet.poolsByRelease,
    poolsById: fleet.poolsById,
    holdouts: new Map(toHoldouts(config).map(({ model, items, options }) => [model, new Holdout(items, options)])),
    rollouts: new Map(toRollouts(config).map((settings) => [settings.model, new ModelRollout(settings)])),
    placer,
    health: new Health(),
    poolChoice: {
      ...POOL_CHOICE_DEFAULTS,
      spillMarginUs: msToUs(config.regions.spillMarginMs),
      returnUs: msToUs(config.regions.returnMs),
    },
    outputWeight,
    jitter: () => rng.next(),
    answerChecks: () => checks.next(),
  }
}

/** What offline turns may have of a replica. */
function offlineTermsOf({ offline: { interTokenMs, kvShare } }: Config): OfflineTerms {
  return { interTokenUs: interTokenMs === undefined ? undefined : msToUs(interTokenMs), kvShare }
}

/** The policies of one pool, added at the start or at run time. Any tenant may use any pool: there is one promise. */
export function makePoolPolicies(
  config: EngineSettings,
  setup: PoolSetup,
  promise: PromisedPace,
  now: Instant,
): PoolPolicies {
  const { pool } = setup
  const twins = twinsOf(config, setup)
  const { outputWeight } = COST_DEFAULTS
  const known = twins === undefined ? speedOf(config, setup, outputWeight) : speedUnknown(outputWeight)
  const speed = twins === undefined ? known : { ...known, alone: twins, steps: twins }
  const ownSpeed = twins === undefined ? speedOfReplica(config, setup, speed) : learnedSpeed(twins, speed)
  return {
    pool,
    wait: waitOf(speed),
    speed: new ObservedSpeed(speed.alone, speed.steps),
    speedAlone: speed.alone,
    engineOf: ownSpeed,
    get kvTokensMax() {
      return twins?.kvTokensMax ?? speed.kvTokensMax
    },
    kvTokensMaxOf: (replica) => ownSpeed(replica).kvTokensMax,
    kvBytesPerToken: kvBytesPerTokenOf(setup),
    twins,
    makeLimit: (replica) => makeLimit(limitSpecOf(setup, ownSpeed(replica), promise, twins?.of(replica.id).ceiling)),
    readingOf: (replica) => readingOf(ownSpeed(replica)),
    isLocal: setup.isLocal,
    roundTripUs: setup.roundTripUs,
    outlook: outlookOf(setup),
    presence: new Presence(),
    work: new WorkMeter(),
    usdPerHourOf: replicaPrices(setup),
    denial: new PoolDenial(),
    demand: new Demand(),
    scaler: new PoolScaler(pool.autoscale ?? NO_AUTOSCALE, now),
    offered: new OfferedWork(),
    attainment: new Attainment(),
    reports: new LastReports(),
    shedding: new OfflineShedding(now, pool.id),
    audit: new RefusalAudit(),
  }
}

function readingOf({ alone, steps }: PoolSpeed): Reading | undefined {
  return steps && { stepTokens: steps.tokenBudget, readUs: (tokens) => alone.prefillUs(tokens, 0) }
}

function outlookOf({ backend }: PoolSetup): RegionOutlook | undefined {
  if (backend.kind !== 'peer') return undefined
  const { roundTripMs } = backend.peer
  return new RegionOutlook(roundTripMs === undefined ? undefined : msToUs(roundTripMs))
}

/** Share of a full engine's time that is useful work: steps are not always full. */
const FULL_ENGINE_RATE = 0.95

/**
 * Where step times are known, waiting work is measured in engine time; else in cost, with a rate learned from a prior.
 */
function waitOf({ alone, drainPerReplicaUs }: PoolSpeed): PredictedWait {
  if (alone.shareUs === undefined) return new PredictedWait(drainPerReplicaUs)
  return new PredictedWait(FULL_ENGINE_RATE, {
    costPerShareUs: drainPerReplicaUs,
    perReplicaUsMax: FULL_ENGINE_RATE,
  })
}

function speedOf(
  config: EngineSettings,
  { backend, kind }: PoolSetup,
  outputWeight: number,
  given?: string,
): PoolSpeed {
  if (backend.kind !== 'simulated') return speedUnknown(outputWeight)
  const profile = given ?? backend.profile
  return kind === 'chat'
    ? speedOfEngine(engineOptionsOf(config, profile), outputWeight)
    : speedOfBatches(batchOptionsOf(config, profile))
}

/** Where the GPUs of a pool differ, each replica has its own limit and memory size. */
function speedOfReplica(config: EngineSettings, setup: PoolSetup, speed: PoolSpeed): (replica: Replica) => PoolSpeed {
  if (setup.backend.kind !== 'simulated' || setup.backend.profiles === undefined) return () => speed
  const known = new Map<string | undefined, PoolSpeed>()
  return (replica) => {
    const profile = profileOf(setup, replica)
    const own = known.get(profile) ?? speedOf(config, setup, COST_DEFAULTS.outputWeight, profile)
    known.set(profile, own)
    return own
  }
}

/** Each replica by its own twin. */
function learnedSpeed(twins: Twins, speed: PoolSpeed): (replica: Replica) => PoolSpeed {
  return ({ id }) => {
    const { twin, kv } = twins.of(id)
    return { ...speed, alone: twin, steps: twin, kvTokensMax: kv.capacity?.tokensMax ?? speed.kvTokensMax }
  }
}

/**
 * Share of the promised first token for an engine behind a network. With a step's prompts alone a calm engine waits for its
 * next ones: 1.16 times as long to first tokens at p95 as without a gateway on an H200, with this share 1.0 times
 * (`bench/results/real-engine.md`). With much more, calm tenants would wait behind the prompts of one that spikes.
 */
const CALM_UNREAD_RATIO = 0.1

function limitSpecOf(
  { limit }: PoolSetup,
  { steps, itemsMax, sequencesMax: takenInMax = Number.POSITIVE_INFINITY }: PoolSpeed,
  promise: PromisedPace,
  ceiling: LearnedCeiling | undefined,
): LimitSpec {
  // What an engine gets beyond its batch waits inside it, where no bid, no share and no bound of the queue counts.
  const sequencesMax = Math.min(limit.concurrencyMax, takenInMax)
  if (limit.kind !== 'auto') return { kind: limit.kind, sequencesMax }
  // One batch runs while the next gathers; further tickets wait in the lanes, where the order is fair.
  if (itemsMax !== undefined) return { kind: 'fixed', sequencesMax: Math.min(sequencesMax, 2 * itemsMax) }
  if (steps === undefined) return { kind: 'gradient', sequencesMax }
  const options = { sequencesMax, prefillTokensMax: steps.tokenBudget }
  if (ceiling === undefined) return { kind: 'reported', model: steps, promise, options }
  const calmer = { ...options, calmUnreadRatio: CALM_UNREAD_RATIO }
  return { kind: 'reported', model: steps, promise, options: calmer, ceiling }
}
