import { assemble } from '../../src/assembly/assemble.ts'
import { engineOptionsOf } from '../../src/assembly/engine-options.ts'
import { EngineDriver } from '../../src/backends/engine-driver.ts'
import { type Script, type Scripts, SimulatedBackend } from '../../src/backends/simulated.ts'
import { Cancellation } from '../../src/base/cancellation.ts'
import type { Clock, Instant } from '../../src/base/clock.ts'
import { VirtualClock } from '../../src/base/virtual-clock.ts'
import { buildConfig } from '../../src/config/load.ts'
import type { Config } from '../../src/config/schema.ts'
import type { Delta, Usage } from '../../src/domain/delta.ts'
import type { Entry, Settled } from '../../src/domain/entry.ts'
import type { Replica } from '../../src/domain/fleet.ts'
import type { Refusal } from '../../src/domain/outcome.ts'
import type { Request } from '../../src/domain/request.ts'
import { Engine } from '../../src/engine/engine.ts'
import { fullWorkPrices } from '../../src/engine/full-work.ts'
import type { AuditTrail } from '../../src/lifecycle/audit-ports.ts'
import { ControlLoop } from '../../src/lifecycle/control-loop.ts'
import type { Books } from '../../src/lifecycle/ledger-ports.ts'
import type { Platform } from '../../src/lifecycle/platform.ts'
import type { AnswerCache, AnswerHead, Backend, Capacity, Sink } from '../../src/lifecycle/ports.ts'
import type { Retriever } from '../../src/lifecycle/retrieval-ports.ts'
import type { Screener } from '../../src/lifecycle/screening-ports.ts'
import { serveRequest } from '../../src/lifecycle/serve-request.ts'
import { checkLaws } from '../laws/check-laws.ts'
import { makeRequest } from './requests.ts'
import { ScriptedBackend, type Turnout } from './scripted-backend.ts'
import { MODEL, type Tree, testTree } from './start-platform.ts'

/**
 * A platform in virtual time, assembled as the server assembles it, with backends that a test scripts: what happens
 * within one instant can be looked at, and an hour costs nothing.
 */
export interface WorldOptions {
  readonly replicas?: number
  readonly concurrencyMax?: number
  readonly queueMax?: number
  readonly waitMsMax?: number
  /** Further sections of the configuration, whole. */
  readonly tree?: Tree
  /** The clock that the platform sees, around the one that runs. */
  readonly wrapClock?: (clock: VirtualClock) => Clock
  /** Where passages come from; nothing is ever found if absent. */
  readonly retriever?: (clock: Clock) => Retriever
  /** Looks at requests and answers; nobody does if absent. */
  readonly screener?: Screener | ((clock: Clock) => Screener)
  /** What was answered before; nothing is kept if absent. */
  readonly answers?: (clock: Clock) => AnswerCache
  /** What is audited; nothing is if absent. */
  readonly audit?: (clock: Clock) => AuditTrail
  /** Who used what; nobody writes it down if absent. */
  readonly books?: Books
  /** Room at a replica that is new; all of it if absent. */
  readonly capacity?: Capacity
}

export interface Served {
  readonly request: Request
  readonly cancellation: Cancellation
  readonly sink: RecordingSink
  readonly done: Promise<Settled>
  /** How it ended, once it has. */
  settled: Settled | undefined
}

export class VirtualWorld {
  readonly virtual = new VirtualClock(1_000_000)
  readonly clock: Clock
  readonly entries: Entry[] = []
  readonly platform: Platform
  readonly config: Config
  readonly #concurrencyMax: number
  #count = 0

  private constructor(options: WorldOptions, backendOf: (world: VirtualWorld, replica: Replica) => Backend) {
    const { replicas = 1, concurrencyMax = 1, queueMax = 100, waitMsMax = 10_000 } = options
    this.clock = options.wrapClock?.(this.virtual) ?? this.virtual
    this.#concurrencyMax = concurrencyMax
    const pool = { model: MODEL, backend: { kind: 'simulated' }, replicas, limit: { kind: 'fixed', concurrencyMax } }
    const tree = testTree({ pools: [pool], queue: { requestsMax: queueMax, waitMsMax }, ...options.tree })
    this.config = buildConfig({ path: 'test.yaml', tree, lineOf: () => undefined }, {})
    const backends = new Map<string, Backend>()
    const { clock } = this
    const { screener } = options
    this.platform = assemble(this.config, {
      clock,
      journal: { record: (entry) => void this.entries.push(entry) },
      backends: {
        of: (replica) => {
          const backend = backends.get(replica.id) ?? backendOf(this, replica)
          backends.set(replica.id, backend)
          return backend
        },
      },
      ...(options.retriever !== undefined && { retriever: options.retriever(clock) }),
      ...(screener !== undefined && { screener: typeof screener === 'function' ? screener(clock) : screener }),
      ...(options.answers !== undefined && { answers: options.answers(clock) }),
      ...(options.audit !== undefined && { audit: options.audit(clock) }),
      ...(options.books !== undefined && { books: options.books }),
      ...(options.capacity !== undefined && { capacity: options.capacity }),
    })
  }

  /** Every attempt goes as the test says, in order; the last turnout repeats. */
  static async scripted(
    turnouts: readonly Turnout[],
    options: WorldOptions = {},
  ): Promise<{ world: VirtualWorld; backend: ScriptedBackend }> {
    let backend: ScriptedBackend | undefined
    const world = new VirtualWorld(options, ({ clock }) => {
      backend ??= new ScriptedBackend(clock, turnouts)
      return backend
    })
    await world.probe()
    return { world, backend: backend! }
  }

  /** Backends of the test's own. */
  static async of(backendOf: (clock: Clock) => Backend, options: WorldOptions = {}): Promise<VirtualWorld> {
    const world = new VirtualWorld(options, ({ clock }) => backendOf(clock))
    await world.probe()
    return world
  }

  /** Real simulated engines, one per replica. */
  static async simulated(
    script: Script,
    options: WorldOptions = {},
  ): Promise<{ world: VirtualWorld; drivers: EngineDriver[] }> {
    const drivers: EngineDriver[] = []
    const world = new VirtualWorld(options, ({ clock, config }) => {
      const engine = engineOptionsOf(config, 'h100-llama-8b')
      const driver = new EngineDriver(new Engine(engine), clock)
      drivers.push(driver)
      const scriptsFor: Scripts['scriptsFor'] = ({ choiceCount }) => ({
        kind: 'made',
        scripts: Array.from({ length: choiceCount }, (_, i) => ({ ...script, sharesPrompt: i > 0 })),
      })
      return new SimulatedBackend(driver, { scriptsFor }, fullWorkPrices(engine))
    })
    await world.probe()
    return { world, drivers }
  }

  /** Every replica reports and becomes usable; then one tick. */
  async probe(): Promise<void> {
    await new ControlLoop(this.platform, 1_000_000).lookAndTick()
  }

  /** A request arrives now. */
  serve(
    overrides: Partial<Request> = {},
    sink = new RecordingSink(),
    cancellation: Cancellation = new Cancellation(),
  ): Served {
    const id = `req_${++this.#count}`
    const request = makeRequest({ id, arrivedAt: this.clock.now(), ...overrides })
    const done = serveRequest(this.platform, request, cancellation, sink)
    const served: Served = { request, cancellation, sink, done, settled: undefined }
    done.then(
      (settled) => {
        served.settled = settled
      },
      () => {},
    )
    return served
  }

  /** Calls `fn` at this many microseconds from now. */
  after(delayUs: number, fn: () => void): void {
    this.virtual.at(this.virtual.now() + delayUs, fn)
  }

  run(untilAt?: Instant): Promise<void> {
    return this.virtual.run(untilAt)
  }

  /** What is still held by somebody, has not ended once, or breaks a law: nothing, when a run is over. */
  unrest(): string[] {
    const { waiting, inFlight } = this.platform.turnstile.view()
    const left = { live: this.platform.liveCount, waiting, inFlight }
    return [
      ...checkLaws(this.entries, { isOver: true, concurrencyMaxOf: () => this.#concurrencyMax }).map(
        ({ law, ticketId, what }) => `${law} ${ticketId}: ${what}`,
      ),
      ...Object.entries(left).flatMap(([what, count]) => (count === 0 ? [] : [`${count} ${what}`])),
    ]
  }

  kinds(ticketId: string): string[] {
    return this.entries.flatMap((entry) => ('ticketId' in entry && entry.ticketId === ticketId ? [entry.kind] : []))
  }
}

/** A client that remembers what it was told, in order. Its `write` can be made slow or faulty. */
export class RecordingSink implements Sink {
  readonly calls: string[] = []
  tokens = 0
  head: AnswerHead | undefined
  usage: Usage | undefined
  flagged: readonly string[] | undefined
  refusal: Refusal | undefined
  onWrite: (delta: Delta) => Promise<void> | undefined = () => undefined

  start(head: AnswerHead): void {
    this.head = head
    this.calls.push('start')
  }

  write(delta: Delta): Promise<void> | undefined {
    this.tokens += delta.tokens
    this.calls.push('write')
    return this.onWrite(delta)
  }

  finish(usage: Usage, flagged?: readonly string[]): void {
    this.usage = usage
    this.flagged = flagged
    this.calls.push('finish')
  }

  fail(refusal: Refusal): void {
    this.refusal = refusal
    this.calls.push('fail')
  }

  /** `start write×n finish` as it should be: one head before the first delta, one end after the last. */
  get isWellFormed(): boolean {
    return /^(start (write )*)?((finish|fail) )?$/.test(this.calls.map((call) => `${call} `).join(''))
  }
}
