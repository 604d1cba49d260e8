import type { Replica } from '../domain/fleet.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { Backend, Call, Ending, ReplicaReport } from '../lifecycle/ports.ts'
import type { BatchDriver } from './engine-driver.ts'
import type { ResultMade, SimulatedResults } from './simulated-results.ts'

/**
 * A model in this process that answers without streaming: embeddings, ranking, vision. Each text, pair or image of a
 * request is an item in a dynamically batching engine; the answer comes when the last item is done.
 */
export class SimulatedBatchBackend implements Backend {
  readonly #driver: BatchDriver
  readonly #results: SimulatedResults

  constructor(driver: BatchDriver, results: SimulatedResults) {
    this.#driver = driver
    this.#results = results
  }

  /** `onTaken` is called when the engine has queued the call: from then on the engine does not refuse it. */
  async generate(call: Call, onTaken?: () => void): Promise<Ending> {
    const { request, cancellation } = call
    if (cancellation.isCancelled) return { kind: 'cancelled' }
    const made = await this.#results.resultFor(request, cancellation)
    if (cancellation.isCancelled) return { kind: 'cancelled' }
    if (made.kind === 'refused') return { kind: 'refused', refusal: hopeless(made) }
    return new Promise((resolve, reject) => {
      new BatchAnswer(this.#driver, call, made, { resolve, reject }).begin(onTaken)
    })
  }

  probe(_replica: Replica): Promise<ReplicaReport> {
    const { running, waiting } = this.#driver.view()
    const because = 'it runs in this process'
    return Promise.resolve({ isReady: true, because, runningCount: running, waitingCount: waiting })
  }
}

interface Settle {
  readonly resolve: (ending: Ending) => void
  readonly reject: (error: unknown) => void
}

/** The items of one call in the engine. Ends once; then it holds no item. */
class BatchAnswer {
  readonly #driver: BatchDriver
  readonly #call: Call
  readonly #made: Extract<ResultMade, { kind: 'made' }>
  readonly #settle: Settle
  readonly #open = new Set<string>()
  #forget: () => void = () => {}
  #hasEnded = false

  constructor(driver: BatchDriver, call: Call, made: Extract<ResultMade, { kind: 'made' }>, settle: Settle) {
    this.#driver = driver
    this.#call = call
    this.#made = made
    this.#settle = settle
  }

  begin(onTaken: (() => void) | undefined): void {
    const { lease, cancellation } = this.#call
    this.#forget = cancellation.onCancel(() => this.#end({ kind: 'cancelled' }))
    for (const [index, promptTokens] of this.#made.itemTokens.entries()) {
      const id = `${lease.id}.${index}`
      const submission = this.#driver.submit({ id, promptTokens }, () => this.#finish(id))
      if (submission.kind === 'taken') this.#open.add(id)
      else {
        this.#end({ kind: 'refused', refusal: full(`${submission.because}.`) })
        return
      }
    }
    onTaken?.()
  }

  #finish(id: string): void {
    this.#open.delete(id)
    if (this.#open.size > 0 || this.#hasEnded) return
    const { result, itemTokens } = this.#made
    const promptTokens = itemTokens.reduce((sum, tokens) => sum + tokens, 0)
    try {
      // There is one delta only, so a slow reader need not be waited for.
      void this.#call.sink.write({ tokens: 0, result })
      this.#end({ kind: 'finished', usage: { promptTokens, cachedTokens: 0, outputTokens: 0 } })
    } catch (error) {
      this.#letGo()
      this.#settle.reject(error)
    }
  }

  #end(ending: Ending): void {
    if (this.#hasEnded) return
    this.#letGo()
    this.#settle.resolve(ending)
  }

  #letGo(): void {
    this.#hasEnded = true
    this.#forget()
    for (const id of this.#open) this.#driver.abort(id)
    this.#open.clear()
  }
}

const hopeless = ({ because, param, isTooLong }: Extract<ResultMade, { kind: 'refused' }>): Refusal => ({
  code: isTooLong === true ? 'context-length-exceeded' : 'replica-rejected-request',
  because,
  blame: 'request',
  retryAfterUs: undefined,
  param,
})

const full = (because: string): Refusal => ({
  code: 'replica-refused',
  because,
  blame: 'platform',
  retryAfterUs: 1_000_000,
})
