import type { EngineWatcher } from '../backends/engine-driver.ts'
import type { Instant } from '../base/clock.ts'
import type { EngineEvent, FinishedEvent } from '../engine/engine-event.ts'
import type { EngineLimits } from '../engine/engine-state.ts'
import type { EngineView } from '../engine/engine-view.ts'
import type { SequenceSpec } from '../engine/sequence.ts'
import { Registry } from '../telemetry/registry.ts'
import {
  declareCacheInfo,
  declareCounters,
  declareGauges,
  declareSizes,
  declareSuccess,
  declareTimes,
  type Identity,
} from './engine-metric-families.ts'
import { declareSpeculation } from './engine-speculation-metrics.ts'

/**
 * An engine's metrics under the names, labels and buckets that vLLM gives them, so that routers, dashboards and
 * autoscalers made for vLLM read them as they are. All times are the engine's own: when a token was made, not when a
 * busy event loop got round to sending it.
 *
 * An engine does not say when a sequence first ran, only how many wait. Admission is first come, first served, and
 * those put back by preemption go before those who never ran: so of the ones that never ran the earliest are running
 * as soon as there are more of them than wait.
 */
export interface EngineMetricsOptions {
  readonly model: string
  readonly contextTokensMax: number
  readonly limits: EngineLimits
}

/** A sequence between its submission and its end. */
interface Live {
  readonly spec: SequenceSpec
  readonly arrivedAt: Instant
  scheduledAt: Instant | undefined
  lastTokenAt: Instant
}

export class EngineMetrics implements EngineWatcher {
  readonly #registry = new Registry()
  readonly #identity: Identity
  readonly #live = new Map<string, Live>()
  /** Those that never ran, in order of arrival. */
  readonly #unscheduled = new Map<string, Live>()
  readonly #counters: ReturnType<typeof declareCounters>
  readonly #success: ReturnType<typeof declareSuccess>
  readonly #times: ReturnType<typeof declareTimes>
  readonly #sizes: ReturnType<typeof declareSizes>
  #lastEventAt: Instant = 0
  #stepsSeen = 0
  #stepTokensSeen = 0
  #wasIdle = true

  constructor(options: EngineMetricsOptions) {
    this.#identity = [options.model, '0']
    this.#counters = declareCounters(this.#registry, this.#identity)
    this.#success = declareSuccess(this.#registry, this.#identity)
    this.#times = declareTimes(this.#registry, this.#identity)
    this.#sizes = declareSizes(this.#registry, this.#identity, options.contextTokensMax)
    declareCacheInfo(this.#registry, options.limits)
  }

  /** Gauges are read at each scrape. */
  watch(readView: () => EngineView): void {
    const gauges = declareGauges(this.#registry, this.#identity)
    const speculation = declareSpeculation(this.#registry, this.#identity, readView())
    this.#registry.beforeScrape(() => {
      const view = readView()
      gauges.running.set(view.running)
      gauges.waiting.set(view.waiting)
      gauges.kvUsage.set(view.kvUsageRatio)
      gauges.kvUsageOld.set(view.kvUsageRatio)
      this.#counters.preemptions.raiseTo(view.preemptions)
      this.#counters.prefixQueries.raiseTo(view.prefixQueries)
      this.#counters.prefixHits.raiseTo(view.prefixHits)
      this.#counters.generationTokens.raiseTo(view.generationTokens)
      speculation?.(view)
    })
  }

  text(): string {
    return this.#registry.text()
  }

  /** A request was taken: what it asked for. */
  asked(choiceCount: number, outputTokensMax: number): void {
    this.#sizes.choices.observe(choiceCount)
    this.#sizes.outputTokensMax.observe(outputTokensMax)
  }

  /** A choice has its last token. */
  finished(reason: string): void {
    this.#success[reason]?.inc()
  }

  submitted(spec: SequenceSpec, at: Instant): void {
    const live: Live = { spec, arrivedAt: at, scheduledAt: undefined, lastTokenAt: at }
    this.#live.set(spec.id, live)
    this.#unscheduled.set(spec.id, live)
  }

  /** As in vLLM, who leaves is not counted among the finished. */
  aborted(id: string): void {
    this.#live.delete(id)
    this.#unscheduled.delete(id)
    if (this.#live.size === 0) this.#wasIdle = true
  }

  advanced(now: Instant, events: readonly EngineEvent[], view: EngineView): void {
    for (const event of events) {
      const live = this.#live.get(event.id)
      if (live !== undefined) this.#take(live, event)
      this.#lastEventAt = event.at
    }
    // An idle engine begins at once. Otherwise a step has just ended: when its events say, or now.
    const boundaryAt = this.#wasIdle ? 0 : (events.at(-1)?.at ?? now)
    for (const live of this.#unscheduled.values()) {
      if (this.#unscheduled.size <= view.waiting) break
      this.#schedule(live, boundaryAt)
    }
    this.#wasIdle = this.#live.size === 0
    this.#countSteps(view)
  }

  #take(live: Live, event: EngineEvent): void {
    switch (event.kind) {
      case 'first-token':
        if (live.scheduledAt === undefined) this.#schedule(live, Math.min(this.#lastEventAt, event.at))
        this.#counters.promptTokens.inc(live.spec.promptTokens)
        this.#counters.promptTokensCached.inc(event.cachedTokens)
        this.#times.firstToken.observe(event.at - live.arrivedAt)
        break
      case 'tokens':
        this.#gap(event.at - live.lastTokenAt)
        break
      case 'finished':
        this.#lastGaps(live, event)
        this.#finish(live, event)
        break
    }
    live.lastTokenAt = event.at
  }

  #schedule(live: Live, boundaryAt: Instant): void {
    live.scheduledAt = Math.max(live.arrivedAt, boundaryAt)
    this.#unscheduled.delete(live.spec.id)
  }

  /** As in vLLM, one sample a step, however many tokens it brought. */
  #gap(us: number): void {
    this.#times.interToken.observe(us)
    this.#times.perOutputToken.observe(us)
  }

  /** A sequence that is not reported step by step brings all its gaps at the end: their mean stands for each. */
  #lastGaps(live: Live, event: FinishedEvent): void {
    for (let i = 0; i < event.tokens; i++) this.#gap((event.at - live.lastTokenAt) / event.tokens)
  }

  #finish(live: Live, event: FinishedEvent): void {
    const { usage, firstTokenAt, at } = event
    const scheduledAt = live.scheduledAt ?? live.arrivedAt
    const times = this.#times
    times.whole.observe(at - live.arrivedAt)
    times.queue.observe(scheduledAt - live.arrivedAt)
    times.prefill.observe(firstTokenAt - scheduledAt)
    times.decode.observe(at - firstTokenAt)
    times.inference.observe(at - scheduledAt)
    times.meanPerOutputToken.observe(usage.outputTokens > 1 ? (at - firstTokenAt) / (usage.outputTokens - 1) : 0)
    this.#sizes.promptTokens.observe(usage.promptTokens)
    this.#sizes.outputTokens.observe(usage.outputTokens)
    this.aborted(event.id)
  }

  #countSteps(view: EngineView): void {
    const steps = view.steps - this.#stepsSeen
    const tokens = view.promptTokens + view.generationTokens
    for (let i = 0; i < steps; i++) this.#sizes.stepTokens.observe((tokens - this.#stepTokensSeen) / steps)
    if (steps === 0) return
    this.#stepsSeen = view.steps
    this.#stepTokensSeen = tokens
  }
}
