import { Rng } from '../../../src/base/rng.ts'
import type { Estimate } from '../../../src/domain/plan.ts'
import { Dispatcher } from '../../../src/policy/dispatch/dispatcher.ts'
import type { FairnessName } from '../../../src/policy/fairness/fairness.ts'
import type { Load } from '../../../src/policy/limits/ledger.ts'
import type { Limit } from '../../../src/policy/limits/limit.ts'
import { OutputLengths } from '../../../src/policy/planning/output-length.ts'
import { makeKey, makeTenant } from '../../../test/support/demand.ts'

/**
 * The engine of the VTC paper's experiments (S-LoRA on an A10G with a 7B model), as a step simulator behind our real
 * dispatcher. Times were fitted to the responses in the paper's artifact: a prompt token takes 215 µs, a decode step
 * 18.2 ms + 0.216 ms a sequence + 1.89 µs a token of context. As there: prefill first and alone, the batch is formed
 * anew every ten decode steps, at most 3,072 prompt tokens join at once, and who joins must fit into 10,000 KV tokens
 * until the last of them ends. Clients there send the exact length as max_new_tokens, and the memory rule (only that)
 * uses it; fairness is told the prediction.
 */
const PREFILL_US_PER_TOKEN = 215
const STEP_US = 18_200
const STEP_US_PER_SEQUENCE = 216
const STEP_US_PER_CONTEXT_TOKEN = 1.89
const KV_TOKENS = 10_000
const JOINING_TOKENS_MAX = 3_072
const STEPS_BETWEEN_BATCHES = 10
/** The paper's price of an output token. */
export const OUTPUT_COST = 2
/** Nothing in these workloads is longer; what a stranger's cap is. */
const OUTPUT_TOKENS_MAX = 1_024

export interface VtcRequest {
  readonly tenant: string
  readonly arrivedAtUs: number
  readonly promptTokens: number
  readonly outputTokens: number
}

export interface VtcResponse extends VtcRequest {
  readonly firstTokenAtUs: number
  readonly endedAtUs: number
}

/** What fairness is told about an answer's length: our predictor, the truth ± 50 %, or the truth. */
export type Knows = 'history' | 'noise-50' | 'true-length'

export interface VtcRun {
  readonly fairness: FairnessName
  readonly knows: Knows
  readonly requests: readonly VtcRequest[]
  readonly weights?: Readonly<Record<string, number>>
  readonly seed: number
  /** As in the paper: everybody waits for a head that does not fit. Otherwise as the dispatcher ships: others go past it. */
  readonly isBlocking?: boolean
}

interface Sequence {
  readonly request: VtcRequest
  readonly leaseId: number
  generated: number
  firstTokenAtUs: number
}

export function runVtc(run: VtcRun): readonly VtcResponse[] {
  return new A10gEngine(run).run()
}

class A10gEngine implements Limit {
  readonly name = 'fixed'
  readonly #run: VtcRun
  readonly #dispatcher: Dispatcher
  readonly #predictions = new OutputLengths()
  readonly #noise: Rng
  readonly #waiting = new Map<string, VtcRequest>()
  readonly #responses: VtcResponse[] = []
  #running: Sequence[] = []
  #joining: Sequence[] = []
  #nextArrival = 0
  #now = 0

  constructor(run: VtcRun) {
    this.#run = run
    this.#noise = Rng.stream(run.seed, 'prediction')
    const lanes = { depthMax: 1e6, engineUsMax: 1e15, agingUsPerBid: 1e6 }
    const lookAhead = run.isBlocking === true ? { lookAheadMax: 0 } : {}
    this.#dispatcher = new Dispatcher({
      options: { fairness: run.fairness, outputTokenCost: OUTPUT_COST, queueRequestsMax: 1e6, lanes, ...lookAhead },
    })
    const replica = { id: 'a10g', poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    this.#dispatcher.addReplica(0, { replica, limit: this })
    this.#dispatcher.replicaChanged(0, 'a10g', { allowance: 0 })
  }

  run(): readonly VtcResponse[] {
    const { requests } = this.#run
    let stepsSinceBatch = 0
    while (this.#responses.length < requests.length) {
      if (this.#running.length === 0 && this.#waiting.size === 0) this.#now = Math.max(this.#now, this.#arrivalAt())
      this.#arrive()
      if (this.#running.length === 0 || stepsSinceBatch >= STEPS_BETWEEN_BATCHES) {
        this.#formBatch()
        if (this.#joining.length > 0) {
          this.#prefill()
          stepsSinceBatch = 0
          continue
        }
      }
      this.#decode()
      stepsSinceBatch++
    }
    return this.#responses
  }

  #arrivalAt(): number {
    return this.#run.requests[this.#nextArrival]?.arrivedAtUs ?? Number.POSITIVE_INFINITY
  }

  #arrive(): void {
    for (; this.#arrivalAt() <= this.#now; this.#nextArrival++) {
      const request = this.#run.requests[this.#nextArrival] as VtcRequest
      const { tenant: id, promptTokens, arrivedAtUs } = request
      const ticketId = `n${this.#nextArrival}`
      const tenant = makeTenant(id, { weight: this.#run.weights?.[id] ?? 1 })
      this.#waiting.set(ticketId, request)
      const outputTokens = this.#predict(request)
      const estimate: Estimate = {
        promptTokens,
        cachedTokens: 0,
        outputTokens,
        outputTokensHigh: request.outputTokens,
        cost: promptTokens + OUTPUT_COST * outputTokens,
        engineUs: outputTokens * STEP_US,
      }
      const times = { arrivedAt: arrivedAtUs, expiresAt: Number.POSITIVE_INFINITY }
      const facts = { ticketId, poolId: 'pool', tenant, key: makeKey(`${id}-key`, id), estimate } as const
      this.#dispatcher.offer(this.#now, { ...facts, ...times, band: 'standard', bid: 0, isReady: true })
    }
  }

  #predict({ tenant: tenantId, outputTokens }: VtcRequest): number {
    const { knows } = this.#run
    if (knows === 'true-length') return outputTokens
    if (knows === 'noise-50') return Math.max(1, Math.round(outputTokens * (0.5 + this.#noise.next())))
    const habit = { tenantId, kind: 'chat', outputTokensMax: undefined } as const
    return this.#predictions.predict(habit, OUTPUT_TOKENS_MAX).tokens
  }

  /** One turn at a time, so that the memory rule sees who has joined before. */
  #formBatch(): void {
    for (;;) {
      const allowance = this.#running.length + this.#joining.length + 1
      const effects = this.#dispatcher.replicaChanged(this.#now, 'a10g', { allowance })
      const [effect] = effects
      if (effect === undefined) break
      if (effect.kind !== 'granted' || effects.length > 1) throw new Error(`a turn was expected, not ${effect.kind}`)
      const request = this.#waiting.get(effect.ticketId) as VtcRequest
      this.#waiting.delete(effect.ticketId)
      this.#joining.push({ request, leaseId: effect.lease.id, generated: 0, firstTokenAtUs: 0 })
    }
    this.#dispatcher.replicaChanged(this.#now, 'a10g', { allowance: 0 })
  }

  #prefill(): void {
    const joined = this.#joining
    this.#joining = []
    const promptTokens = joined.reduce((sum, { request }) => sum + request.promptTokens, 0)
    this.#now += Math.round(promptTokens * PREFILL_US_PER_TOKEN)
    for (const sequence of joined) {
      sequence.firstTokenAtUs = this.#now
      this.#dispatcher.begin(this.#now, sequence.leaseId)
      this.#running.push(sequence)
    }
    this.#addTokens(joined)
  }

  #decode(): void {
    const context = this.#running.reduce((sum, { request, generated }) => sum + request.promptTokens + generated, 0)
    const perSequence = STEP_US_PER_SEQUENCE * this.#running.length
    this.#now += Math.round(STEP_US + perSequence + STEP_US_PER_CONTEXT_TOKEN * context)
    this.#addTokens(this.#running)
  }

  #addTokens(sequences: readonly Sequence[]): void {
    for (const sequence of sequences) {
      sequence.generated++
      this.#dispatcher.progress(this.#now, sequence.leaseId, sequence.generated)
      if (sequence.generated === sequence.request.outputTokens) this.#finish(sequence)
    }
    this.#running = this.#running.filter(({ request, generated }) => generated < request.outputTokens)
  }

  #finish({ request, leaseId, firstTokenAtUs }: Sequence): void {
    const { tenant: tenantId, promptTokens, outputTokens } = request
    const cost = promptTokens + OUTPUT_COST * outputTokens
    this.#dispatcher.release(this.#now, leaseId, { cost, ending: 'finished', firstTokenUs: undefined })
    this.#predictions.observe(
      { tenantId, kind: 'chat', outputTokensMax: undefined },
      { tokens: outputTokens, isCut: false },
    )
    this.#responses.push({ ...request, firstTokenAtUs, endedAtUs: this.#now })
  }

  // ── the limit that the dispatcher asks ──

  isFull(): boolean {
    return false
  }

  fullness(): number {
    return 0
  }

  fits(load: Load, estimate: Estimate): boolean {
    return load.prefillTokens + estimate.promptTokens <= JOINING_TOKENS_MAX && this.#peakTokens(estimate) < KV_TOKENS
  }

  /**
   * KV tokens at the fullest moment to come, if nobody else joins: those with most left to write stay longest. When
   * the i-th of them ends, i sequences are left, and each has grown by what that one had left.
   */
  #peakTokens(estimate: Estimate): number {
    const held = [...this.#running, ...this.#joining].map(({ request, generated }) => ({
      now: request.promptTokens + Math.max(1, generated),
      left: request.outputTokens - Math.max(1, generated),
    }))
    held.push({ now: estimate.promptTokens + 1, left: estimate.outputTokensHigh - 1 })
    held.sort((a, b) => b.left - a.left)
    let heldTokens = 0
    let peak = 0
    held.forEach(({ now, left }, index) => {
      heldTokens += now
      peak = Math.max(peak, left * (index + 1) + heldTokens)
    })
    return peak
  }

  observe(): void {}

  view() {
    return { sequencesMax: Number.POSITIVE_INFINITY, because: 'KV memory' }
  }
}
