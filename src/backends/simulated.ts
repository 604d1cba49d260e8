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
    return new Promise((resolve) => {
      new SimulatedAnswer(this.#driver, call, resolve).begin(this.#scripts)
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

/** One call's choices on their way through the engine. Ends once. */
class SimulatedAnswer {
  readonly #driver: EngineDriver
  readonly #call: Call
  readonly #resolve: (ending: Ending) => void
  readonly #choices: Choice[] = []
  /** Tokens that the engine made while the reader was slow: a count per choice, never their text. */
  readonly #unsent: Array<{ choice: Choice; event: EngineEvent }> = []
  #isBlocked = false
  #openChoices = 0
  #promptTokens = 0
  #cachedTokens = 0
  #outputTokens = 0
  #forget: (() => void) | undefined

  constructor(driver: EngineDriver, call: Call, resolve: (ending: Ending) => void) {
    this.#driver = driver
    this.#call = call
    this.#resolve = resolve
  }

  begin(scripts: Scripts): void {
    const { request, plan, lease, cancellation } = this.#call
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
      this.#promptTokens = script.promptTokens
    }
    this.#forget = cancellation.onCancel(() => this.#end({ kind: 'cancelled' }))
  }

  #onEvent(choice: Choice, event: EngineEvent): void {
    if (this.#isBlocked) this.#unsent.push({ choice, event })
    else this.#relay(choice, event)
  }

  #relay(choice: Choice, event: EngineEvent): void {
    const tokens = event.kind === 'first-token' ? 1 : event.tokens
    const isLast = event.kind === 'finished'
    if (event.kind === 'first-token') this.#cachedTokens = Math.max(this.#cachedTokens, event.cachedTokens)
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
    void wait.then(() => {
      this.#isBlocked = false
      while (!this.#isBlocked && this.#unsent.length > 0) {
        const { choice, event } = this.#unsent.shift()!
        this.#relay(choice, event)
      }
      if (!this.#isBlocked && this.#openChoices === 0) this.#end({ kind: 'finished', usage: this.#usage() })
    })
  }

  #usage(): Usage {
    return { promptTokens: this.#promptTokens, cachedTokens: this.#cachedTokens, outputTokens: this.#outputTokens }
  }

  #end(ending: Ending): void {
    this.#forget?.()
    this.#unsent.length = 0
    for (const choice of this.#choices) if (!choice.isDone) this.#driver.abort(choice.sequenceId)
    this.#resolve(ending)
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
