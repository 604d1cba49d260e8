import { Rng } from '../../src/base/rng.ts'
import type { Estimate } from '../../src/domain/plan.ts'
import type { Key, Tenant } from '../../src/domain/tenant.ts'
import { DISPATCHER_DEFAULTS } from '../../src/policy/dispatch/dispatch-options.ts'
import { Dispatcher } from '../../src/policy/dispatch/dispatcher.ts'
import type { Effect, Measured } from '../../src/policy/dispatch/offer.ts'
import type { FairnessName } from '../../src/policy/fairness/fairness.ts'
import { FixedLimit } from '../../src/policy/limits/fixed.ts'
import { drawTokens } from '../../src/sim/clients/draw.ts'
import { type LengthName, lengthsOf, MEAN_TOKENS } from './answer-lengths.ts'
import { makeKey, makeTenant } from './demand.ts'

/**
 * A batching engine in a page, behind the real dispatcher, for the experiment of the VTC paper (OSDI 2024, section
 * 5): tenants that all send more than their share, prompts and answers of 256 tokens on average. It measures the
 * service that each tenant has received, token by token: 1 for a prompt token, 2 for an output token, as in the paper.
 */
export interface GapOptions {
  readonly fairness: FairnessName
  /** What the scheduler is told about an answer's length before it runs. */
  readonly knows: 'true-length' | 'history'
  readonly tenantCount: number
  readonly lengths: LengthName
  readonly seed: number
  readonly seconds?: number
  /** Sequences at once; 19 unless told: the paper's A10G holds 10,000 KV tokens, 19 requests of 512. */
  readonly slots?: number
  /** How far ahead an answer is charged that has passed its prediction; the dispatcher's default unless told. */
  readonly overrunRatio?: number
  /** How far ahead a turn is charged; the dispatcher's default unless told, Infinity for the whole prediction. */
  readonly aheadTurns?: number
}

export interface GapResult {
  /** The largest difference of accumulated service between two tenants, at any instant after the warm-up. */
  readonly gap: number
  /** The same at the end. */
  readonly finalGap: number
  /** Total service per second: what fairness costs. */
  readonly serviceRate: number
}

const PROMPT_TOKENS = 256
const OUTPUT_TOKENS = MEAN_TOKENS
const OUTPUT_COST = 2
const SLOTS = 19
/** Requests of a tenant that wait at most: admission lets no queue grow for minutes, and predictions with it. */
const DEPTH_MAX = 32
const STEP_US = 20_000
const STEP_PER_SEQUENCE_US = 200
const PREFILL_US_PER_TOKEN = 50
/** Until everybody has a backlog. */
const WARM_UP_S = 120

interface Answer {
  readonly who: number
  readonly outputTokens: number
  readonly predictedTokens: number
}

interface Sequence extends Answer {
  readonly leaseId: number
  readonly grantedAt: number
  firstTokenAt: number
  generated: number
}

interface Sender {
  readonly tenant: Tenant
  readonly key: Key
  readonly history: History
  nextAt: number
}

/** What a gateway knows of a tenant: the median of its last answers, and caution before it has seen one. */
class History {
  readonly #lengths: number[] = []

  observe(length: number): void {
    this.#lengths.push(length)
    if (this.#lengths.length > 64) this.#lengths.shift()
  }

  median(): number {
    if (this.#lengths.length === 0) return 2 * OUTPUT_TOKENS
    const sorted = [...this.#lengths].sort((a, b) => a - b)
    return sorted[sorted.length >> 1] as number
  }
}

export function measureGap(options: GapOptions): GapResult {
  return new Experiment(options).run()
}

class Experiment {
  readonly #options: GapOptions
  readonly #dispatcher: Dispatcher
  readonly #arrivals: Rng
  readonly #lengths: Rng
  readonly #tenants: Sender[] = []
  readonly #waiting = new Map<string, Answer>()
  #running: Sequence[] = []
  #prefillTokens = 0
  readonly #service: number[]
  readonly #slots: number
  /** Every token is counted as it comes, so that the published order is compared at its best. */
  readonly #isCounted: boolean
  #now = 0
  #ticketCount = 0

  constructor(options: GapOptions) {
    this.#options = options
    this.#arrivals = Rng.stream(options.seed, 'arrivals')
    this.#lengths = Rng.stream(options.seed, 'lengths')
    this.#service = Array.from({ length: options.tenantCount }, () => 0)
    const lanes = { depthMax: DEPTH_MAX, engineUsMax: 1e15, agingUsPerBid: 1e6 }
    const { fairness, slots = SLOTS, overrunRatio, aheadTurns } = { ...DISPATCHER_DEFAULTS, ...options }
    this.#slots = slots
    this.#isCounted = fairness === 'virtual-token-counter'
    this.#dispatcher = new Dispatcher({
      options: { fairness, overrunRatio, aheadTurns, outputTokenCost: OUTPUT_COST, queueRequestsMax: 1e6, lanes },
    })
    const replica = { id: 'engine', poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    this.#dispatcher.addReplica(0, { replica, limit: new FixedLimit({ sequencesMax: slots }) })
    for (let who = 0; who < options.tenantCount; who++) {
      const tenant = makeTenant(`t${who}`)
      this.#tenants.push({ tenant, key: makeKey(`k${who}`, tenant.id), history: new History(), nextAt: 0 })
    }
  }

  run(): GapResult {
    const { seconds = 600 } = this.#options
    let base: number[] | undefined
    let gap = 0
    while (this.#now < seconds * 1e6) {
      this.#arrive()
      this.#step()
      if (this.#now < WARM_UP_S * 1e6) continue
      base ??= [...this.#service]
      gap = Math.max(gap, spread(this.#service, base))
    }
    const total = this.#service.reduce((sum, one) => sum + one, 0)
    return { gap, finalGap: spread(this.#service, base ?? this.#service), serviceRate: (total * 1e6) / this.#now }
  }

  /** Everybody sends at least twice its share; the second of each pair sends twice what the first does. */
  #arrive(): void {
    const shareUs =
      (OUTPUT_TOKENS * (STEP_US + this.#slots * STEP_PER_SEQUENCE_US) * this.#options.tenantCount) / this.#slots
    this.#tenants.forEach((each, who) => {
      const intervalUs = shareUs / (who % 2 === 0 ? 2 : 4)
      while (each.nextAt <= this.#now) {
        // Uniform between half and one and a half: no logarithm, so the same on every processor.
        each.nextAt += Math.round(intervalUs * (0.5 + this.#arrivals.next()))
        this.#offer(who)
      }
    })
  }

  #offer(who: number): void {
    const { tenant, key, history } = this.#tenants[who] as Sender
    const outputTokens = drawTokens(lengthsOf(this.#options.lengths, who), this.#lengths)
    const predicted = this.#options.knows === 'true-length' ? outputTokens : history.median()
    const estimate: Estimate = {
      promptTokens: PROMPT_TOKENS,
      cachedTokens: 0,
      outputTokens: predicted,
      outputTokensHigh: 2 * OUTPUT_TOKENS,
      cost: PROMPT_TOKENS + OUTPUT_COST * predicted,
      engineUs: predicted * STEP_US,
    }
    const ticketId = `n${this.#ticketCount++}`
    this.#waiting.set(ticketId, { who, outputTokens, predictedTokens: predicted })
    const times = { arrivedAt: this.#now, expiresAt: Number.POSITIVE_INFINITY }
    const facts = { ticketId, poolId: 'pool', tenant, key, band: 'standard', bid: 0, isReady: true } as const
    const offered = this.#dispatcher.offer(this.#now, { ...facts, ...times, estimate })
    if (offered.kind === 'refused') this.#waiting.delete(ticketId)
    this.#start(offered.effects)
  }

  #start(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind !== 'granted') continue
      const answer = this.#waiting.get(effect.ticketId) as Answer
      const { who } = answer
      this.#waiting.delete(effect.ticketId)
      const lease = { leaseId: effect.lease.id, grantedAt: this.#now }
      this.#running.push({ ...answer, ...lease, firstTokenAt: 0, generated: 0 })
      this.#prefillTokens += PROMPT_TOKENS
      this.#service[who] = (this.#service[who] as number) + PROMPT_TOKENS
    }
  }

  /** One step: every running sequence gets a token; those that are done go back. */
  #step(): void {
    const batch = this.#running
    this.#now += STEP_US + batch.length * STEP_PER_SEQUENCE_US + this.#prefillTokens * PREFILL_US_PER_TOKEN
    this.#prefillTokens = 0
    this.#running = []
    const done: Sequence[] = []
    for (const sequence of batch) {
      sequence.generated++
      this.#service[sequence.who] = (this.#service[sequence.who] as number) + OUTPUT_COST
      this.#tell(sequence)
      if (sequence.generated === sequence.outputTokens) done.push(sequence)
      else this.#running.push(sequence)
    }
    for (const sequence of done) {
      const { who, leaseId, outputTokens } = sequence
      this.#tenants[who]?.history.observe(outputTokens)
      this.#start(this.#dispatcher.release(this.#now, leaseId, this.#measured(sequence)))
    }
  }

  /** As the relay does: the first token, and every token beyond the prediction. The token counter is told of them all. */
  #tell(sequence: Sequence): void {
    if (sequence.generated === 1) {
      sequence.firstTokenAt = this.#now
      this.#start(this.#dispatcher.begin(this.#now, sequence.leaseId))
    }
    if (this.#isCounted || sequence.generated > sequence.predictedTokens)
      this.#dispatcher.progress(this.#now, sequence.leaseId, sequence.generated)
  }

  #measured({ outputTokens, grantedAt, firstTokenAt }: Sequence): Measured {
    const cost = PROMPT_TOKENS + OUTPUT_COST * outputTokens
    const measured = { cost, ending: 'finished', outputTokens, firstTokenUs: firstTokenAt - grantedAt } as const
    const tokenCount = outputTokens - 1
    if (this.#isCounted || tokenCount === 0) return measured
    return { ...measured, tokenCount, meanTokenUs: (this.#now - firstTokenAt) / tokenCount }
  }
}

function spread(service: readonly number[], base: readonly number[]): number {
  let least = Number.POSITIVE_INFINITY
  let most = Number.NEGATIVE_INFINITY
  for (let i = 0; i < service.length; i++) {
    const received = (service[i] as number) - (base[i] as number)
    least = Math.min(least, received)
    most = Math.max(most, received)
  }
  return most - least
}
