import type { Cancellation } from '../base/cancellation.ts'
import type { Instant } from '../base/clock.ts'
import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import { addEngineTimes, type EngineTime, NO_ENGINE_TIME } from '../domain/engine-time.ts'
import type { Lease, Replica } from '../domain/fleet.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { Plan } from '../domain/plan.ts'
import { cacheScopeOf, type Request } from '../domain/request.ts'
import type { EngineEvent } from '../engine/engine-event.ts'
import { type FullWorkPrices, fullWorkUs } from '../engine/full-work.ts'
import type { Backend, Call, Ending, ReplicaReport } from '../lifecycle/ports.ts'
import type { EngineDriver } from './engine-driver.ts'

/**
 * An engine in this process: the same paged, continuously batching engine model that the simulator runs, at the pace of
 * its driver's clock. The text of an answer and its true length come from a script: made from the prompt live, from the
 * workload in simulation. Policies never see a script (law L10).
 */
export interface Script {
  readonly promptTokens: number
  /** An earlier choice has the same prompt: the usage counts it once. */
  readonly sharesPrompt?: boolean
  readonly outputTokens: number
  readonly prefixHashes: readonly number[]
  /** The text of the output tokens [from, to) of this choice; absent in simulation. */
  readonly textBetween?: (from: number, to: number) => string
  /** Their log probabilities, where the client wants them, in its own shape. */
  readonly logprobsBetween?: (from: number, to: number) => object
  readonly finishReason: 'stop' | 'length' | 'content_filter'
  /** The stop sequence at which the answer ends, if it does. */
  readonly stopSequence?: string
}

export type ScriptsMade =
  | { readonly kind: 'made'; readonly scripts: readonly Script[] }
  /** The prompt is longer than the context. */
  | { readonly kind: 'refused'; readonly because: string }

export interface Scripts {
  /** One script per choice. A promise only where making the scripts would block the event loop. */
  scriptsFor(request: Request, plan: Plan, cancellation: Cancellation): ScriptsMade | Promise<ScriptsMade>
}

export class SimulatedBackend implements Backend {
  readonly #driver: EngineDriver
  readonly #scripts: Scripts
  readonly #prices: FullWorkPrices | undefined
  readonly #cacheName: string | undefined
  /** Running answers: as many as there are leases on this replica. */
  readonly #open = new Map<number, SimulatedAnswer>()

  /**
   * With the prices of its GPU's work the engine also reports how much of what it could do it has done. With a `cacheName`
   * it finds cached prefixes of that name alone: keys and values of one model are no good to another.
   */
  constructor(driver: EngineDriver, scripts: Scripts, prices?: FullWorkPrices, cacheName?: string) {
    this.#driver = driver
    this.#scripts = scripts
    this.#prices = prices
    this.#cacheName = cacheName
  }

  /** `onTaken` is called when the engine has queued the call: from then on the engine does not refuse it. */
  generate(call: Call, onTaken?: () => void): Promise<Ending> {
    const { request, plan, cancellation } = call
    if (cancellation.isCancelled) return Promise.resolve({ kind: 'cancelled' })
    return new Promise((resolve, reject) => {
      const answer = new SimulatedAnswer(this.#driver, call, {
        resolve,
        reject,
        open: this.#open,
        cacheName: this.#cacheName,
      })
      const made = this.#scripts.scriptsFor(request, plan, cancellation)
      if (made instanceof Promise) made.then((late) => answer.begin(late, onTaken)).catch((error) => answer.fail(error))
      else answer.begin(made, onTaken)
    })
  }

  /** The engine is lost, and every running answer with it. */
  lose(because: string): void {
    for (const answer of this.#open.values()) answer.lose(because)
  }

  engineTimeOf(lease: Lease): EngineTime | undefined {
    return this.#open.get(lease.id)?.engineTime
  }

  /** What vLLM tells on its page of metrics. */
  probe(_replica: Replica): Promise<ReplicaReport> {
    const view = this.#driver.view()
    const { running, waiting, kvUsageRatio, preemptions, kvTokensMax, promptTokens, generationTokens } = view
    return Promise.resolve({
      isReady: true,
      because: 'it runs in this process',
      runningCount: running,
      waitingCount: waiting,
      kvUsageRatio,
      preemptionCount: preemptions,
      kvTokensMax,
      workCount: promptTokens + generationTokens,
      ...(this.#prices !== undefined && { fullWorkUs: fullWorkUs(this.#prices, view) }),
    })
  }
}

interface Choice {
  readonly index: number
  readonly sequenceId: string
  readonly script: Script
  /** The engine has made the choice's last token. */
  isMade: boolean
  /** The sink has heard of the choice's end. */
  isTold: boolean
  /** Tokens handed to the sink. */
  sentTokens: number
  /** Tokens made while the reader was slow: their count and time span, for any number of events. */
  heldTokens: number
  heldFrom: Instant
  heldTo: Instant
}

interface Settle {
  readonly resolve: (ending: Ending) => void
  readonly reject: (error: unknown) => void
  /** The running answers, by lease; this one among them. */
  readonly open: Map<number, SimulatedAnswer>
  readonly cacheName: string | undefined
}

/** Where several models have one engine, each has cached prefixes of its own. */
export const cacheNameOf = ({ engineId, model }: Replica): string | undefined =>
  engineId === undefined ? undefined : model

/**
 * The choices of one call in the engine. Ends once; then it holds no sequence, no listener and no text.
 *
 * When the sink reports a slow reader the engine goes on, as a real one does. Its tokens are counted, not queued, and
 * go out as one delta per choice when the reader has caught up.
 */
class SimulatedAnswer {
  readonly #driver: EngineDriver
  readonly #call: Call
  readonly #settle: Settle
  readonly #choices: Choice[] = []
  #isBlocked = false
  #hasEnded = false
  /** Choices whose last token has not gone to the sink. */
  #openChoices = 0
  #promptTokens = 0
  #cachedTokens = 0
  #outputTokens = 0
  /** Of the choices that the engine has made or let go. */
  #engineTime = NO_ENGINE_TIME
  readonly #forget: () => void

  constructor(driver: EngineDriver, call: Call, settle: Settle) {
    this.#driver = driver
    this.#call = call
    this.#settle = settle
    settle.open.set(call.lease.id, this)
    this.#forget = call.cancellation.onCancel(() => this.#callOff())
  }

  begin(made: ScriptsMade, onTaken: (() => void) | undefined): void {
    // Cancelled while its prompt was being read.
    if (this.#hasEnded) return
    if (made.kind === 'refused') {
      const { kind } = this.#call.request
      const param = kind === 'chat' ? 'messages' : 'prompt'
      this.#end({
        kind: 'refused',
        refusal: { ...hopeless(made.because), code: 'context-length-exceeded', param },
      })
      return
    }
    for (const [index, script] of made.scripts.entries()) {
      const refusal = this.#submit(index, script)
      if (refusal === undefined) continue
      this.#end({ kind: 'refused', refusal })
      return
    }
    onTaken?.()
  }

  /** What all choices have taken of the engine's time. */
  get engineTime(): EngineTime {
    let time = this.#engineTime
    for (const { isMade, sequenceId } of this.#choices) {
      if (!isMade) time = addEngineTimes(time, this.#driver.engineTime(sequenceId) ?? NO_ENGINE_TIME)
    }
    return time
  }

  fail(error: unknown): void {
    if (this.#hasEnded) return
    this.#letGo()
    this.#settle.reject(error)
  }

  lose(because: string): void {
    this.#end({ kind: 'lost', because })
  }

  #submit(index: number, script: Script): Refusal | undefined {
    const { request, lease } = this.#call
    const { cacheName } = this.#settle
    const scope = cacheScopeOf(request)
    const sequenceId = `${lease.id}.${index}`
    const choice: Choice = { index, sequenceId, script, isMade: false, isTold: false, sentTokens: 0, ...NOTHING_HELD }
    const submission = this.#driver.submit(
      {
        id: sequenceId,
        promptTokens: script.promptTokens,
        outputTokens: script.outputTokens,
        salt: cacheName === undefined ? scope : `${cacheName} ${scope}`,
        prefixHashes: script.prefixHashes,
        reports: script.textBetween === undefined ? 'few' : 'every-step',
      },
      (event) => this.#hear(choice, event),
    )
    if (submission.kind === 'refused') {
      const because = `${submission.because}.`
      return submission.code === 'never-fits' ? hopeless(because) : full(because)
    }
    this.#choices.push(choice)
    this.#openChoices++
    if (script.sharesPrompt !== true) this.#promptTokens += script.promptTokens
    return undefined
  }

  /** Called by the driver: a fault in one answer must not affect the others. */
  #hear(choice: Choice, event: EngineEvent): void {
    try {
      this.#take(choice, event)
    } catch (error) {
      this.fail(error)
    }
  }

  #take(choice: Choice, event: EngineEvent): void {
    if (event.kind === 'first-token' && choice.script.sharesPrompt !== true) this.#cachedTokens += event.cachedTokens
    if (event.kind === 'finished') {
      choice.isMade = true
      this.#engineTime = addEngineTimes(this.#engineTime, event.time ?? NO_ENGINE_TIME)
    }
    const tokens = event.kind === 'first-token' ? 1 : event.tokens
    if (!this.#isBlocked) {
      this.#send(choice, tokens, innerGapOf(event))
      return
    }
    if (choice.heldTokens === 0) choice.heldFrom = event.at
    choice.heldTokens += tokens
    choice.heldTo = event.at
  }

  #send(choice: Choice, tokens: number, innerGapUs: number | undefined): void {
    const { textBetween, logprobsBetween, finishReason, stopSequence } = choice.script
    const from = choice.sentTokens
    const isLast = choice.isMade
    choice.sentTokens += tokens
    this.#outputTokens += tokens
    if (isLast) {
      choice.isTold = true
      this.#openChoices--
    }
    const content = textBetween?.(from, from + tokens) ?? ''
    const spoken: ChoiceDelta = {
      index: choice.index,
      content,
      finishReason: isLast ? finishReason : null,
      ...(logprobsBetween !== undefined && { logprobs: logprobsBetween(from, from + tokens) }),
      ...(isLast && stopSequence !== undefined && { stopSequence }),
    }
    const wait = this.#call.sink.write({
      tokens,
      ...(innerGapUs === undefined ? {} : { innerGapUs }),
      ...(textBetween === undefined ? {} : { choices: [spoken] }),
    })
    // The sink may have cancelled the call.
    if (this.#hasEnded) return
    if (wait !== undefined) this.#blockUntil(wait)
    else if (this.#openChoices === 0) this.#end({ kind: 'finished', usage: this.#usage() })
  }

  #blockUntil(wait: Promise<void>): void {
    this.#isBlocked = true
    wait.then(() => this.#resume()).catch((error: unknown) => this.fail(error))
  }

  #resume(): void {
    this.#isBlocked = false
    for (const choice of this.#choices) {
      const { heldTokens, heldFrom, heldTo } = choice
      if (this.#hasEnded || this.#isBlocked) return
      // The end of an answer may come without a token of its own: a single token is the first and the last.
      if (heldTokens === 0 && (!choice.isMade || choice.isTold)) continue
      Object.assign(choice, NOTHING_HELD)
      this.#send(choice, heldTokens, heldTokens > 1 ? Math.round((heldTo - heldFrom) / (heldTokens - 1)) : undefined)
    }
    if (!this.#hasEnded && !this.#isBlocked && this.#openChoices === 0)
      this.#end({ kind: 'finished', usage: this.#usage() })
  }

  #usage(): Usage {
    return { promptTokens: this.#promptTokens, cachedTokens: this.#cachedTokens, outputTokens: this.#outputTokens }
  }

  #end(ending: Ending): void {
    if (this.#hasEnded) return
    this.#letGo()
    this.#settle.resolve({ ...ending, engineTime: this.#engineTime })
  }

  #callOff(): void {
    if (this.#hasEnded) return
    const unreportedTokens = this.#letGo()
    const unreported = unreportedTokens === 0 ? {} : { unreportedTokens }
    this.#settle.resolve({ kind: 'cancelled', ...unreported, engineTime: this.#engineTime })
  }

  /** Frees what is left, and returns the tokens that a simulated client had received without a delta for each. */
  #letGo(): number {
    this.#hasEnded = true
    this.#settle.open.delete(this.#call.lease.id)
    this.#forget()
    let unreportedTokens = 0
    for (const { isMade, sequenceId, script } of this.#choices) {
      const abortion = isMade ? undefined : this.#driver.abort(sequenceId)
      if (abortion !== undefined) this.#engineTime = addEngineTimes(this.#engineTime, abortion.time)
      if (script.textBetween === undefined) unreportedTokens += abortion?.tokens ?? 0
    }
    return unreportedTokens
  }
}

const NOTHING_HELD = { heldTokens: 0, heldFrom: 0, heldTo: 0 } as const

const hopeless = (because: string): Refusal => ({
  code: 'replica-rejected-request',
  because,
  blame: 'request',
  retryAfterUs: undefined,
})

const full = (because: string): Refusal => ({
  code: 'replica-refused',
  because,
  blame: 'platform',
  retryAfterUs: 1_000_000,
})

/** A finished event may cover the tokens of many steps; their mean gap stands for each of them. */
function innerGapOf(event: EngineEvent): number | undefined {
  if (event.kind !== 'finished' || event.tokens < 2) return undefined
  return Math.round((event.at - event.firstTokenAt) / Math.max(1, event.usage.outputTokens - 1))
}
