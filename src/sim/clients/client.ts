import { Cancellation } from '../../base/cancellation.ts'
import { type Clock, type Instant, msToUs, secondsToUs, usToSeconds } from '../../base/clock.ts'
import { fnv1a32, Rng } from '../../base/rng.ts'
import type { Settled } from '../../domain/entry.ts'
import type { Refusal } from '../../domain/outcome.ts'
import type { Request, Segment } from '../../domain/request.ts'
import type { Key, Tenant } from '../../domain/tenant.ts'
import type { Sink } from '../../lifecycle/ports.ts'
import { CORPUS } from '../retrieval-world.ts'
import type { StreamSpec } from '../scenario/scenario.ts'
import { drawExponential, drawTokens, drawUnitGap, factorAt } from './draw.ts'
import { drawQuestion } from './questions.ts'
import type { ClientScripts } from './scripts.ts'
import { simulatedScreening } from './simulated-screening.ts'

/**
 * One stream of simulated clients: sends requests as its scenario says, retries or gives up after a refusal, and
 * disconnects when the scenario says so. A client knows how long its answers will be. Its requests go through `serve`,
 * the same story as live requests.
 */
export type Serve = (request: Request, cancellation: Cancellation, sink: Sink) => Promise<Settled>

export interface ClientParts {
  readonly clock: Clock
  readonly scripts: ClientScripts
  readonly serve: Serve
  readonly caller: { readonly tenant: Tenant; readonly key: Key }
  readonly spec: StreamSpec
  readonly seed: number
  /** Unique among the run's clients: names the client's requests and random streams. */
  readonly name: string
  readonly endAt: Instant
  /** Ids of requests that are sent again end with which try they are. */
  readonly marksTries?: boolean
  /** Multiplies the stream's arrivals or sessions; 1. */
  readonly load?: number
}

/** Length of a turn of a conversation, about: the ladder trims turn by turn. */
const TURN_TOKENS = 400
const SYSTEM_TOKENS_MAX = 200
/** Tokens per prefix hash: the engine's block. */
const BLOCK_TOKENS = 16
/** No shared beginning is longer than sixteen million tokens, so the names of two groups never collide. */
const PREFIX_BLOCKS_MAX = 1 << 20

export class Client {
  readonly #parts: ClientParts
  readonly #arrivals: Rng
  readonly #lengths: Rng
  readonly #habits: Rng
  readonly #questions: Rng
  readonly #talks: Rng
  readonly #prefixSalt: number
  #requestCount = 0
  #askCount = 0

  constructor(parts: ClientParts) {
    this.#parts = parts
    this.#arrivals = Rng.stream(parts.seed, `arrivals/${parts.name}`)
    this.#lengths = Rng.stream(parts.seed, `lengths/${parts.name}`)
    this.#habits = Rng.stream(parts.seed, `habits/${parts.name}`)
    this.#questions = Rng.stream(parts.seed, `questions/${parts.name}`)
    this.#talks = Rng.stream(parts.seed, `conversations/${parts.name}`)
    this.#prefixSalt = fnv1a32(parts.name)
  }

  start(): void {
    const { spec, clock } = this.#parts
    const fromAt = clock.now() + secondsToUs(spec.fromS ?? 0)
    if (spec.arrivals.kind !== 'closed') {
      this.#sendNextAfter(fromAt)
      return
    }
    const { thinkS } = spec.arrivals
    const sessions = Math.max(1, Math.round(spec.arrivals.sessions * (this.#parts.load ?? 1)))
    for (let i = 0; i < sessions; i++) {
      clock.at(fromAt + secondsToUs(thinkS * drawExponential(this.#arrivals)), () => void this.#session())
    }
  }

  get #endAt(): Instant {
    const { spec, endAt } = this.#parts
    return spec.toS === undefined ? endAt : Math.min(endAt, secondsToUs(spec.toS))
  }

  /** Open loop: the next arrival waits for no answer. */
  #sendNextAfter(from: Instant): void {
    const { spec, clock } = this.#parts
    const { arrivals } = spec
    if (arrivals.kind === 'closed') return
    const factor = (this.#parts.load ?? 1) * factorAt(spec.phases, usToSeconds(from))
    // A pause is checked again soon; a gap that began in it would miss the next phase.
    const gapUs =
      factor === 0 ? PAUSE_US : secondsToUs(drawUnitGap(arrivals, this.#arrivals) / (arrivals.ratePerS * factor))
    const at = from + Math.max(1, gapUs)
    if (at >= this.#endAt) return
    clock.at(at, () => {
      if (factor > 0) void this.#ask(at)
      this.#sendNextAfter(at)
    })
  }

  async #session(): Promise<void> {
    const { spec, clock } = this.#parts
    const thinkS = spec.arrivals.kind === 'closed' ? spec.arrivals.thinkS : 0
    while (clock.now() < this.#endAt) {
      await this.#ask()
      // There is at least a round trip between requests: a client refused at once would otherwise ask without end.
      await clock.sleep(Math.max(ROUND_TRIP_US, secondsToUs(thinkS * drawExponential(this.#arrivals))))
    }
  }

  /**
   * One request, with as many tries as the client makes. Latency counts from when the request was meant to be sent, so
   * that a late sender (live, on a busy machine) is part of it.
   */
  async #ask(meantAt: Instant = this.#parts.clock.now()): Promise<void> {
    const { spec, clock, serve, scripts } = this.#parts
    const promptTokens = drawTokens(spec.prompt, this.#lengths)
    const outputTokens = drawTokens(spec.output, this.#lengths)
    const triesMax = spec.retry?.triesMax ?? 1
    const ask = `${this.#parts.name} ${this.#askCount++}`
    const askName = spec.retry === undefined ? undefined : () => ask
    for (let attempt = 1; attempt <= triesMax; attempt++) {
      const outputTokensMax = maxTokensOf(spec, outputTokens)
      const arrivedAt = attempt === 1 ? meantAt : clock.now()
      const made = this.#makeRequest(promptTokens, outputTokensMax, arrivedAt)
      const isMarked = this.#parts.marksTries === true && attempt > 1
      const request = { ...made, askName, id: isMarked ? `${made.id}.${attempt}` : made.id }
      scripts.expect(request.id, Math.min(outputTokens, request.outputTokensMax ?? outputTokens))
      const cancellation = new Cancellation()
      const forget = this.#leaveSometime(cancellation)
      const sink = new SimSink()
      await serve(request, cancellation, sink)
      forget()
      scripts.forget(request.id)
      const { refusal } = sink
      if (refusal === undefined || refusal.retryAfterUs === undefined || attempt === triesMax) return
      if (spec.retry?.kind === 'honour' && refusal.slot === 'none') return
      // A client that ignores Retry-After still needs a round trip.
      await clock.sleep(spec.retry?.kind === 'honour' ? refusal.retryAfterUs : ROUND_TRIP_US)
      if (clock.now() >= this.#endAt) return
    }
  }

  #leaveSometime(cancellation: Cancellation): () => void {
    const leave = this.#parts.spec.leaveAfterMs
    if (leave === undefined || this.#habits.next() >= leave.ratio) return () => {}
    const { clock } = this.#parts
    const afterUs = msToUs(leave.min + (leave.max - leave.min) * this.#habits.next())
    return clock.at(clock.now() + afterUs, () => cancellation.cancel('client-gone'))
  }

  #makeRequest(promptTokens: number, outputTokensMax: number | undefined, arrivedAt: Instant): Request {
    const { spec, caller, name } = this.#parts
    const { tenant, key } = caller
    const { slo } = tenant
    const bids = spec.bids
    const prefix = spec.prefix !== undefined && this.#habits.next() < spec.prefix.ratio ? spec.prefix : undefined
    const band = spec.band ?? 'standard'
    return {
      id: `${name}-${this.#requestCount++}`,
      tenant,
      key,
      kind: 'chat',
      model: spec.model,
      segments: segmentsOf(promptTokens, prefix?.tokens),
      prefixHashes: prefix === undefined ? [] : this.#prefixHashes(prefix.tokens, prefix.groups, promptTokens),
      outputTokensMax,
      choiceCount: 1,
      isStreamed: true,
      band,
      bid: bids === undefined ? 0 : (bids[this.#habits.below(bids.length)] ?? 0),
      slo,
      arrivedAt,
      deadlineAt: arrivedAt + (spec.deadlineMs === undefined ? slo.totalUs : msToUs(spec.deadlineMs)),
      text: undefined,
      ...simulatedScreening(tenant),
      ...this.#conversation(),
      ...this.#question(),
    }
  }

  /** The question, for retrieval and for caches, where the stream or its tenant uses them. */
  #question(): Pick<Request, 'retrieval' | 'cacheable'> {
    const { spec, caller, name } = this.#parts
    const isCacheable = spec.questions !== undefined && caller.tenant.answerCache !== undefined
    if (spec.retrieval === undefined && !isCacheable) return {}
    const question = drawQuestion(spec.questions, this.#questions, this.#requestCount)
    return {
      ...(spec.retrieval && { retrieval: { corpus: CORPUS, query: question, passagesMax: spec.retrieval.passages } }),
      ...(isCacheable && { cacheable: { promptVersion: name, question } }),
    }
  }

  #conversation(): { sessionHash?: number } {
    const { spec, name } = this.#parts
    if (spec.conversations === undefined) return {}
    return { sessionHash: fnv1a32(`${name} ${this.#talks.below(spec.conversations)}`) }
  }

  /** Names of the blocks of the shared beginning. Each stream has beginnings of its own. */
  #prefixHashes(prefixTokens: number, groups: number, promptTokens: number): number[] {
    const group = this.#prefixSalt + this.#habits.below(groups)
    const blocks = Math.floor(Math.min(prefixTokens, promptTokens) / BLOCK_TOKENS)
    const hashes: number[] = []
    for (let i = 0; i < blocks; i++) hashes.push((group + 1) * PREFIX_BLOCKS_MAX + i)
    return hashes
  }
}

/** The client's `max_tokens`; unset by default. */
export function maxTokensOf({ maxTokens }: StreamSpec, outputTokens: number): number | undefined {
  return maxTokens === 'exact' ? outputTokens : typeof maxTokens === 'number' ? maxTokens : undefined
}

const PAUSE_US = 100_000
const ROUND_TRIP_US = 1_000

/** A system prompt and turns; the last turn is the question. */
export function segmentsOf(promptTokens: number, prefixTokens: number | undefined): Segment[] {
  const systemTokens = Math.min(prefixTokens ?? SYSTEM_TOKENS_MAX, promptTokens - 1)
  const segments: Segment[] = systemTokens > 0 ? [{ role: 'system', tokens: systemTokens }] : []
  let left = promptTokens - Math.max(0, systemTokens)
  for (let turn = 0; left > 0; turn++) {
    const tokens = left < 2 * TURN_TOKENS ? left : TURN_TOKENS
    segments.push({ role: turn % 2 === 0 ? 'user' : 'assistant', tokens })
    left -= tokens
  }
  return segments
}

/** Takes every delta at once; remembers only the refusal. */
export class SimSink implements Sink {
  refusal: Refusal | undefined

  start(): void {}
  write(): undefined {
    return undefined
  }
  finish(): void {}
  fail(refusal: Refusal): void {
    this.refusal = refusal
  }
}
