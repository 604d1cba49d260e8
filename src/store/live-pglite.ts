import { Worker } from 'node:worker_threads'
import type { Clock } from '../base/clock.ts'
import { msToUs, secondsToUs } from '../base/clock.ts'
import { explainMissingPart } from '../base/missing-part.ts'
import {
  type Database,
  DatabaseUnavailable,
  type Parameter,
  QueryCancelled,
  type QueryOptions,
  type Row,
  type RunOptions,
} from './database.ts'
import type { ThreadAnswer, ThreadData } from './live-pglite-thread.ts'
import { SESSION_SETTINGS } from './session-settings.ts'

/**
 * The embedded database as a queue in front of its thread. The thread gets one statement at a time, and a statement
 * cancelled while it waits is never started. PGlite cannot interrupt a running statement: its promise rejects when the
 * statement has ended. Statements are therefore small by design, and one that takes longer than `HANG_US` means that
 * the thread is lost. The thread is then ended, and the next statement starts another. On disk that is a crash, which
 * PostgreSQL's log survives. Whose statement comes first is decided before this queue (`assembly/laned-database.ts`).
 */
export interface PgliteOptions {
  readonly clock: Clock
  readonly path: string | undefined
  readonly queueMax?: number
}

/** Deleting a corpus of a hundred thousand passages takes seconds; nothing takes a minute. */
const HANG_US = secondsToUs(60)

/** First start of an empty folder, on a slow disk. */
const OPEN_US = secondsToUs(60)

/** Waiting statements; more means that the database cannot keep up, and refusing is better than waiting. */
const QUEUE_MAX = 1_000

interface Pending {
  readonly sql: string
  readonly parameters: readonly Parameter[] | undefined
  readonly resolve: (rows: readonly Row[]) => void
  readonly reject: (error: Error) => void
  readonly hangUs: number
  /** Set when the statement is cancelled while it runs. */
  cancelledBecause?: string
  forget: () => void
}

export class PgliteDatabase implements Database {
  readonly #options: PgliteOptions
  readonly #waiting: Pending[] = []
  #thread: Worker | undefined
  #opening: Promise<void> | undefined
  #running: { readonly id: number; readonly pending: Pending; readonly forgetHang: () => void } | undefined
  #lastId = 0
  #isClosed = false

  constructor(options: PgliteOptions) {
    this.#options = options
  }

  query(sql: string, parameters: readonly Parameter[], options: QueryOptions = {}): Promise<readonly Row[]> {
    return this.#enqueue(sql, parameters, options, HANG_US)
  }

  async run(script: string, options?: RunOptions): Promise<void> {
    await this.#enqueue(script, undefined, {}, hangUsOf(options))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const pending of this.#waiting.splice(0)) {
      pending.forget()
      pending.reject(new DatabaseUnavailable('The database is closing.'))
    }
    await this.#opening?.catch(() => {})
    const thread = this.#thread
    if (thread === undefined) return
    // A process that is ending must still wait for the last writes of the database.
    thread.ref()
    const exited = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
    thread.postMessage('close')
    const { clock } = this.#options
    const forget = clock.at(clock.now() + secondsToUs(5), () => void thread.terminate())
    await exited
    forget()
  }

  #enqueue(
    sql: string,
    parameters: readonly Parameter[] | undefined,
    { cancellation }: QueryOptions,
    hangUs: number,
  ): Promise<readonly Row[]> {
    if (this.#isClosed) return Promise.reject(new DatabaseUnavailable('The database is closed.'))
    if (cancellation?.isCancelled) return Promise.reject(new QueryCancelled(cancellation.because))
    const queueMax = this.#options.queueMax ?? QUEUE_MAX
    if (this.#waiting.length >= queueMax) {
      return Promise.reject(new DatabaseUnavailable(`${queueMax} statements wait for the embedded database.`))
    }
    return new Promise((resolve, reject) => {
      const pending: Pending = { sql, parameters, resolve, reject, hangUs, forget: () => {} }
      this.#waiting.push(pending)
      if (cancellation !== undefined) {
        pending.forget = cancellation.onCancel((because) => this.#cancel(pending, because))
      }
      this.#pump()
    })
  }

  /** A waiting statement leaves the queue; a running one finishes, and its result is ignored. */
  #cancel(pending: Pending, because: string): void {
    const place = this.#waiting.indexOf(pending)
    if (place >= 0) {
      this.#waiting.splice(place, 1)
      pending.reject(new QueryCancelled(because))
    } else pending.cancelledBecause = because
  }

  #pump(): void {
    if (this.#running !== undefined) return
    if (this.#thread === undefined) {
      this.#opening ??= this.#open().then(
        () => this.#opened(undefined),
        (error: Error) => this.#opened(error),
      )
      return
    }
    const pending = this.#waiting.shift()
    if (pending === undefined) return
    const { clock } = this.#options
    const id = ++this.#lastId
    const forgetHang = clock.at(clock.now() + pending.hangUs, () =>
      this.#lose('does not answer', 'Its thread is ended.'),
    )
    this.#running = { id, pending, forgetHang }
    const { sql, parameters } = pending
    this.#thread.postMessage(parameters === undefined ? { id, sql } : { id, sql, parameters })
  }

  #opened(error: Error | undefined): void {
    this.#opening = undefined
    if (error === undefined) {
      this.#pump()
      return
    }
    const missing = explainMissingPart(error, 'set DATABASE_URL to a PostgreSQL server')
    if (missing === undefined) this.#lose('could not be opened', error.message)
    else this.#lose('is not installed', missing)
  }

  async #open(): Promise<void> {
    const { clock, path } = this.#options
    const data: ThreadData = { path, session: SESSION_SETTINGS }
    const thread = new Worker(new URL('./live-pglite-thread.ts', import.meta.url), { workerData: data })
    thread.unref()
    let forget = (): void => {}
    await new Promise<void>((resolve, reject) => {
      forget = clock.at(clock.now() + OPEN_US, () => reject(new Error('it did not open')))
      thread.once('message', () => resolve())
      thread.once('error', reject)
      thread.once('exit', () => reject(new Error('its thread ended while opening')))
    }).finally(() => forget())
    thread.on('message', (answer: ThreadAnswer) => this.#onAnswer(answer))
    thread.on('error', (error) => this.#lose('was lost', String(error)))
    thread.on('exit', () => {
      if (this.#thread === thread) this.#lose('was lost', 'Its thread ended.')
    })
    this.#thread = thread
  }

  #onAnswer(answer: ThreadAnswer): void {
    const running = this.#running
    if (running === undefined || running.id !== answer.id) return
    if ('error' in answer && isBeyondRepair(answer.error.code)) {
      this.#lose('was lost', `${answer.error.message} (in: ${running.pending.sql.trim().slice(0, 60)})`)
      return
    }
    this.#running = undefined
    running.forgetHang()
    running.pending.forget()
    const { cancelledBecause } = running.pending
    if (cancelledBecause !== undefined) running.pending.reject(new QueryCancelled(cancelledBecause))
    else if ('rows' in answer) running.pending.resolve(answer.rows)
    else running.pending.reject(Object.assign(new Error(answer.error.message), { code: answer.error.code }))
    this.#pump()
  }

  /** The thread is lost: waiting statements fail, and the next one starts another thread. */
  #lose(what: string, detail: string): void {
    const thread = this.#thread
    this.#thread = undefined
    void thread?.terminate()
    const running = this.#running === undefined ? [] : [this.#running.pending]
    const waiting = [...running, ...this.#waiting.splice(0)]
    this.#running?.forgetHang()
    this.#running = undefined
    for (const pending of waiting) {
      pending.forget()
      pending.reject(new DatabaseUnavailable(`The embedded database ${what}.`, detail))
    }
  }
}

const hangUsOf = (options: RunOptions | undefined): number =>
  options?.msMax === undefined ? HANG_US : msToUs(options.msMax)

/**
 * PostgreSQL's errors have a code. An error without one is WebAssembly's own, after which its memory cannot be trusted.
 * Nor can its stack when PostgreSQL finds it too deep: none of our statements is that deep, and the error was seen to
 * repeat until a restart. Codes that begin with 58 or XX say that files are missing or broken: opening the folder again
 * repairs what PostgreSQL's log can repair.
 */
const isBeyondRepair = (code: string | undefined): boolean =>
  code === undefined || code === STACK_TOO_DEEP || /^(58|XX)/.test(code)

const STACK_TOO_DEEP = '54001'
