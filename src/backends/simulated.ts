import type { ChoiceDelta, Usage } from '../domain/delta.ts'
import type { Replica } from '../domain/fleet.ts'
import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import type { EngineEvent } from '../engine/engine-event.ts'
import type { Backend, Call, Ending, ReplicaReport } from '../lifecycle/ports.ts'
import type { EngineDriver } from './engine-driver.ts'

/**
 * An engine in this process: the same paged, continuously batching engine model that the simulator runs, at the pace
 * of whatever clock its driver has. What is answered, and how long the answer truly is, comes from a script: made
 * from the prompt's text live, from the workload in simulation. Policies never see a script (law L10).
 */
export interface Script {
  readonly promptTokens: number
  readonly outputTokens: number
  readonly prefixHashes: readonly number[]
  /** The text of the output tokens [from, to) of this choice; absent in simulation. */
  readonly textBetween?: (from: number, to: number) => string
  readonly finishReason: 'stop' | 'length'
}

export interface Scripts {
  scriptFor(request: Request, plan: Plan, choice: number): Script
}

export class SimulatedBackend implements Backend {
  readonly #driver: EngineDriver
  readonly #scripts: Scripts

  constructor(driver: EngineDriver, scripts: Scripts) {
    this.#driver = driver
    this.#scripts = scripts
  }

  generate(call: Call): Promise<Ending> {
    return new Promise((resolve, reject) => {
      new SimulatedAnswer(this.#driver, call, resolve, reject).begin(this.#scripts)
    })
  }

  probe(_replica: Replica): Promise<ReplicaReport> {
    const { running, waiting, kvUsageRatio } = this.#driver.view()
    const because = 'it runs in this process'
    return Promise.resolve({ isReady: true, because, runningCount: running, waitingCount: waiting, kvUsageRatio })
  }
}

interface Choice {
  readonly index: number
  readonly sequenceId: string
  readonly script: Script
  written: number
  isDone: boolean
}

/**
 * One call's choices on their way through the engine. Ends once. What its sink or its script throws fails this call
 * and no other: the engine's events come from a timer, where an exception would end the process.
 */
class SimulatedAnswer {
  readonly #driver: EngineDriver
  readonly #call: Call
  readonly #resolve: (ending: Ending) => void
  readonly #reject: (error: unknown) => void
  readonly #choices: Choice[] = []
  /** Tokens that the engine made while the reader was slow: a count per choice, never their text. */
  readonly #unsent: Array<{ choice: Choice; event: EngineEvent }> = []
  /** A list of prompts is answered in one call; the usage counts each prompt once, however many choices it has. */
  readonly #choicesPerPrompt: number
  #isBlocked = false
  #openChoices = 0
  #promptTokens = 0
  #cachedTokens = 0
  #outputTokens = 0
  #forget: (() => void) | undefined

  constructor(driver: EngineDriver, call: Call, resolve: (ending: Ending) => void, reject: (error: unknown) => void) {
    this.#driver = driver
    this.#call = call
    this.#resolve = resolve
    this.#reject = reject
    const { kind, choiceCount, segments } = call.request
    this.#choicesPerPrompt = kind === 'completion' ? choiceCount / Math.max(1, segments.length) : choiceCount
  }

  begin(scripts: Scripts): void {
    this.#guarded(() => this.#submitAll(scripts))
  }

  #submitAll(scripts: Scripts): void {
    const { request, plan, lease, cancellation } = this.#call
    if (cancellation.isCancelled) {
      this.#end({ kind: 'cancelled' })
      return
    }
    for (let index = 0; index < request.choiceCount; index++) {
      const script = scripts.scriptFor(request, plan, index)
      const choice: Choice = { index, sequenceId: `${lease.id}.${index}`, script, written: 0, isDone: false }
      const submission = this.#driver.submit(
        {
          id: choice.sequenceId,
          promptTokens: script.promptTokens,
          outputTokens: script.outputTokens,
          salt: request.tenant.id,
          prefixHashes: script.prefixHashes,
          reports: script.textBetween === undefined ? 'few' : 'every-step',
        },
        (event) => this.#onEvent(choice, event),
      )
      if (submission.kind === 'refused') {
        const isHopeless = submission.code === 'never-fits'
        const code = isHopeless ? 'replica-rejected-request' : 'replica-refused'
        const refusal = { code, because: `${submission.because}.`, blame: isHopeless ? 'request' : 'platform' } as const
        this.#end({ kind: 'refused', refusal: { ...refusal, retryAfterUs: isHopeless ? undefined : 1_000_000 } })
        return
      }
      this.#choices.push(choice)
      this.#openChoices++
      if (index % this.#choicesPerPrompt === 0) this.#promptTokens += script.promptTokens
    }
    this.#forget = cancellation.onCancel(() => this.#calledOff())
  }

  #onEvent(choice: Choice, event: EngineEvent): void {
    if (this.#isBlocked) this.#unsent.push({ choice, event })
    else this.#guarded(() => this.#relay(choice, event))
  }

  #relay(choice: Choice, event: EngineEvent): void {
    const tokens = event.kind === 'first-token' ? 1 : event.tokens
    const isLast = event.kind === 'finished'
    // Later choices find the prompt that the first one has just computed: that is no cache hit of the client's.
    if (event.kind === 'first-token' && choice.index % this.#choicesPerPrompt === 0) {
      this.#cachedTokens += event.cachedTokens
    }
    this.#outputTokens += tokens
    const wait = this.#call.sink.write({
      tokens,
      ...innerGap(event),
      ...(choice.script.textBetween === undefined ? {} : { choices: [spoken(choice, tokens, isLast)] }),
    })
    choice.written += tokens
    if (isLast) {
      choice.isDone = true
      this.#openChoices--
    }
    if (wait !== undefined) this.#block(wait)
    else if (this.#openChoices === 0) this.#end({ kind: 'finished', usage: this.#usage() })
  }

  #block(wait: Promise<void>): void {
    this.#isBlocked = true
    wait.then(
      () => this.#guarded(() => this.#unblock()),
      (error: unknown) => this.#fail(error),
    )
  }

  #unblock(): void {
    this.#isBlocked = false
    while (!this.#isBlocked && this.#unsent.length > 0) {
      const { choice, event } = this.#unsent.shift()!
      this.#relay(choice, event)
    }
    if (!this.#isBlocked && this.#openChoices === 0) this.#end({ kind: 'finished', usage: this.#usage() })
  }

  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    this.#letGo()
    this.#reject(error)
  }

  #usage(): Usage {
    return { promptTokens: this.#promptTokens, cachedTokens: this.#cachedTokens, outputTokens: this.#outputTokens }
  }

  #end(ending: Ending): void {
    this.#letGo()
    this.#resolve(ending)
  }

  #calledOff(): void {
    const unreportedTokens = this.#letGo()
    this.#resolve(unreportedTokens === 0 ? { kind: 'cancelled' } : { kind: 'cancelled', unreportedTokens })
  }

  /** Frees what is left, and gives the tokens that simulated clients had got without being told of each. */
  #letGo(): number {
    this.#forget?.()
    this.#unsent.length = 0
    let unreportedTokens = 0
    for (const { isDone, sequenceId, script } of this.#choices) {
      const abortion = isDone ? undefined : this.#driver.abort(sequenceId)
      if (script.textBetween === undefined) unreportedTokens += abortion?.tokens ?? 0
    }
    return unreportedTokens
  }
}

function spoken(choice: Choice, tokens: number, isLast: boolean): ChoiceDelta {
  const content = choice.script.textBetween?.(choice.written, choice.written + tokens) ?? ''
  return { index: choice.index, content, finishReason: isLast ? choice.script.finishReason : null }
}

/** A finished event may bring the tokens of many steps; their mean gap stands for each of them. */
function innerGap(event: EngineEvent): { innerGapUs?: number } {
  if (event.kind !== 'finished' || event.tokens < 2) return {}
  return { innerGapUs: Math.round((event.at - event.firstTokenAt) / Math.max(1, event.usage.outputTokens - 1)) }
}
