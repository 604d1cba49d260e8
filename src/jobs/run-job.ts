import { Cancellation } from '../base/cancellation.ts'
import { type CancelTimer, type Clock, type Instant, msToUs, usToMs } from '../base/clock.ts'
import {
  type ClaimedLine,
  isBackgroundJob,
  type Job,
  type JobEnding,
  type JobState,
  type LineAnswer,
} from '../domain/job.ts'
import type {
  BackgroundKeeper,
  FileBytes,
  JobStore,
  LineAsk,
  LineRunner,
  NoticeSender,
} from '../lifecycle/job-ports.ts'
import { FileSurveys } from './file-surveys.ts'
import { finalizeJob } from './finalize-job.ts'
import { finishBackground } from './finish-background.ts'
import {
  ALONE_LOOK_MS,
  ANSWERS_PER_WRITE,
  CANCEL_GRACE_MS,
  ENDED_KEPT_MS,
  IDLE_LOOK_MS,
  JOBS_PER_LOOK,
  type JobOptions,
  LEASE_MS,
  LOOK_MS,
  RENEW_MS,
} from './job-options.ts'
import { decideLineBand } from './job-outlook.ts'
import { LineWindow } from './line-window.ts'
import { readLines } from './read-lines.ts'
import { runLine } from './run-line.ts'
import { EndTeller } from './tell-ends.ts'
import { validateJob } from './validate-job.ts'

/**
 * The story of a job, the platform's fourth:
 *
 *   validate ─▶ claim lines ─▶ run each as a request in the band `offline` ─▶ write its answer ─▶ finalize
 *                   ▲ └─ a line whose owner was lost is free again ◀─┘ (kill −9, a gateway that is gone)
 *
 * Any number of gateways may tell it of the same job: the store gives a line to one of them at a time, and writes its
 * answer once. A line may run twice, when its owner is lost before the answer is written. Nothing is kept here that the
 * store does not have, but for the lines that run at present.
 */
export interface JobWorld {
  readonly clock: Clock
  readonly store: JobStore
  readonly files: FileBytes
  readonly lines: LineRunner
  readonly options: JobOptions
  /** This process, among those on the same store. */
  readonly owner: string
  /** Other processes may use the store. */
  readonly isShared: boolean
  readonly isKnownModel: (model: string) => boolean
  /** Resolves in a later round of the event loop, in which no other heavy work of jobs is done. */
  readonly nextTurn: () => Promise<void>
  /** The platform takes nothing new any more. */
  readonly isLeaving: () => boolean
  readonly sender: NoticeSender
  readonly background: BackgroundKeeper
  readonly onFault: (where: string, error: unknown) => void
}

interface Running {
  readonly stop: Cancellation
  readonly jobId: string
}

export class JobRunner {
  readonly #world: JobWorld
  readonly #windows = new Map<string, LineWindow>()
  readonly #running = new Map<ClaimedLine, Running>()
  /** Jobs that are being validated or finalized here. */
  readonly #busy = new Map<string, Promise<void>>()
  /** Jobs whose last step failed here, and when they are tried again. */
  readonly #resting = new Map<string, Instant>()
  readonly #teller: EndTeller
  readonly #surveys: FileSurveys
  /** Open jobs as the last look saw them, `JOBS_PER_LOOK` at most. */
  #seen: ReadonlyMap<string, Job> = new Map()
  #answers: LineAnswer[] = []
  #back: ClaimedLine[] = []
  #renewedAt: Instant = Number.NEGATIVE_INFINITY
  #sweptAt: Instant = Number.NEGATIVE_INFINITY
  #state: 'new' | 'running' | 'closed' = 'new'
  #looking: Promise<void> | undefined
  #isWoken = false
  #forgetTimer: CancelTimer = () => {}

  constructor(world: JobWorld) {
    this.#world = world
    this.#teller = new EndTeller(world)
    this.#surveys = new FileSurveys(world)
  }

  /** Looks for jobs: those that were left by the process before, and new ones. */
  wake(): void {
    if (this.#state === 'closed') return
    this.#isWoken = true
    if (this.#looking === undefined) this.#looking = this.#lookOn()
  }

  /** Running lines are given back; what is answered is written. */
  async close(): Promise<void> {
    const wasRunning = this.#state === 'running'
    this.#state = 'closed'
    this.#forgetTimer()
    this.#stopLines(() => true, 'the gateway leaves')
    await this.#looking
    await Promise.all([...this.#busy.values(), this.#teller.close()])
    if (!wasRunning) return
    try {
      await this.#write()
      await this.#world.store.freeLost(this.#world.owner)
    } catch (error) {
      this.#world.onFault('jobs', error)
    }
  }

  /** Looks until nothing is left to do at once; then a timer looks again. */
  async #lookOn(): Promise<void> {
    let hasJobs = true
    try {
      while (this.#isWoken && this.#state !== 'closed') {
        this.#isWoken = false
        hasJobs = await this.#look()
      }
    } catch (error) {
      this.#world.onFault('jobs', error)
    }
    this.#looking = undefined
    this.#later(hasJobs)
  }

  #later(hasJobs: boolean): void {
    const { clock, isShared } = this.#world
    this.#forgetTimer()
    if (this.#state === 'closed') return
    const ms = hasJobs || this.#running.size > 0 ? LOOK_MS : isShared ? IDLE_LOOK_MS : ALONE_LOOK_MS
    this.#forgetTimer = clock.at(clock.now() + msToUs(ms), () => this.wake())
  }

  /** One look at all open jobs; false when there is none. */
  async #look(): Promise<boolean> {
    const { store, isLeaving } = this.#world
    await this.#stayOwner()
    await this.#write()
    const jobs = await store.openJobs(JOBS_PER_LOOK)
    const byId = new Map(jobs.map((job) => [job.id, job]))
    this.#seen = byId
    this.#stopLines((jobId) => !this.#mayRun(byId.get(jobId)), 'the job has ended')
    if (isLeaving()) this.#stopLines(() => true, 'the gateway leaves')
    else for (const job of jobs) if (!this.#rests(job)) await this.#stepSafely(job, jobs)
    await this.#write()
    await this.#sweep()
    this.#teller.wake()
    return jobs.length > 0
  }

  /** What is over is removed, a bounded part at a time. */
  async #sweep(): Promise<void> {
    const { clock, store, files } = this.#world
    const now = clock.now()
    if (now - this.#sweptAt < SWEEP_US) return
    this.#sweptAt = now
    const nowMs = Math.floor(usToMs(now))
    for (const file of await store.expiredFiles(nowMs, SWEPT_FILES)) {
      await files.remove(file.id)
      await store.removeFile(file.tenantId, file.id)
    }
    await store.sweep(nowMs - ENDED_KEPT_MS, SWEPT_ROWS)
  }

  /** One job that cannot be stepped holds up no other. */
  async #stepSafely(job: Job, jobs: readonly Job[]): Promise<void> {
    try {
      await this.#step(job, jobs)
    } catch (error) {
      this.#rest(job, error)
    }
  }

  #rest(job: Job, error: unknown): void {
    const { clock, onFault } = this.#world
    if (this.#resting.size >= JOBS_PER_LOOK) this.#resting.clear()
    this.#resting.set(job.id, clock.now() + REST_US)
    onFault('jobs', error)
  }

  #rests({ id }: Job): boolean {
    const until = this.#resting.get(id)
    if (until === undefined) return false
    if (until > this.#world.clock.now()) return true
    this.#resting.delete(id)
    return false
  }

  async #step(job: Job, jobs: readonly Job[]): Promise<void> {
    const { clock, store } = this.#world
    const nowMs = usToMs(clock.now())
    const isOver = job.expiresAtMs <= nowMs && (job.state === 'in_progress' || job.state === 'validating')
    const isDone = job.state === 'in_progress' && job.counts.completed + job.counts.failed >= job.counts.total
    if (isOver || isDone) {
      if (await store.closeJob(job, isDone ? 'completed' : 'expired', Math.floor(nowMs))) this.#isWoken = true
    } else if (job.state === 'validating') {
      const world = { ...this.#world, surveys: this.#surveys }
      this.#alone(job, 'validating', () => validateJob(world, job))
    } else if (job.state === 'in_progress') await this.#claim(job, jobs)
    else if (job.state === 'finalizing')
      this.#alone(job, 'finalizing', () => this.#finalize(job, job.ending ?? 'completed'))
    else if (this.#isQuiet(job, nowMs)) this.#alone(job, 'cancelling', () => this.#finalize(job, 'cancelled'))
  }

  /** A cancelled job's lines may end by themselves for a while; a response in the background is told as cancelled at once. */
  #isQuiet(job: Job, nowMs: number): boolean {
    const isGraceOver = isBackgroundJob(job) || nowMs - (job.times.cancelling ?? 0) >= CANCEL_GRACE_MS
    return isGraceOver || (!this.#world.isShared && !this.#runs(job.id))
  }

  #mayRun(job: Job | undefined): boolean {
    if (job?.state === 'in_progress') return true
    return job?.state === 'cancelling' && !this.#isQuiet(job, usToMs(this.#world.clock.now()))
  }

  #runs(jobId: string): boolean {
    return [...this.#running.values()].some((line) => line.jobId === jobId)
  }

  // ── Lines ──────────────────────────────────────────────────────────────────────────────────────────────────────

  async #claim(job: Job, jobs: readonly Job[]): Promise<void> {
    const { store, owner, files, options } = this.#world
    const window = this.#windowOf(job.tenantId)
    const tenants = new Set(jobs.flatMap(({ state, tenantId }) => (state === 'in_progress' ? [tenantId] : []))).size
    const share = Math.max(1, Math.floor(options.runningMax / tenants))
    const room = Math.min(window.room(share), options.runningMax - this.#running.size)
    // Answers that the store does not take fill the memory: then nothing new is begun.
    if (room <= 0 || !window.isLow(share) || this.#answers.length > options.runningMax) return
    const lines = await store.claimLines(job, owner, room)
    if (lines.length === 0) return
    try {
      const texts = await readLines(files, job.inputFileId, lines)
      for (const [i, line] of lines.entries()) void this.#run(job, line, texts[i] ?? '')
    } catch (error) {
      for (const line of lines) this.#back.push(line)
      throw error
    }
  }

  async #run(job: Job, line: ClaimedLine, text: string): Promise<void> {
    const { clock, lines } = this.#world
    const window = this.#windowOf(job.tenantId)
    const stop = new Cancellation()
    this.#running.set(line, { stop, jobId: job.id })
    window.running++
    try {
      const world = { clock, lines, onRefused: () => window.refused(clock.now()), bandNow: () => this.#bandOf(job) }
      const answer = await runLine(world, job, line, { text, stop })
      if (answer === undefined) this.#back.push(line)
      else {
        this.#answers.push(answer)
        window.answered()
      }
    } catch (error) {
      this.#world.onFault('jobs', error)
      this.#back.push(line)
    } finally {
      window.running--
      this.#running.delete(line)
      const isMuch = this.#answers.length >= ANSWERS_PER_WRITE
      if (isMuch || this.#running.size === 0 || window.isLow(this.#world.options.runningMax)) this.wake()
    }
  }

  /** By the job's counts of the last look. */
  #bandOf(job: Job): LineAsk['band'] {
    const { clock, options } = this.#world
    return decideLineBand(this.#seen.get(job.id) ?? job, usToMs(clock.now()), options.escalate.includes(job.tenantId))
  }

  #windowOf(tenantId: string): LineWindow {
    let window = this.#windows.get(tenantId)
    if (window === undefined) {
      // Tenants without running lines begin anew: the map is as large as there are tenants with jobs.
      for (const [id, { running }] of this.#windows) if (running === 0) this.#windows.delete(id)
      window = new LineWindow(this.#world.options.runningMax)
      this.#windows.set(tenantId, window)
    }
    return window
  }

  #stopLines(isOver: (jobId: string) => boolean, because: string): void {
    for (const { stop, jobId } of this.#running.values()) if (isOver(jobId)) stop.cancel(because)
  }

  /** Writes what is answered. What the store does not take now is kept for the next time. */
  async #write(): Promise<void> {
    const { store, owner } = this.#world
    while (this.#answers.length > 0) {
      const some = this.#answers.slice(0, ANSWERS_PER_WRITE)
      await store.writeAnswers(owner, some)
      this.#answers = this.#answers.slice(some.length)
      this.#isWoken = true
    }
    const back = this.#back.splice(0)
    if (back.length > 0)
      await store.giveBack(
        owner,
        back.map((line) => ({ ...line, isTry: false })),
      )
  }

  /** The lease is renewed in time, and lines of owners that are gone are freed. */
  async #stayOwner(): Promise<void> {
    const { clock, store, owner, isShared } = this.#world
    if (clock.now() - this.#renewedAt < msToUs(RENEW_MS)) return
    await store.renewLease(owner, LEASE_MS)
    if (this.#state === 'new' && !isShared) await store.forgetOthers(owner)
    if (this.#state === 'new') this.#state = 'running'
    await store.freeLost()
    this.#renewedAt = clock.now()
  }

  // ── The job as a whole ─────────────────────────────────────────────────────────────────────────────────────────

  /** Long work on one job, by one process at a time, beside everything else. */
  #alone(job: Job, state: JobState, work: () => Promise<void>): void {
    if (this.#busy.has(job.id) || this.#busy.size >= BUSY_MAX) return
    const { store, owner } = this.#world
    const held = async (): Promise<void> => {
      try {
        if (await store.holdJob(job, owner, state)) await work()
      } catch (error) {
        this.#rest(job, error)
      } finally {
        this.#busy.delete(job.id)
        this.wake()
      }
    }
    this.#busy.set(job.id, held())
  }

  async #finalize(job: Job, ending: JobEnding): Promise<void> {
    await (isBackgroundJob(job) ? finishBackground : finalizeJob)(this.#world, job, ending)
  }
}

/** Files that one process reads or writes at once. */
const BUSY_MAX = 4
const SWEEP_US = msToUs(5_000)
const SWEPT_FILES = 100
const SWEPT_ROWS = 5_000
/** After a step that failed: the store or the disk is away. */
const REST_US = msToUs(1_000)
