import { Worker } from 'node:worker_threads'
import type { Clock } from './clock.ts'

/**
 * Who may ask a thread, and what happens when it does not answer? One thread for work that would hold up the event loop:
 * started by the first ask, ended when nobody has asked for a while. A server that never asks has no thread.
 *
 * Asks wait in one line, in order, each for a bounded time. One that finds no place, or is not answered in time, gets
 * `undefined`, and its asker does without. A thread that hangs, dies or does not start is given up, and none is started
 * for a while.
 *
 *   ask ─▶ line of waiting asks ─▶ the one that the thread works at ─▶ answer
 *            ▲ bounded in number, by tenant and in size     ▲ `hangUs`
 *
 * The thread says 'ready' when it can be asked, and answers `{ id, answer }` to `{ id, question }`.
 *
 * Bounds: `AskedThreadLimits`.
 */
export interface AskedThreadLimits {
  /** Asks that may wait, and those of one tenant. */
  readonly waitingMax: number
  readonly waitingOfTenantMax: number
  /** The size of one ask, in characters, and of all that wait together. */
  readonly charactersMax: number
  readonly charactersWaitingMax: number
  /** An ask's longest wait. */
  readonly answerUsMax: number
  /** A thread that does not answer one ask within this time hangs. */
  readonly hangUs: number
  readonly startUs: number
  readonly idleUs: number
  /** After a thread was lost, none is started for this long. */
  readonly restUs: number
}

export interface AskedThreadOptions {
  readonly clock: Clock
  readonly module: URL
  readonly limits: AskedThreadLimits
  /** Whether an ask waits while the thread starts. Otherwise it gets `undefined` at once. */
  readonly waitsForStart: boolean
}

export interface AskMessage<Question> {
  readonly id: number
  readonly question: Question
}

export interface AnswerMessage<Answer> {
  readonly id: number
  readonly answer: Answer
}

interface WaitingAsk<Question, Answer> {
  readonly question: Question
  readonly tenantId: string
  readonly characters: number
  readonly resolve: (answer: Answer | undefined) => void
  readonly forgetTimeout: () => void
}

export class AskedThread<Question, Answer> {
  readonly #options: AskedThreadOptions
  /** In the order of their asks; the first one may be in the thread's hands. */
  readonly #waiting = new Map<number, WaitingAsk<Question, Answer>>()
  readonly #waitingOf = new Map<string, number>()
  #characters = 0
  #lastId = 0
  #thread: Worker | undefined
  #isReady = false
  /** The ask that the thread works at; its asker may have stopped waiting. */
  #runningId: number | undefined
  #restsUntil = 0
  #forgetTimer: () => void = () => {}

  constructor(options: AskedThreadOptions) {
    this.#options = options
  }

  get waitingCount(): number {
    return this.#waiting.size
  }

  get isLoaded(): boolean {
    return this.#thread !== undefined
  }

  /** Never rejects; undefined when there is no answer in time. */
  ask(tenantId: string, question: Question, characters: number): Promise<Answer | undefined> {
    const { clock, limits, waitsForStart } = this.#options
    if (this.#thread === undefined && clock.now() < this.#restsUntil) return Promise.resolve(undefined)
    if (!this.#hasPlace(tenantId, characters)) return Promise.resolve(undefined)
    this.#thread ??= this.#start()
    if (!this.#isReady && !waitsForStart) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const id = ++this.#lastId
      const forgetTimeout = clock.at(clock.now() + limits.answerUsMax, () => this.#answer(id, undefined))
      this.#waiting.set(id, { question, tenantId, characters, resolve, forgetTimeout })
      this.#waitingOf.set(tenantId, (this.#waitingOf.get(tenantId) ?? 0) + 1)
      this.#characters += characters
      this.#pump()
    })
  }

  close(): void {
    this.#end()
    this.#restsUntil = Number.POSITIVE_INFINITY
  }

  #hasPlace(tenantId: string, characters: number): boolean {
    const { waitingMax, waitingOfTenantMax, charactersMax, charactersWaitingMax } = this.#options.limits
    if (characters > charactersMax || this.#characters + characters > charactersWaitingMax) return false
    return this.#waiting.size < waitingMax && (this.#waitingOf.get(tenantId) ?? 0) < waitingOfTenantMax
  }

  #pump(): void {
    if (!this.#isReady || this.#runningId !== undefined) return
    const { idleUs, hangUs } = this.#options.limits
    const [next] = this.#waiting
    if (next === undefined) {
      this.#timer(idleUs, () => this.#end())
      return
    }
    const [id, { question }] = next
    this.#runningId = id
    this.#timer(hangUs, () => this.#lose())
    this.#thread?.postMessage({ id, question } satisfies AskMessage<Question>)
  }

  #answer(id: number, answer: Answer | undefined): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    waiting.forgetTimeout()
    const left = (this.#waitingOf.get(waiting.tenantId) ?? 1) - 1
    if (left === 0) this.#waitingOf.delete(waiting.tenantId)
    else this.#waitingOf.set(waiting.tenantId, left)
    this.#characters -= waiting.characters
    waiting.resolve(answer)
  }

  #start(): Worker {
    const thread = new Worker(this.#options.module)
    thread.unref()
    this.#timer(this.#options.limits.startUs, () => this.#lose())
    thread.on('message', (message: AnswerMessage<Answer> | 'ready') => {
      if (this.#thread !== thread) return
      this.#forgetTimer()
      if (message === 'ready') this.#isReady = true
      else {
        this.#runningId = undefined
        this.#answer(message.id, message.answer)
      }
      this.#pump()
    })
    thread.on('error', () => {
      if (this.#thread === thread) this.#lose()
    })
    return thread
  }

  #lose(): void {
    const { clock, limits } = this.#options
    this.#restsUntil = clock.now() + limits.restUs
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
    const { clock } = this.#options
    this.#forgetTimer()
    this.#forgetTimer = clock.at(clock.now() + durationUs, fn)
  }
}
