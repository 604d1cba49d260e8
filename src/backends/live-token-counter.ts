import { Worker } from 'node:worker_threads'
import type { Clock } from '../base/clock.ts'
import { msToUs, secondsToUs } from '../base/clock.ts'
import type { CountedTexts } from './count-tokens.ts'
import type { CountAnswer, CountAsk } from './live-token-thread.ts'

/**
 * Counts tokens exactly, off the event loop: one thread with the o200k tokenizer, started by the first ask (half a
 * second, 120 MB) and ended after a minute without one. A gateway whose prompts are far from every bound never loads a
 * tokenizer.
 *
 * Asks wait in one line, in order, at most `askedMax` of them and `askedOfTenantMax` of one tenant, and each for at most
 * `answerUsMax`, the start of the thread included. An ask that finds no place, or is not answered in time, gets
 * `undefined`: then nobody knows the size, and the engine decides. A tenant that keeps the thread busy takes exact
 * counts from others, and nothing else.
 */
export const TOKEN_COUNTER_DEFAULTS = {
  /** Asks that may wait: at 10 ms each, what can be answered in time. */
  askedMax: 32,
  askedOfTenantMax: 4,
  /** Texts of all asks that wait, in characters: they are copied to the thread one ask at a time. */
  charactersMax: 64_000_000,
  /** An ask's longest wait: a quarter of what a prompt of a full window takes an engine to read. */
  answerUsMax: msToUs(250),
  /** The thread's time for one ask: 2 MB of English. */
  workMsMax: 200,
  /** A thread that does not answer within this time hangs: it checks its own time every millisecond. */
  hangUs: secondsToUs(5),
  /** A start takes half a second on a quiet machine. */
  startUs: secondsToUs(30),
  idleUs: secondsToUs(60),
  /** After a thread was lost, none is started for this long. */
  restUs: secondsToUs(60),
}

export interface TokenCounterOptions {
  readonly clock: Clock
  readonly limits?: Partial<typeof TOKEN_COUNTER_DEFAULTS>
  /** The thread's module; a test may bring another. */
  readonly thread?: URL
}

export interface CountQuestion {
  readonly tenantId: string
  readonly texts: readonly string[]
  readonly tokensMax: number
}

interface Waiting {
  readonly id: number
  readonly question: CountQuestion
  readonly characters: number
  readonly resolve: (counted: CountedTexts | undefined) => void
  readonly forgetTimeout: () => void
}

export class TokenCounter {
  readonly #clock: Clock
  readonly #limits: typeof TOKEN_COUNTER_DEFAULTS
  readonly #module: URL
  /** In the order of their asks; the first one may be in the thread's hands. */
  readonly #waiting = new Map<number, Waiting>()
  readonly #askedBy = new Map<string, number>()
  #characters = 0
  #lastId = 0
  #thread: Worker | undefined
  #isReady = false
  /** The ask that the thread works at; its client may have stopped waiting. */
  #runningId: number | undefined
  #restsUntil = 0
  #forgetTimer: () => void = () => {}

  constructor({ clock, limits = {}, thread }: TokenCounterOptions) {
    this.#clock = clock
    this.#limits = { ...TOKEN_COUNTER_DEFAULTS, ...limits }
    this.#module = thread ?? new URL('./live-token-thread.ts', import.meta.url)
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  get isLoaded(): boolean {
    return this.#thread !== undefined
  }

  /** Never rejects; undefined when the count is not known in time. */
  count(question: CountQuestion): Promise<CountedTexts | undefined> {
    const characters = question.texts.reduce((sum, text) => sum + text.length, 0)
    if (!this.#hasPlace(question.tenantId, characters)) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const id = ++this.#lastId
      const timeoutAt = this.#clock.now() + this.#limits.answerUsMax
      const forgetTimeout = this.#clock.at(timeoutAt, () => this.#answer(id, undefined))
      this.#waiting.set(id, { id, question, characters, resolve, forgetTimeout })
      this.#askedBy.set(question.tenantId, (this.#askedBy.get(question.tenantId) ?? 0) + 1)
      this.#characters += characters
      this.#pump()
    })
  }

  close(): void {
    this.#end()
    this.#restsUntil = Number.POSITIVE_INFINITY
  }

  #hasPlace(tenantId: string, characters: number): boolean {
    const { askedMax, askedOfTenantMax, charactersMax } = this.#limits
    if (this.#thread === undefined && this.#clock.now() < this.#restsUntil) return false
    if (this.#waiting.size >= askedMax || this.#characters + characters > charactersMax) return false
    return (this.#askedBy.get(tenantId) ?? 0) < askedOfTenantMax
  }

  #pump(): void {
    if (this.#runningId !== undefined) return
    this.#thread ??= this.#start()
    if (!this.#isReady) return
    const [next] = this.#waiting.values()
    if (next === undefined) {
      this.#timer(this.#limits.idleUs, () => this.#end())
      return
    }
    this.#runningId = next.id
    this.#timer(this.#limits.hangUs, () => this.#lose())
    const { texts, tokensMax } = next.question
    this.#thread.postMessage({ id: next.id, texts, tokensMax, workMsMax: this.#limits.workMsMax } satisfies CountAsk)
  }

  #answer(id: number, counted: CountedTexts | undefined): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    waiting.forgetTimeout()
    const { tenantId } = waiting.question
    const left = (this.#askedBy.get(tenantId) ?? 1) - 1
    if (left === 0) this.#askedBy.delete(tenantId)
    else this.#askedBy.set(tenantId, left)
    this.#characters -= waiting.characters
    waiting.resolve(counted)
  }

  #start(): Worker {
    const thread = new Worker(this.#module)
    thread.unref()
    this.#timer(this.#limits.startUs, () => this.#lose())
    thread.on('message', (message: CountAnswer | 'ready') => {
      if (this.#thread !== thread) return
      this.#forgetTimer()
      if (message === 'ready') this.#isReady = true
      else {
        this.#runningId = undefined
        this.#answer(message.id, message.counted)
      }
      this.#pump()
    })
    thread.on('error', () => {
      if (this.#thread === thread) this.#lose()
    })
    return thread
  }

  #lose(): void {
    this.#restsUntil = this.#clock.now() + this.#limits.restUs
    this.#end()
  }

  #end(): void {
    this.#forgetTimer()
    const thread = this.#thread
    this.#thread = undefined
    this.#isReady = false
    this.#runningId = undefined
    for (const id of this.#waiting.keys()) this.#answer(id, undefined)
    void thread?.terminate()
  }

  #timer(durationUs: number, fn: () => void): void {
    this.#forgetTimer()
    this.#forgetTimer = this.#clock.at(this.#clock.now() + durationUs, fn)
  }
}
