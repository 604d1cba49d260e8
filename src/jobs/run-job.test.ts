import { afterEach, describe, expect, it } from 'vitest'
import { lineTexts, MemoryFileBytes, MemoryJobStore, submittedJob } from '../../test/support/memory-jobs.ts'
import { msToUs, usToMs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { Job } from '../domain/job.ts'
import type { LineAsk, LineEnd } from '../lifecycle/job-ports.ts'
import { JobRunner, type JobWorld } from './run-job.ts'

/** As operators are told them. */
const CANCEL_GRACE_MS = 15_000
const RENEW_MS = 10_000
const ENDED_KEPT_MS = 30 * 24 * 3_600_000
const OK: LineEnd = { kind: 'answered', status: 200, body: '{}' }

/** A runner in virtual time; lines that a test does not end run until they are cancelled. */
class World {
  readonly clock = new VirtualClock()
  readonly store = new MemoryJobStore()
  readonly files = new MemoryFileBytes()
  readonly faults: unknown[] = []
  readonly asked: LineAsk[] = []
  readonly runner: JobRunner
  isLeaving = false
  /** How lines end from now on, this many milliseconds after they began. */
  ends: { readonly end: LineEnd; readonly afterMs: number } | undefined
  readonly #running = new Map<string, (end: LineEnd) => void>()

  constructor(over: Partial<JobWorld> & { readonly runningMax?: number } = {}) {
    const { runningMax = 8, ...rest } = over
    this.runner = new JobRunner({
      clock: this.clock,
      store: this.store,
      files: this.files,
      lines: { run: (ask) => this.#run(ask) },
      options: {
        linesMax: 1_000,
        fileBytesMax: 1e6,
        openMax: 10,
        tokensMax: 1e6,
        storedBytesMax: 1e9,
        runningMax,
        escalate: [],
      },
      owner: 'me',
      isShared: false,
      isKnownModel: () => true,
      nextTurn: () => Promise.resolve(),
      isLeaving: () => this.isLeaving,
      sender: { send: () => undefined },
      background: { keep: () => Promise.resolve('completed') },
      onFault: (_, error) => this.faults.push(error),
      ...rest,
    })
    worlds.push(this)
  }

  /** Jobs that run now, by tenant. */
  get running(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const id of this.#running.keys()) {
      const tenant = tenantOf(id)
      counts[tenant] = (counts[tenant] ?? 0) + 1
    }
    return counts
  }

  async submit(tenantId: string, lines: number, over: Partial<Job> = {}): Promise<Job> {
    const job = submittedJob(this.files, `batch_${tenantId}`, lineTexts(lines), { tenantId, ...over })
    await this.store.addJob(job)
    this.runner.wake()
    return job
  }

  async see(job: Job): Promise<Job> {
    return (await this.store.findJob(job))!
  }

  /** Lets this many milliseconds pass. */
  pass(ms: number): Promise<void> {
    return this.clock.run(this.clock.now() + msToUs(ms))
  }

  endAll(end: LineEnd): void {
    for (const finish of this.#running.values()) finish(end)
  }

  #run(ask: LineAsk): { done: Promise<LineEnd>; cancel: () => void } {
    this.asked.push(ask)
    const id = ask.ticketId
    let finish: (end: LineEnd) => void = () => {}
    const done = new Promise<LineEnd>((resolve) => {
      finish = (end) => {
        this.#running.delete(id)
        resolve(end)
      }
    })
    this.#running.set(id, finish)
    const { ends } = this
    if (ends !== undefined) this.clock.at(this.clock.now() + msToUs(ends.afterMs), () => finish(ends.end))
    return { done, cancel: () => finish({ kind: 'gone' }) }
  }
}

/** `batch_req_a_3` is a line of tenant `a`. */
const tenantOf = (ticketId: string): string => ticketId.split('_')[2]!

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) {
    await world.runner.close()
    expect(world.faults).toEqual([])
  }
})

describe('lines of several jobs', () => {
  it('get equal parts of what may run at once, whoever came first', async () => {
    const world = new World({ runningMax: 8 })
    await world.submit('a', 50)
    await world.submit('b', 50)
    await world.pass(1_000)
    expect(world.running).toEqual({ a: 4, b: 4 })
  })

  it('never run more than the bound at once, and one tenant alone has all of it', async () => {
    const world = new World({ runningMax: 8 })
    const job = await world.submit('a', 50)
    await world.pass(1_000)
    expect(world.running).toEqual({ a: 8 })
    world.ends = { end: OK, afterMs: 100 }
    world.endAll(OK)
    await world.pass(5_000)
    expect(await world.see(job)).toMatchObject({ state: 'completed', counts: { total: 50, completed: 50, failed: 0 } })
    expect(world.asked).toHaveLength(50)
  })

  it('leave room for a tenant that comes later as they end', async () => {
    const world = new World({ runningMax: 8 })
    await world.submit('a', 50)
    await world.pass(1_000)
    await world.submit('b', 50)
    await world.pass(1_000)
    expect(world.running).toEqual({ a: 8 })
    world.endAll(OK)
    await world.pass(1_000)
    expect(world.running).toEqual({ a: 4, b: 4 })
  })

  it('have one each when there are more tenants than lines may run', async () => {
    const world = new World({ runningMax: 2 })
    for (const tenant of ['a', 'b', 'c']) await world.submit(tenant, 5)
    await world.pass(1_000)
    expect(Object.values(world.running)).toEqual([1, 1])
  })
})

describe('a job', () => {
  it('ends when all of its lines are answered, with their answers in a file', async () => {
    const world = new World()
    world.ends = { end: OK, afterMs: 20 }
    const job = await world.submit('a', 3)
    await world.pass(2_000)
    const done = await world.see(job)
    expect(done).toMatchObject({ state: 'completed', counts: { total: 3, completed: 3 } })
    expect(world.files.text(done.outputFileId!)?.trim().split('\n')).toHaveLength(3)
  })

  it('expires with its window: its lines are cancelled and named among the errors', async () => {
    const world = new World()
    const job = await world.submit('a', 5, { expiresAtMs: 10_000 })
    await world.pass(9_000)
    expect(world.running).toEqual({ a: 5 })
    await world.pass(2_000)
    expect(world.running).toEqual({})
    const done = await world.see(job)
    expect(done.state).toBe('expired')
    expect(world.files.text(done.errorFileId!)?.trim().split('\n')).toHaveLength(5)
  })

  it('that is cancelled begins no further line, and lets those that run end', async () => {
    const world = new World({ runningMax: 4 })
    const job = await world.submit('a', 10)
    await world.pass(1_000)
    await world.store.cancelJob(job, usToMs(world.clock.now()))
    await world.pass(CANCEL_GRACE_MS / 2)
    expect(world.running).toEqual({ a: 4 })
    world.endAll(OK)
    await world.pass(1_000)
    expect(await world.see(job)).toMatchObject({ state: 'cancelled', counts: { completed: 4 } })
    expect(world.asked).toHaveLength(4)
  })

  it('that is cancelled stops what still runs after the grace', async () => {
    const world = new World({ runningMax: 4 })
    const job = await world.submit('a', 10)
    await world.pass(1_000)
    await world.store.cancelJob(job, usToMs(world.clock.now()))
    await world.pass(CANCEL_GRACE_MS - 1_000)
    expect((await world.see(job)).state).toBe('cancelling')
    await world.pass(2_000)
    expect(world.running).toEqual({})
    expect((await world.see(job)).state).toBe('cancelled')
  })

  it('whose file cannot be read rests for a second, and holds up no other', async () => {
    const world = new World()
    world.ends = { end: OK, afterMs: 20 }
    const job = await world.submit('a', 2)
    await world.files.remove(job.inputFileId)
    const other = await world.submit('b', 2)
    await world.pass(900)
    expect((await world.see(other)).state).toBe('completed')
    expect(world.faults).toHaveLength(1)
    await world.pass(1_000)
    expect(world.faults.length).toBeLessThanOrEqual(3)
    world.files.put(job.inputFileId, lineTexts(2).join('\n'))
    await world.pass(3_000)
    expect((await world.see(job)).state).toBe('completed')
    world.faults.length = 0
  })
})

describe('a runner', () => {
  it('renews its lease every ten seconds while it has jobs', async () => {
    const world = new World()
    await world.submit('a', 1)
    await world.pass(3.5 * RENEW_MS)
    expect(world.store.renewed).toEqual(['me', 'me', 'me', 'me'])
  })

  it('gives its lines back when it closes, so that the next one runs them', async () => {
    const world = new World()
    const job = await world.submit('a', 3)
    await world.pass(1_000)
    await world.runner.close()
    expect(world.running).toEqual({})
    expect(await world.store.claimLines(job, 'next', 10)).toHaveLength(3)
  })

  it('writes what is answered before it closes', async () => {
    const world = new World()
    const job = await world.submit('a', 3)
    await world.pass(1_000)
    world.endAll(OK)
    await world.runner.close()
    expect((await world.see(job)).counts).toEqual({ total: 3, completed: 3, failed: 0 })
  })

  it('cancels its lines and begins none while the platform leaves', async () => {
    const world = new World()
    const job = await world.submit('a', 3)
    await world.pass(1_000)
    world.isLeaving = true
    await world.pass(1_000)
    expect(world.running).toEqual({})
    expect(world.asked).toHaveLength(3)
    expect((await world.see(job)).state).toBe('in_progress')
  })

  it('removes files whose time is over', async () => {
    const world = new World()
    world.ends = { end: OK, afterMs: 1 }
    const job = await world.submit('a', 1, { outputKeptS: 60 })
    await world.pass(30_000)
    const { outputFileId } = await world.see(job)
    expect(world.files.text(outputFileId!)).toBeDefined()
    await world.pass(90_000)
    expect(world.files.text(outputFileId!)).toBeUndefined()
    expect(world.store.files.has(outputFileId!)).toBe(false)
    expect(await world.see(job)).toBeDefined()
  })

  it('forgets jobs that ended more than thirty days ago', async () => {
    const world = new World()
    const endedAtMs = 60_000 - ENDED_KEPT_MS
    const old = await world.submit('a', 1, { state: 'completed', times: { completed: endedAtMs } })
    await world.pass(55_000)
    expect(await world.see(old)).toBeDefined()
    await world.pass(40_000)
    expect(await world.see(old)).toBeUndefined()
  })
})
