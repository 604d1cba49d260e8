import { type LiveStore, makeLiveStore } from '../assembly/live-store.ts'
import { type Clock, type Instant, msToUs, secondsToUs } from '../base/clock.ts'
import { detailOf } from '../base/detail-of.ts'
import type { Io, Running } from '../base/running.ts'
import { redisUrlsOf } from '../config/check-sharing.ts'
import type { Config } from '../config/schema.ts'
import type { HostAdmin } from '../main/host-admin.ts'
import { welcome } from '../main/welcome.ts'
import { offerSharing } from '../sharing/line-sharing.ts'
import { MemorySharing } from '../sharing/memory-sharing.ts'
import { offerDatabase } from '../store/line-database.ts'
import { makeLiveLog } from '../telemetry/live-log.ts'
import { lastingMetrics, mergeMetrics } from '../telemetry/merge-metrics.ts'
import { LiveChild } from './live-child.ts'
import { bindSockets, type HostSockets } from './live-sockets.ts'
import { Replacements } from './replacements.ts'
import type { SeatOrder } from './seat-order.ts'

/**
 * The supervisor of a host: it owns the sockets, the embedded database and, without Redis, the lease store, and serves
 * no request itself. Each of its processes is a gateway like any other.
 *
 *     clients ──▶ one socket ──▶ process 1 … N ──▶ engines
 *                                   │ line
 *                               supervisor: leases, embedded database, metrics of all, replacement, restart
 *
 * Bounds: N processes that serve, at most N more that leave; calls between processes have the line's bounds.
 */
export interface SupervisorOptions {
  readonly config: Config
  readonly processCount: number
  readonly io: Io
  readonly clock: Clock
  /** How a process reads the settings: the same file and flags. */
  readonly settings: Pick<SeatOrder, 'configPath' | 'flags'>
  /** Processes end as soon as they start, and none is left. */
  readonly onLost: (because: string) => void
}

/** Time for one process to answer another's question. */
const ANSWER_US_MAX = secondsToUs(2)

/** One signal to a group reaches its processes within this time of each other. */
const SAME_SIGNAL_US = msToUs(300)

type RestartBegun = Awaited<ReturnType<HostAdmin['restart']>>

export type RestartAnswer = { readonly kind: 'restarted' } | { readonly kind: 'refused'; readonly because: string }

export class LiveSupervisor implements Running {
  readonly #options: SupervisorOptions
  readonly #sockets: HostSockets
  readonly #store: LiveStore | undefined
  readonly #sharing: MemorySharing | undefined
  readonly #replacements = new Replacements()
  readonly #log = makeLiveLog()
  /** Those that serve, by number; one that has ended stays until it is replaced. */
  readonly #seats = new Map<number, LiveChild>()
  readonly #starting = new Set<LiveChild>()
  readonly #leaving = new Set<LiveChild>()
  /** Counters of processes that have ended. */
  #lasting = ''
  #restarting: Promise<RestartAnswer> | undefined
  #isStopping = false

  static async start(options: SupervisorOptions): Promise<LiveSupervisor> {
    const { config, clock, io, processCount } = options
    const sockets = await bindSockets(config)
    const store = config.store.url === undefined ? await makeLiveStore(config, clock, io.err) : undefined
    const supervisor = new LiveSupervisor(options, sockets, store)
    try {
      const numbers = Array.from({ length: processCount }, (_, i) => i + 1)
      await Promise.all(numbers.map((number) => supervisor.#seat(number)))
    } catch (error) {
      await supervisor.close()
      throw error
    }
    io.out(welcome(config, sockets.address))
    io.err(`spillway: ${processCount} processes serve (${supervisor.#pids()})`)
    return supervisor
  }

  private constructor(options: SupervisorOptions, sockets: HostSockets, store: LiveStore | undefined) {
    this.#options = options
    this.#sockets = sockets
    this.#store = store
    this.#sharing = redisUrlsOf(options.config).length > 0 ? undefined : new MemorySharing(options.clock)
  }

  get address(): string {
    return this.#sockets.address
  }

  /** The file is read again by every process; the first one's answer stands for all. */
  async reload(because: string): Promise<unknown> {
    const [first, ...others] = this.#serving()
    if (first === undefined) throw new Error('no process serves')
    const answer = await first.line.ask('reload', { by: 'operator', because }, secondsToUs(30))
    await Promise.all(others.map((child) => this.#ask(child, 'reload', { by: 'operator', because })))
    return answer
  }

  /** Replaces every process, one after the other: the new one is ready before the old one leaves. */
  restart(): Promise<RestartAnswer> {
    if (this.#isStopping) return Promise.resolve({ kind: 'refused', because: 'the host is stopping' })
    if (this.#restarting !== undefined) {
      return Promise.resolve({ kind: 'refused', because: 'a restart is under way already' })
    }
    this.#restarting = this.#restart().finally(() => {
      this.#restarting = undefined
    })
    return this.#restarting
  }

  async close(): Promise<void> {
    this.#isStopping = true
    // Processes that still serve have descriptors of their own; from here they decide when the socket closes.
    this.#sockets.close()
    const { shutdownDelayMs, shutdownGraceMs } = this.#options.config.server
    const graceUs = msToUs(shutdownDelayMs + shutdownGraceMs)
    const all = [...this.#seats.values(), ...this.#leaving]
    await Promise.all([...all.map((child) => child.stop(graceUs)), ...[...this.#starting].map(endNow)])
    await this.#store?.close()
    await this.#log.close()
  }

  async #restart(): Promise<RestartAnswer> {
    const { io } = this.#options
    // No more than one generation leaves at a time.
    await Promise.all([...this.#leaving].map(({ ended }) => ended))
    for (const number of [...this.#seats.keys()].toSorted((a, b) => a - b)) {
      if (this.#isStopping) return { kind: 'refused', because: 'the host is stopping' }
      const answer = await this.#renew(number)
      if (answer.kind === 'refused') return answer
    }
    io.err(`spillway: restarted (${this.#pids()})`)
    return { kind: 'restarted' }
  }

  /** The new process serves before the old one leaves. */
  async #renew(number: number): Promise<RestartAnswer> {
    const old = this.#seats.get(number) as LiveChild
    try {
      await this.#seat(number)
    } catch (error) {
      const because = `${detailOf(error)} The old process stays.`
      this.#options.io.err(`spillway: restart: ${because}`)
      return { kind: 'refused', because }
    }
    if (!old.isEnded) await this.#dismiss(old)
    return { kind: 'restarted' }
  }

  /** A signal came to one process. If it was meant for all of them, the supervisor has it too by now, or soon. */
  #toldToStop(child: LiveChild): void {
    const { clock } = this.#options
    clock.at(clock.now() + SAME_SIGNAL_US, () => {
      const isSeated = this.#seats.get(child.number) === child
      if (!this.#isStopping && isSeated && this.#restarting === undefined) void this.#renew(child.number)
    })
  }

  async #dismiss(old: LiveChild): Promise<void> {
    this.#leaving.add(old)
    void old.ended.then(() => this.#leaving.delete(old))
    await old.retire(msToUs(this.#options.config.server.shutdownGraceMs))
  }

  /** Starts a process, which has this seat when it listens; rejects when it cannot start. */
  async #seat(number: number): Promise<LiveChild> {
    const { clock, config, settings } = this.#options
    const { listenFd, metricsFd } = this.#sockets
    const order: SeatOrder = {
      ...settings,
      number,
      hasStore: this.#store !== undefined,
      hasSharing: this.#sharing !== undefined,
      hasMetricsSocket: config.server.metricsPort !== undefined,
    }
    const child = new LiveChild({ clock, order, listenFd, metricsFd, onLog: (lines) => this.#passLog(lines) })
    this.#starting.add(child)
    this.#offer(child)
    void child.ended.then(() => this.#bury(child))
    try {
      await child.begin()
    } finally {
      this.#starting.delete(child)
    }
    this.#seats.set(number, child)
    this.#watch(child)
    return child
  }

  /** What a process may ask of its supervisor. */
  #offer(child: LiveChild): void {
    const { line } = child
    const store = this.#store
    if (store !== undefined) offerDatabase(line, store.database, () => store.ready())
    if (this.#sharing !== undefined) offerSharing(line, this.#sharing, (id) => child.gatewayIds.add(id))
    line.on('host-metrics', (own: string) => this.#metrics(child, own))
    line.on('host-ask', ({ what, value }: { readonly what: string; readonly value: unknown }) =>
      Promise.all(this.#others(child).map((other) => this.#ask(other, what, value))),
    )
    line.on('told-to-stop', () => this.#toldToStop(child))
    line.on('host-restart', (because: string) => this.#beginRestart(because))
  }

  /** For a process that asks on behalf of an administrator: the end of the restart may be the end of that process. */
  #beginRestart(because: string): RestartBegun {
    const isBusy = this.#isStopping || this.#restarting !== undefined
    if (isBusy) {
      const why = this.#isStopping ? 'this host is stopping' : 'a restart is under way already'
      return { kind: 'refused', refusal: { code: 'nothing-to-restart', because: why, param: null } }
    }
    this.#options.io.err(`spillway: restarting (${because})`)
    void this.restart()
    return { kind: 'begun', processes: this.#options.processCount }
  }

  async #ask(child: LiveChild, what: string, value: unknown): Promise<unknown> {
    try {
      return await child.line.ask(what, value, ANSWER_US_MAX)
    } catch {
      return undefined
    }
  }

  async #metrics(asking: LiveChild, own: string): Promise<string> {
    asking.metrics = own
    await Promise.all(
      this.#others(asking).map(async (child) => {
        const text = await this.#ask(child, 'metrics', undefined)
        if (typeof text === 'string') child.metrics = text
      }),
    )
    const living = [...this.#seats.values()].map(({ number, metrics }) => ({ process: number, text: metrics }))
    const leaving = [...this.#leaving].map(({ metrics }) => ({ process: undefined, text: metrics }))
    return mergeMetrics([...living, ...leaving, { process: undefined, text: this.#lasting }])
  }

  /** Everything that a process leaves behind: its shares go back, its counters stay. */
  #bury(child: LiveChild): void {
    for (const id of child.gatewayIds) void this.#sharing?.leave(id)
    this.#lasting = lastingMetrics([
      { process: undefined, text: this.#lasting },
      { process: undefined, text: child.metrics },
    ])
    child.metrics = ''
  }

  /** A process that ends without being told is replaced. */
  #watch(child: LiveChild): void {
    void child.ended.then(({ code, signal }) => {
      if (this.#isStopping || child.isLeaving || this.#seats.get(child.number) !== child) return
      const how = signal === null ? `with code ${code}` : `of ${signal}`
      this.#options.io.err(`spillway: process ${child.number} (${child.pid}) ended ${how}`)
      this.#replace(child, child.readyAt)
    })
  }

  /** `readyAt` is when the process that ended last was ready; undefined when it never was. */
  #replace(child: LiveChild, readyAt: Instant | undefined): void {
    const { clock, io, onLost } = this.#options
    const next = this.#replacements.ended(clock.now(), readyAt, this.#serving().length)
    if (next.kind === 'give-up') {
      onLost('every new process ends as soon as it starts; what they said is above')
      return
    }
    const { number } = child
    clock.at(clock.now() + next.afterUs, () => {
      if (this.#isStopping || this.#seats.get(number) !== child) return
      this.#seat(number).then(
        ({ pid }) => io.err(`spillway: process ${number} is back (${pid})`),
        (error: unknown) => {
          if (this.#isStopping) return
          io.err(`spillway: ${detailOf(error)}`)
          this.#replace(child, undefined)
        },
      )
    })
  }

  #serving(): LiveChild[] {
    return [...this.#seats.values()].filter(({ isServing }) => isServing)
  }

  /** Everybody else who can answer, those who are leaving too: their requests are still under way. */
  #others(child: LiveChild): LiveChild[] {
    return [...this.#seats.values(), ...this.#leaving].filter(
      (other) => other !== child && other.readyAt !== undefined && !other.isEnded,
    )
  }

  #passLog(lines: string): void {
    try {
      this.#log.write(lines)
      this.#log.flush?.()
    } catch {
      // Its reader has stopped: lines are lost, as they are in one process.
    }
  }

  #pids(): string {
    return [...this.#seats].map(([number, { pid }]) => `${number}: ${pid}`).join(', ')
  }
}

async function endNow(child: LiveChild): Promise<void> {
  child.kill()
  await child.ended
}
