import { type ChildProcess, spawn } from 'node:child_process'
import { getCompileCacheDir } from 'node:module'
import { fileURLToPath } from 'node:url'
import { CallLine, LineAway, type LineMessage } from '../base/call-line.ts'
import { type Clock, type Instant, secondsToUs } from '../base/clock.ts'
import { ConfigError } from '../config/config-error.ts'
import type { SeatOrder } from './seat-order.ts'

/** One process of the host, as its supervisor sees it. */
export interface ChildEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface LiveChildOptions {
  readonly clock: Clock
  readonly order: SeatOrder
  readonly listenFd: number
  readonly metricsFd: number | undefined
  /** Whole lines of its log. */
  readonly onLog: (lines: string) => void
}

/** Modules, engines’ first reports and the store take seconds; on a machine with nothing to spare, minutes. */
const START_US_MAX = secondsToUs(180)

/** A process that was told to stop has its own grace; beyond it and this, it is killed. */
const KILL_AFTER_US = secondsToUs(15)

/** A log line without an end that is longer than this is passed on as it is. */
const LINE_CHARS_MAX = 1_000_000

export class LiveChild {
  readonly number: number
  readonly line: CallLine
  readonly ended: Promise<ChildEnd>
  /** Names under which it is known to the lease store. */
  readonly gatewayIds = new Set<string>()
  readyAt: Instant | undefined
  /** It was told to leave or to stop. */
  isLeaving = false
  isEnded = false
  /** The last metrics that it gave. */
  metrics = ''
  readonly #process: ChildProcess
  readonly #options: LiveChildOptions

  constructor(options: LiveChildOptions) {
    const { clock, order, listenFd, metricsFd } = options
    this.#options = options
    this.number = order.number
    const entry = fileURLToPath(new URL('./live-process.ts', import.meta.url))
    const child = spawn(process.execPath, [...process.execArgv, entry], {
      stdio: ['ignore', 'pipe', 'inherit', 'ipc', listenFd, metricsFd ?? 'ignore'],
      serialization: 'advanced',
      // What Node has compiled for the supervisor need not be compiled again.
      env: { NODE_COMPILE_CACHE: getCompileCacheDir(), ...process.env },
    })
    this.#process = child
    this.line = new CallLine({ clock, send: (message) => void child.send(message) })
    child.on('message', (message) => this.line.take(message as LineMessage))
    child.on('error', (error) => this.line.close(error.message))
    child.on('disconnect', () => this.line.close('the process has ended'))
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }))
      // A process that could not be started has no exit.
      child.once('error', () => resolve({ code: null, signal: null }))
    })
    void this.ended.then(() => {
      this.isEnded = true
      this.line.close('the process has ended')
    })
    this.#passLog(child)
  }

  get pid(): number {
    return this.#process.pid ?? 0
  }

  get isServing(): boolean {
    return this.readyAt !== undefined && !this.isLeaving && !this.isEnded
  }

  /** Resolves when it listens; rejects with the reason when it cannot, and the process is then ended. */
  async begin(): Promise<void> {
    const { clock, order } = this.#options
    try {
      await this.line.ask('begin', order, START_US_MAX)
      this.readyAt = clock.now()
    } catch (error) {
      this.kill()
      const { code, signal } = await this.ended
      const because = error instanceof LineAway ? `it ended (${signal ?? `code ${code}`})` : (error as Error).message
      throw new ConfigError([`process ${this.number} could not start: ${because}. What it said is above.`])
    }
  }

  /** It leaves the socket to the others. Resolves when it has; its answers end later (`ended`). */
  async retire(graceUs: number): Promise<void> {
    this.isLeaving = true
    this.#killAfter(graceUs)
    await this.line.ask('retire', undefined, START_US_MAX).catch(() => this.kill())
  }

  /** Stops as a server does that is alone. Resolves when the process has ended. */
  async stop(graceUs: number): Promise<void> {
    this.isLeaving = true
    this.#killAfter(graceUs)
    this.line.say('stop', undefined)
    await this.ended
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }

  #killAfter(graceUs: number): void {
    const { clock } = this.#options
    const forget = clock.at(clock.now() + graceUs + KILL_AFTER_US, () => this.kill())
    void this.ended.then(forget)
  }

  /** Lines of several processes go into one stream: only whole ones are passed on. */
  #passLog({ stdout }: ChildProcess): void {
    let begun = ''
    stdout?.setEncoding('utf8')
    stdout?.on('data', (text: string) => {
      const all = begun + text
      const end = all.length > LINE_CHARS_MAX ? all.length : all.lastIndexOf('\n') + 1
      begun = all.slice(end)
      if (end > 0) this.#options.onLog(all.slice(0, end))
    })
    stdout?.on('end', () => {
      if (begun !== '') this.#options.onLog(`${begun}\n`)
    })
  }
}
