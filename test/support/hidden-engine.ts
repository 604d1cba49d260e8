import { engineOptionsOf } from '../../src/assembly/engine-options.ts'
import type { Instant } from '../../src/base/clock.ts'
import { Rng } from '../../src/base/rng.ts'
import { Timers } from '../../src/base/timers.ts'
import type { EngineSpeed } from '../../src/domain/engine-speed.ts'
import type { Estimate } from '../../src/domain/plan.ts'
import { Engine, type EngineOptions } from '../../src/engine/engine.ts'
import type { EngineEvent } from '../../src/engine/engine-event.ts'
import { gpuProfileNames } from '../../src/engine/gpu-profiles.ts'
import { speedOfEngine } from '../../src/engine/pool-speed.ts'
import { Lesson } from '../../src/lifecycle/learning/lesson.ts'
import { Ledger, prefillTokensOf } from '../../src/policy/limits/ledger.ts'
import { COST_DEFAULTS } from '../../src/policy/planning/cost.ts'
import type { EngineTwin } from '../../src/policy/twin/engine-twin.ts'
import { type Steps, timesUnderLoad } from '../../src/policy/twin/times-under-load.ts'
import { priorOf, type TwinPrior } from '../../src/policy/twin/twin-prior.ts'
import { Twins } from '../../src/policy/twin/twins.ts'
import { makeEstimate } from './demand.ts'

/**
 * A simulated engine whose profile the gateway does not know, and as much of a gateway as teaches a twin: a ledger, and
 * a lesson for each attempt. What the twin would have said before each answer is kept beside what came.
 *
 * The number in flight goes up and down: a new aim every few seconds, and random arrivals until it is reached.
 */
const SETTINGS = {
  engine: {
    batching: 'continuous' as const,
    batchSizeMax: 256,
    batchTimeoutMs: 5,
    listenHost: '127.0.0.1',
    listenPort: 0,
  },
  seed: 1,
}

export const hiddenOptions = (profile: string, slowdown = 1): EngineOptions =>
  engineOptionsOf(SETTINGS, profile, { slowdown })

/** What a gateway knows that is told the profile. */
export function toldSpeed(name: string): Asked {
  const { alone, steps } = speedOfEngine(hiddenOptions(name), COST_DEFAULTS.outputWeight)
  return { ...alone, ...steps! }
}

export function priorNamed(name: string): TwinPrior {
  const told = toldSpeed(name)
  return priorOf(name, { alone: told, steps: told })
}

/** As an engine behind a URL gets them: every built-in profile but `without`, and a slow one to begin with. */
export function makeTwins(without?: string): Twins {
  const priors = gpuProfileNames()
    .filter((name) => name !== without)
    .map(priorNamed)
  const prior = priors.find(({ name }) => name === 'a100-llama-8b') ?? priors[0]!
  return new Twins({ priors, prior, sequencesMax: 256 })
}

export interface LoopOptions {
  readonly engine: EngineOptions
  readonly twins: Twins
  readonly seed: number
  /** Tokens that the engine gathers before it sends them; the first comes at once. */
  readonly frameTokens?: number
  readonly sequencesMax?: number
  /** Part of the answers that come ten times as slowly, for no reason of the engine's. */
  readonly outlierRatio?: number
  readonly promptTokensMax?: number
  /** Whose predictions are held against what comes; the twin's unless told. */
  readonly asked?: Asked
}

type Asked = EngineSpeed & Steps

/** What was expected, and what came. */
export interface Held {
  readonly at: Instant
  readonly expectedUs: number
  readonly tookUs: number
}

/** Median of the relative errors since `from`. */
export function medianError(held: readonly Held[], from: Instant): number {
  const errors = held
    .filter(({ at }) => at >= from)
    .map(({ expectedUs, tookUs }) => Math.abs(expectedUs / tookUs - 1))
    .sort((a, b) => a - b)
  return errors.length === 0 ? Number.NaN : errors[errors.length >> 1]!
}

const REPLICA = 'r1'
const OUTPUT_TOKENS = { predicted: 200, min: 20, max: 380 }
const AIM_EVERY_US = 3_000_000
const STRAY_FACTOR = 10

const memoryOf = ({ limits }: EngineOptions): number => limits.blockCount * limits.blockTokens

class Answer {
  readonly estimate: Estimate
  readonly lesson: Lesson
  readonly grantedAt: Instant
  readonly expectedUs: number
  readonly isStray: boolean
  tokens = 0
  unsent = 0
  firstAt: Instant | undefined
  lastAt: Instant = 0
  sums = { sequenceUs: 0, contextTokenUs: 0, readTokens: 0 }

  constructor(facts: Pick<Answer, 'estimate' | 'lesson' | 'grantedAt' | 'expectedUs' | 'isStray'>) {
    this.estimate = facts.estimate
    this.lesson = facts.lesson
    this.grantedAt = facts.grantedAt
    this.expectedUs = facts.expectedUs
    this.isStray = facts.isStray
  }
}

export class HiddenEngine {
  readonly firstTokens: Held[] = []
  readonly tokens: Held[] = []
  readonly #options: Required<Omit<LoopOptions, 'asked'>>
  readonly #asked: Asked | undefined
  readonly #rng: Rng
  readonly #ledger = new Ledger()
  readonly #timers = new Timers()
  readonly #answers = new Map<string, Answer>()
  #engine: Engine
  #engineFrom = 0
  #kvTokensMax: number
  #now: Instant = 0
  #count = 0
  #aim = 1
  #aimUntil: Instant = 0
  #sums = { sequenceUs: 0, contextTokenUs: 0 }

  constructor(options: LoopOptions) {
    this.#options = { frameTokens: 1, sequencesMax: 64, outlierRatio: 0, promptTokensMax: 3_000, ...options }
    this.#asked = options.asked
    this.#rng = Rng.stream(options.seed, 'hidden-engine')
    this.#engine = new Engine(options.engine)
    this.#kvTokensMax = memoryOf(options.engine)
    this.#timers.add(0, () => this.#arrive())
  }

  get now(): Instant {
    return this.#now
  }

  get twin(): EngineTwin {
    return this.#options.twins.of(REPLICA).twin
  }

  /** Another engine from here on, as after a restart: what ran is lost. */
  replace(engine: EngineOptions): void {
    this.#engine = new Engine(engine)
    this.#kvTokensMax = memoryOf(engine)
    this.#engineFrom = this.#count
    for (const [id, answer] of this.#answers) this.#end(id, answer)
  }

  run(seconds: number): void {
    const until = this.#now + seconds * 1e6
    for (;;) {
      const at = Math.min(this.#timers.nextAt() ?? until, this.#engine.nextEventAt() ?? until)
      if (at >= until) break
      this.#moveTo(at)
      for (const event of this.#engine.advance(at)) this.#deliver(event)
      this.#timers.takeDue(at)?.()
    }
    this.#moveTo(until)
  }

  #moveTo(at: Instant): void {
    const elapsedUs = at - this.#now
    this.#sums.sequenceUs += this.#ledger.sequences * elapsedUs
    this.#sums.contextTokenUs += this.#ledger.contextTokens * elapsedUs
    this.#now = at
  }

  #arrive(): void {
    const { sequencesMax } = this.#options
    if (this.#now >= this.#aimUntil) {
      this.#aim = 1 + this.#rng.below(sequencesMax)
      this.#aimUntil = this.#now + AIM_EVERY_US
    }
    const { sequences, prefillTokens, kvTokens } = this.#ledger
    // As a gateway that knows the memory: beyond it sequences would wait inside the engine, which no step time explains.
    const hasMemory = kvTokens + this.#options.promptTokensMax + OUTPUT_TOKENS.max <= this.#kvTokensMax
    const isOpen = sequences < this.#aim && prefillTokens < this.twin.tokenBudget
    if (isOpen && hasMemory) this.#submit()
    // A burst that fills the room within a second or so, and then one arrival for each that ends.
    this.#timers.add(this.#now + 1 + this.#rng.below(60_000), () => this.#arrive())
  }

  #submit(): void {
    const { twins, outlierRatio, promptTokensMax } = this.#options
    const now = this.#now
    const promptTokens = 16 + this.#rng.below(promptTokensMax)
    const outputTokens = OUTPUT_TOKENS.min + this.#rng.below(OUTPUT_TOKENS.max - OUTPUT_TOKENS.min)
    const estimate = makeEstimate(promptTokens, OUTPUT_TOKENS.predicted, { outputTokensHigh: OUTPUT_TOKENS.max })
    const id = `n${this.#count++}`
    this.#ledger.hold(estimate)
    const asked = this.#asked ?? this.twin
    const own = { promptTokens, cachedTokens: 0, plannedTokens: prefillTokensOf(estimate) }
    const expectedUs = timesUnderLoad(asked, asked, this.#ledger, own).ttftUs
    const lesson = new Lesson(now, { twins, replicaId: REPLICA, estimate, load: this.#ledger })
    const isStray = this.#rng.next() < outlierRatio
    this.#answers.set(id, new Answer({ estimate, lesson, grantedAt: now, expectedUs, isStray }))
    this.#engine.submit(now, { id, promptTokens, outputTokens, reports: 'every-step' })
  }

  /** The engine has made tokens; the gateway hears of them in frames, and of strays' much later. */
  #deliver(event: EngineEvent): void {
    const answer = this.#answers.get(event.id)
    if (answer === undefined || Number(event.id.slice(1)) < this.#engineFrom) return
    answer.unsent += event.kind === 'first-token' ? 1 : event.tokens
    const isDue = event.kind !== 'tokens' || answer.unsent >= this.#options.frameTokens
    if (!isDue) return
    const tokens = answer.unsent
    answer.unsent = 0
    const factor = answer.isStray ? STRAY_FACTOR : 1
    const heardAt = answer.grantedAt + (event.at - answer.grantedAt) * factor
    const hear = (): void => this.#hear(event.id, answer, tokens, event.kind === 'finished')
    if (heardAt <= this.#now) hear()
    else this.#timers.add(heardAt, hear)
  }

  #hear(id: string, answer: Answer, tokens: number, isLast: boolean): void {
    if (!this.#answers.has(id)) return
    const now = this.#now
    if (tokens > 0) answer.lastAt = now
    answer.tokens += tokens
    if (answer.firstAt === undefined) this.#begin(now, answer)
    else answer.lesson.grown(now, answer.tokens)
    if (!isLast) return
    if (!answer.isStray) this.#holdTokens(answer)
    this.#end(id, answer)
  }

  #begin(now: Instant, answer: Answer): void {
    answer.firstAt = now
    this.#ledger.begin(answer.estimate)
    answer.lesson.begun(now, answer.tokens, answer.expectedUs)
    answer.sums = { ...this.#sums, readTokens: this.#ledger.readTokens }
    const tookUs = now - answer.grantedAt
    if (!answer.isStray) this.firstTokens.push({ at: now, expectedUs: answer.expectedUs, tookUs })
  }

  /** What the twin says of the load that the answer really had, before it has heard of the answer's end. */
  #holdTokens({ tokens, firstAt, lastAt, sums }: Answer): void {
    const lastedUs = lastAt - (firstAt ?? lastAt)
    if (tokens < 2 || lastedUs <= 0) return
    const expectedUs = (this.#asked ?? this.twin).meanTokenUs(
      (this.#sums.sequenceUs - sums.sequenceUs) / lastedUs,
      (this.#sums.contextTokenUs - sums.contextTokenUs) / lastedUs,
      (this.#ledger.readTokens - sums.readTokens) / (tokens - 1),
    )
    this.tokens.push({ at: lastAt, expectedUs, tookUs: lastedUs / (tokens - 1) })
  }

  #end(id: string, answer: Answer): void {
    this.#answers.delete(id)
    if (answer.firstAt === undefined) this.#ledger.begin(answer.estimate)
    this.#ledger.drop(answer.estimate, 0)
    answer.lesson.over(this.#now, answer.firstAt === undefined ? undefined : answer.lastAt, answer.tokens)
  }
}
