import type { Report } from '../../../src/sim/report/report.ts'
import { mean } from '../kit/experiment.ts'
import { play } from '../kit/play.ts'
import { speedOf } from './drawn-profiles.ts'

/** One engine under the load of scenario unknown-engine-over: what it can do, and what becomes of it with each policy. */
export interface EngineUnderTrial {
  readonly name: string
  /** Name in the catalogue, or path of a file. */
  readonly profile: string
  /** How many times slower it is, in equal parts of the measured time one after the other. */
  readonly drift?: readonly number[]
}

export const FIXED_LIMITS = [32, 64, 128, 192, 256] as const

export type FixedNumber = (typeof FIXED_LIMITS)[number]

export const POLICIES = ['hidden', 'told', ...FIXED_LIMITS] as const
export type PolicyName = (typeof POLICIES)[number]

export interface Capacity {
  readonly perS: number
  /** The fixed limit that serves it. */
  readonly limit: FixedNumber
}

export interface Seen {
  /** Good answers of all that arrived. */
  readonly good: number
  /** Work of the engine, of what a full one does: where refusals hit long prompts, more answers are the same work. */
  readonly work: number
  readonly refused: number
  readonly late: number
  readonly ttftP95Ms: number
  readonly waitP95Ms: number
}

/** Tokens of an ordinary request of the scenario. */
const ORDINARY = { promptTokens: 1_160, outputTokens: 220 }
const WARMUP_S = 10
/** Measured: so many requests at capacity, within these seconds. */
const REQUESTS = 1_200
const MEASURED_S = { min: 20, max: 900 }
/** In time, of all, at a rate that counts as within capacity. */
const CAPACITY_RATIO = 0.99
const BRACKET = { factor: 1.25, stepsMax: 12, halvings: 3 }

export class EngineTrial {
  readonly #engine: EngineUnderTrial
  readonly #guessPerS: number
  readonly #slo: Readonly<Record<'ttftMs' | 'interTokenMs' | 'totalMs', number>>
  readonly #measuredS: number
  #runs = 0

  constructor(engine: EngineUnderTrial, shorter = 1) {
    this.#engine = engine
    const { alone } = speedOf(engine.profile)
    this.#guessPerS = 1e6 / (alone.shareUs?.(ORDINARY.promptTokens, ORDINARY.outputTokens) ?? 1e5)
    this.#slo = promiseFor(alone)
    const wantedS = Math.round((REQUESTS * shorter) / this.#guessPerS)
    this.#measuredS = Math.max(MEASURED_S.min * shorter, Math.min(MEASURED_S.max * shorter, wantedS))
  }

  get runs(): number {
    return this.#runs
  }

  get promise(): string {
    return `${this.#slo.ttftMs} / ${this.#slo.interTokenMs}`
  }

  /** The highest rate that some fixed limit serves in time: up or down by a quarter until it turns, then by halves. */
  async capacity(seeds: readonly number[]): Promise<Capacity> {
    let best: Capacity = { perS: 0, limit: FIXED_LIMITS[2] }
    const isServed = async (perS: number): Promise<boolean> => {
      const limits = [best.limit, ...FIXED_LIMITS.filter((limit) => limit !== best.limit)]
      for (const limit of limits) {
        const { good } = await this.seen(limit, perS, seeds, { isSteady: true })
        if (good < CAPACITY_RATIO) continue
        best = { perS, limit }
        return true
      }
      return false
    }
    const { factor, stepsMax, halvings } = BRACKET
    let perS = this.#guessPerS
    const isUp = await isServed(perS)
    for (let i = 0; i < stepsMax; i++) {
      perS *= isUp ? factor : 1 / factor
      if ((await isServed(perS)) !== isUp) break
    }
    let [low, high] = isUp ? [perS / factor, perS] : [perS, perS * factor]
    for (let i = 0; i < halvings; i++) {
      const middle = Math.sqrt(low * high)
      if (await isServed(middle)) low = middle
      else high = middle
    }
    return best
  }

  /** Means over the seeds. */
  async seen(
    policy: PolicyName,
    perS: number,
    seeds: readonly number[],
    { isSteady = false }: { readonly isSteady?: boolean } = {},
  ): Promise<Seen> {
    const all: Report[] = []
    for (const seed of seeds) {
      this.#runs++
      all.push(await play({ scenario: 'unknown-engine-over', seed, set: this.#paths(policy, perS, isSteady) }))
    }
    const over = (pick: (report: Report) => number): number => mean(all.map(pick))
    return {
      good: over(({ goodput }) => goodput.ratio),
      work: over(({ engine }) => engine.utilisation),
      refused: over(({ requests }) => requests.shed),
      late: over(({ late }) => late),
      ttftP95Ms: over(({ latency }) => latency.ttft.p95 ?? 0),
      waitP95Ms: over(({ latency }) => latency.wait.p95 ?? 0),
    }
  }

  #paths(policy: PolicyName, perS: number, isSteady: boolean): Record<string, unknown> {
    const { drift, profile } = this.#engine
    const partS = this.#measuredS / (drift?.length ?? 1)
    const faults = drift?.map((factor, i) => ({
      kind: 'replica-slow',
      target: POOL_ID,
      // The warm-up is as the first part.
      atS: i === 0 ? 0 : WARMUP_S + i * partS,
      forS: i === 0 ? WARMUP_S + partS : partS,
      factor,
    }))
    return {
      load: 1,
      warmupS: WARMUP_S,
      durationS: WARMUP_S + this.#measuredS,
      'workload.0.arrivals.ratePerS': perS,
      'platform.slos.0': { name: 'people', ...this.#slo },
      'platform.pools.0.backend': { kind: 'simulated', profile, hidden: policy === 'hidden' },
      ...(typeof policy === 'number' && { 'platform.pools.0.limit': { kind: 'fixed', concurrencyMax: policy } }),
      ...(faults !== undefined && !isSteady && { faults }),
      variants: {},
      expect: [],
    }
  }
}

const POOL_ID = 'engine'

/** The scenario's promise, or what an engine can keep that is slower: twenty prompts read, three steps alone a token. */
function promiseFor(alone: ReturnType<typeof speedOf>['alone']): Record<'ttftMs' | 'interTokenMs' | 'totalMs', number> {
  const ttftMs = Math.max(1_000, Math.round(alone.prefillUs(1_000, 0) / 50))
  const interTokenMs = Math.max(60, Math.round((3 * alone.tokenUs(1_500)) / 1_000))
  return { ttftMs, interTokenMs, totalMs: ttftMs + 650 * interTokenMs }
}
