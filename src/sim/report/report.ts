import type { Instant } from '../../base/clock.ts'
import type { EngineView } from '../../engine/engine-view.ts'
import type { Violation } from '../laws.ts'
import type { GatewaysView } from '../sharing/gateways-view.ts'
import type { ScalingView } from '../simulated-scaling.ts'
import type { Collector } from './collector.ts'
import type { CostStatement } from './cost-tally.ts'
import type { AnswersView, RetrievalView } from './retrieval-tally.ts'
import type { ReturnsView } from './returns-tally.ts'
import type { RolloutReport } from './rollout-tally.ts'
import type { ScreensView } from './screen-tally.ts'
import type { StatsView } from './stats.ts'
import type { SheetView } from './stats-sheet.ts'
import type { WindowView } from './windows.ts'

/**
 * The report as one object: the same for a simulated and a live run. Times are in milliseconds, rates per second, money
 * in US dollars.
 */
export interface Report extends SheetView {
  readonly scenario: string
  readonly seed: number
  readonly durationS: number
  readonly tenants: Readonly<Record<string, TenantView>>
  readonly fairness: FairnessView
  readonly engine: EngineUse & PrefixUse
  /** The engines of each pool. */
  readonly pools: Readonly<Record<string, EngineUse>>
  /** The scenario's parts. */
  readonly parts: Readonly<Record<string, PartView>>
  readonly prediction: {
    readonly coverage: number | undefined
    readonly falseAdmit: number
    readonly falseReject: number
    readonly rightReject: number
  }
  /** Seconds below the full rung, summed over tenants. */
  readonly ladder: { readonly timeOnRung: Readonly<Record<string, number>>; readonly changes: number }
  readonly cost: {
    readonly perHour: number
    readonly perMillionTokens: number | undefined
    /** By weighted tokens. */
    readonly perTenant: Readonly<Record<string, number>>
    /** By engine time: what the replicas' closed seconds cost whom. */
    readonly statement: CostStatement
  }
  /** By model; empty where no release was tried. */
  readonly rollouts: Readonly<Record<string, RolloutReport>>
  /** Outcomes of retrievals, and of the answer cache where tenants use it. */
  readonly retrieval: RetrievalView
  readonly answers: AnswersView
  readonly screens: ScreensView
  readonly returns: ReturnsView
  readonly queuedMax: number
  readonly faults: number
  readonly windows: readonly WindowView[]
  /** Where several gateways share the fleet. */
  readonly gateways?: GatewaysView
  /** Pools that were scaled: hours, money and orders. */
  readonly scaling?: Readonly<Record<string, ScalingView>>
  readonly laws: readonly Violation[]
  readonly wall: { readonly seconds: number; readonly speedup: number; readonly requestsPerS: number }
}

export interface TenantView extends StatsView {
  readonly weight: number
  readonly backloggedRatio: number
  /** Tickets shed before any ticket of the tenant was served on a lower rung. */
  readonly shedInFull: number
}

/** Tickets that arrived in a part, and what the engines and the ladder did in it. */
export interface PartView extends SheetView {
  /** Share of the part that was run: below 1 the run ended inside the part. */
  readonly ranRatio: number
  readonly engine: EngineUse
  readonly pools: Readonly<Record<string, EngineUse>>
  readonly rungChanges: number
  readonly retrieval: RetrievalView
  readonly answers: AnswersView
  readonly screens: ScreensView
}

export interface FairnessView {
  /** Jain's index of served cost per weight, over tenants that were backlogged nearly all the time. */
  readonly jain: number | undefined
  readonly backloggedTenants: number
  /** Largest deviation of a backlogged tenant's share from its weighted share. */
  readonly shareErrorMax: number | undefined
  /** Largest difference of served cost per unit of weight between two backlogged tenants. */
  readonly maxServiceDifference: number | undefined
  /** Most ÷ least served cost per weight, over all tenants that sent a request, backlogged or not. */
  readonly servedSpread: number | undefined
  /** Completions of the backlogged tenant with the fewest: with few completions a share says little. */
  readonly completedMin: number | undefined
}

export interface EngineUse {
  /** Share of the time in which a step ran: near 1 as soon as anything runs all the time. */
  readonly busy: number
  /** Work done as a share of what full engines would have done in the time (`engine/full-work.ts`). */
  readonly utilisation: number
  readonly kv: number
  readonly preemptions: number
  readonly prefixHitRatio: number | undefined
  readonly stepMs: number | undefined
  readonly steps: number
}

/** Figures of the prompts that name their blocks. */
export interface PrefixUse {
  /** What one unbounded cache for all replicas would have found. */
  readonly prefixBestRatio: number | undefined
  /** Share of that which was found. */
  readonly prefixHitOfBest: number | undefined
}

/** All engines together, and those of each pool. */
export interface EnginesUse {
  readonly engine: EngineUse
  readonly pools: Readonly<Record<string, EngineUse>>
}

export interface ReportFacts {
  readonly scenario: string
  readonly seed: number
  readonly endAt: Instant
  readonly engines: EnginesUse
  readonly prefixBestRatio?: number | undefined
  /** By the names of the collector's parts. */
  readonly engineParts: ReadonlyMap<string, EnginesUse>
  readonly usdPerHour: number
  readonly laws: readonly Violation[]
  readonly gateways?: GatewaysView
  readonly scaling?: Readonly<Record<string, ScalingView>> | undefined
  readonly wallSeconds: number
}

/** A tenant with a queue for this share of the time is compared with its share. */
const BACKLOGGED_RATIO = 0.99

export function makeReport(collector: Collector, facts: ReportFacts): Report {
  const { tenants, warmUntil, startAt } = collector.options
  const durationS = Math.max(1e-6, (facts.endAt - warmUntil) / 1_000_000)
  const everybody = collector.whole.view(durationS)
  const byTenant: Record<string, TenantView> = {}
  for (const [id, stats] of Object.entries(everybody.tenants)) {
    const backloggedRatio = collector.backloggedRatio(id, facts.endAt)
    const weight = tenants.get(id)?.weight ?? 1
    byTenant[id] = { ...stats, weight, backloggedRatio, shedInFull: collector.shedInFull(id) }
  }
  const { observed, falseAdmits, falseRejects, rightRejects } = collector.prediction
  const tokens = everybody.tokens.prompt + everybody.tokens.output
  const usd = (facts.usdPerHour * durationS) / 3_600
  const simulatedS = (facts.endAt - startAt) / 1_000_000
  return {
    scenario: facts.scenario,
    seed: facts.seed,
    durationS,
    ...everybody,
    tenants: byTenant,
    fairness: fairnessOf(Object.values(byTenant)),
    ...facts.engines,
    engine: { ...facts.engines.engine, ...prefixUse(facts) },
    parts: partsOf(collector, facts),
    prediction: {
      coverage: observed === 0 ? undefined : 1 - falseAdmits / observed,
      falseAdmit: falseAdmits,
      falseReject: falseRejects,
      rightReject: rightRejects,
    },
    ladder: { timeOnRung: collector.timeOnRung(facts.endAt), changes: collector.rungChanges },
    cost: {
      perHour: facts.usdPerHour,
      perMillionTokens: tokens === 0 ? undefined : (usd / tokens) * 1_000_000,
      perTenant: Object.fromEntries(
        Object.entries(byTenant).map(([id, stats]) => [
          id,
          everybody.served === 0 ? 0 : (usd * stats.served) / everybody.served,
        ]),
      ),
      statement: collector.costs.view(),
    },
    rollouts: collector.rollouts.view(startAt),
    retrieval: collector.retrieval.retrieval,
    answers: collector.retrieval.answers,
    screens: collector.screens.view,
    returns: collector.returns.view,
    queuedMax: collector.queuedMax,
    faults: collector.faults,
    windows: collector.windows.view(),
    ...(facts.gateways && { gateways: facts.gateways }),
    ...(facts.scaling && { scaling: facts.scaling }),
    laws: facts.laws,
    wall: {
      seconds: facts.wallSeconds,
      speedup: simulatedS / Math.max(1e-6, facts.wallSeconds),
      requestsPerS: everybody.requests.arrived / Math.max(1e-6, facts.wallSeconds),
    },
  }
}

function prefixUse({ engines, prefixBestRatio }: ReportFacts): PrefixUse {
  const { prefixHitRatio } = engines.engine
  const isKnown = prefixHitRatio !== undefined && prefixBestRatio !== undefined && prefixBestRatio > 0
  return { prefixBestRatio, prefixHitOfBest: isKnown ? prefixHitRatio / prefixBestRatio : undefined }
}

function partsOf(collector: Collector, { engineParts, endAt }: ReportFacts): Record<string, PartView> {
  const views: Record<string, PartView> = {}
  for (const [name, { fromAt, toAt, sheet, retrieval: tally, screens, rungChanges }] of collector.parts) {
    const engines = engineParts.get(name) ?? { engine: NO_USE, pools: {} }
    const ranRatio = Math.max(0, Math.min(endAt, toAt) - fromAt) / Math.max(1, toAt - fromAt)
    views[name] = {
      ranRatio,
      ...sheet.view((toAt - fromAt) / 1_000_000),
      ...engines,
      rungChanges,
      retrieval: tally.retrieval,
      answers: tally.answers,
      screens: screens.view,
    }
  }
  return views
}

/** Figures of engines that were not read. */
const NO_USE: EngineUse = {
  busy: 0,
  utilisation: 0,
  kv: 0,
  preemptions: 0,
  prefixHitRatio: undefined,
  stepMs: undefined,
  steps: 0,
}

function fairnessOf(tenants: readonly TenantView[]): FairnessView {
  const servedSpread = spreadOf(tenants)
  const pressed = tenants.filter((tenant) => tenant.backloggedRatio >= BACKLOGGED_RATIO)
  if (pressed.length < 2) {
    return {
      jain: undefined,
      backloggedTenants: pressed.length,
      shareErrorMax: undefined,
      maxServiceDifference: undefined,
      servedSpread,
      completedMin: undefined,
    }
  }
  const rates = pressed.map(({ served, weight }) => served / weight)
  const sum = rates.reduce((total, rate) => total + rate, 0)
  const squares = rates.reduce((total, rate) => total + rate * rate, 0)
  const served = pressed.reduce((total, tenant) => total + tenant.served, 0)
  const weights = pressed.reduce((total, tenant) => total + tenant.weight, 0)
  const errors = pressed.map((tenant) => Math.abs(tenant.served / served / (tenant.weight / weights) - 1))
  return {
    jain: (sum * sum) / (rates.length * squares),
    backloggedTenants: pressed.length,
    shareErrorMax: Math.max(...errors),
    maxServiceDifference: Math.max(...rates) - Math.min(...rates),
    servedSpread,
    completedMin: Math.min(...pressed.map(({ requests }) => requests.completed)),
  }
}

function spreadOf(tenants: readonly TenantView[]): number | undefined {
  const rates = tenants.map(({ served, weight }) => served / weight)
  const least = Math.min(...rates)
  return least > 0 ? Math.max(...rates) / least : undefined
}

/** The engines at one instant, by pool; those that crashed before are included. */
export type EngineLook = ReadonlyMap<string, PoolLook>

export interface PoolLook {
  readonly replicaCount: number
  readonly views: readonly EngineView[]
  /** What full engines would have needed for all the work so far. */
  readonly fullWorkUs: number
  /** Engines of it that are an earlier pool's, too: all pools together have them once. */
  readonly again?: readonly PoolLook[]
}

/** What the engines did between two readings. */
export function enginesUse(before: EngineLook, after: EngineLook, durationUs: number): EnginesUse {
  const pools: Record<string, EngineUse> = {}
  for (const [poolId, look] of after) pools[poolId] = engineUse(before.get(poolId) ?? NO_LOOK, look, durationUs)
  return { engine: engineUse(together(before), together(after), durationUs), pools }
}

const NO_LOOK: PoolLook = { replicaCount: 0, views: [], fullWorkUs: 0 }

function together(look: EngineLook): PoolLook {
  const pools = [...look.values()]
  const again = pools.flatMap((pool) => pool.again ?? [])
  const counted = new Set(again.flatMap(({ views }) => views))
  const sum = (of: (pool: PoolLook) => number): number =>
    pools.reduce((total, pool) => total + of(pool), 0) - again.reduce((total, pool) => total + of(pool), 0)
  return {
    replicaCount: sum(({ replicaCount }) => replicaCount),
    views: pools.flatMap(({ views }) => views.filter((view) => !counted.has(view))),
    fullWorkUs: sum(({ fullWorkUs }) => fullWorkUs),
  }
}

function engineUse(first: PoolLook, last: PoolLook, durationUs: number): EngineUse {
  const { views: before } = first
  const { views: after } = last
  const replicaUs = Math.max(1, durationUs * last.replicaCount)
  const sum = (views: readonly EngineView[], of: (view: EngineView) => number): number =>
    views.reduce((total, view) => total + of(view), 0)
  const grown = (of: (view: EngineView) => number): number => sum(after, of) - sum(before, of)
  const steps = grown((view) => view.steps)
  const queries = grown((view) => view.prefixQueries)
  return {
    busy: grown((view) => view.busyUs) / replicaUs,
    utilisation: (last.fullWorkUs - first.fullWorkUs) / replicaUs,
    kv: after.length === 0 ? 0 : sum(after, (view) => view.kvUsageRatio) / after.length,
    preemptions: grown((view) => view.preemptions),
    prefixHitRatio: queries === 0 ? undefined : grown((view) => view.prefixHits) / queries,
    stepMs: steps === 0 ? undefined : grown((view) => view.busyUs) / steps / 1_000,
    steps,
  }
}
