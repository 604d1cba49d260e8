import { type Clock, secondsToUs } from '../base/clock.ts'
import { toTenants } from '../config/to-domain.ts'
import { COST_DEFAULTS } from '../policy/planning/cost.ts'
import { Collector } from '../sim/report/collector.ts'
import { makeReport, type Report } from '../sim/report/report.ts'
import { Tally } from '../sim/report/tally.ts'
import { type CheckedExpectation, checkExpectations } from '../sim/scenario/expectations.ts'
import type { Expectation, Scenario } from '../sim/scenario/scenario.ts'
import { callersOf, configOf, partsOf, streamsOf } from '../sim/scenario/scenario-config.ts'
import type { TraceRequest } from '../sim/traces/trace.ts'
import { checkTarget, keyRing, parseUrl } from './http-bench-target.ts'
import { type LoadEnd, type LoadState, runLoad } from './live-load.ts'

/**
 * A scenario's clients against a live server, Spillway or any other with OpenAI's API, with the collector and the
 * report of a simulated run. The scenario's platform part only names the tenants and their promises; the server keeps
 * its own settings.
 */
export interface BenchOptions {
  readonly scenario: Scenario
  /** Recorded workload to play instead of the scenario's own. */
  readonly trace?: Iterable<TraceRequest>
  readonly url: string
  /** As given with --key. */
  readonly keys: readonly string[]
  /** The server's name for every model of the scenario; undefined for the scenario's own names, or the server's only one. */
  readonly model: string | undefined
  readonly durationS: number
  readonly scale: number
  readonly seed: number
  readonly requestsMax: number
  readonly inFlightMax: number
  readonly ignoresEos: boolean
  /** Called once, before the first request. */
  readonly onStart: (tenants: number) => void
  readonly onTick: (state: LoadState, tally: Tally) => void
  /** Real time if absent; a slower clock slows the clients as well. */
  readonly clock?: Clock
  /** Resolves when the user stops the run. */
  readonly stop?: Promise<unknown>
}

export interface Benched {
  readonly report: Report
  readonly expectations: readonly CheckedExpectation[]
  readonly lagMs: LoadEnd['lagMs']
}

/** Longest wait for the last answers. */
const GRACE_S = 60
const WINDOW_S = 5

/** Figures that a client cannot see of a server. */
const UNSEEN = { busy: 0, utilisation: 0, kv: 0, preemptions: 0, stepMs: undefined, steps: 0 } as const

export async function bench(options: BenchOptions): Promise<Benched> {
  const { scenario, durationS } = options
  const url = parseUrl(options.url)
  const { config, groupOf } = configOf(scenario, options.seed)
  // A trace may name tenants without a stream in the scenario.
  const streams =
    options.trace === undefined
      ? streamsOf(scenario, { config, groupOf })
      : callersOf(config, groupOf).map((caller) => ({ name: caller.tenant.id, caller, spec: scenario.workload[0]! }))
  const tenantIds = [...new Set(streams.map(({ caller }) => caller.tenant.id))]
  const key = keyRing(options.keys, [...new Set([...tenantIds, ...groupOf.values()])], url)
  const keyOf = (tenantId: string): string | undefined => key(tenantId, groupOf.get(tenantId))
  const modelOf = await checkTarget(url, {
    keys: new Map(tenantIds.map((id) => [keyOf(id), id])),
    models: [...new Set(streams.map(({ spec }) => spec.model))],
    model: options.model,
  })
  options.onStart(tenantIds.length)

  const collector = new Collector({
    tenants: new Map(toTenants(config).map((tenant) => [tenant.id, tenant])),
    startAt: 0,
    // A shortened run keeps the proportion of its warm-up.
    warmUntil: secondsToUs((scenario.warmupS ?? 0) * Math.min(1, durationS / scenario.durationS)),
    windowUs: secondsToUs(scenario.windowS ?? WINDOW_S),
    outputWeight: COST_DEFAULTS.outputWeight,
    parts: partsOf(scenario),
  })
  const tally = new Tally()
  const end = await runLoad({
    ...options,
    scale: options.scale * (scenario.load ?? 1),
    url,
    streams,
    keyOf,
    modelOf,
    graceS: GRACE_S,
    take: (entry) => {
      collector.take(entry)
      tally.take(entry)
    },
    onTick: (state) => options.onTick(state, tally),
  })
  const { prompt, cached } = collector.whole.everybody.view(1).tokens
  const report = makeReport(collector, {
    scenario: scenario.name,
    seed: options.seed,
    endAt: end.endAt,
    engines: { engine: { ...UNSEEN, prefixHitRatio: prompt === 0 ? undefined : cached / prompt }, pools: {} },
    engineParts: new Map(),
    usdPerHour: 0,
    laws: [],
    wallSeconds: end.endAt / 1_000_000,
  })
  const expectations = (scenario.expect ?? []).filter(isAboutOneRun)
  return { report, expectations: checkExpectations(expectations, report, {}), lagMs: end.lagMs }
}

/** A live run has no variants to compare with. */
const isAboutOneRun = ({ atMostTimes, atLeastTimes, of }: Expectation): boolean =>
  atMostTimes === undefined && atLeastTimes === undefined && (of === undefined || of === '*')
