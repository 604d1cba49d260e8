import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { Job, JobFile } from '../../src/domain/job.ts'
import { JobRunner } from '../../src/jobs/run-job.ts'
import type { LineAsk, LineEnd, LineRunner, NoticeSender } from '../../src/lifecycle/job-ports.ts'
import { SqlFileBytes } from '../../src/store/sql-file-bytes.ts'
import { SqlJobStore } from '../../src/store/sql-job-store.ts'
import { type OpenedDatabase, SQL_DATABASES } from '../support/databases.ts'
import { eventually } from '../support/eventually.ts'
import { jobLines } from '../support/job-gateway.ts'

/** The story of a job on a real store, with lines that end as a test wants. */
const OPTIONS = {
  linesMax: 100,
  fileBytesMax: 1e6,
  openMax: 10,
  tokensMax: 1e6,
  storedBytesMax: 1e9,
  runningMax: 16,
  escalate: [],
}
const OK: LineEnd = { kind: 'answered', status: 200, body: '{"object":"chat.completion"}' }

let opened: OpenedDatabase
let store: SqlJobStore
let files: SqlFileBytes
let runner: JobRunner | undefined
beforeAll(async () => {
  opened = await SQL_DATABASES[0]!.open()
  store = new SqlJobStore(opened.database!)
  files = new SqlFileBytes(opened.database!)
  await store.openJobs(1)
}, 60_000)
afterAll(() => opened?.close())
afterEach(() => runner?.close())

let made = 0
async function submit(lines: number, expiresInMs = 3_600_000): Promise<Job> {
  const n = ++made
  const inputFileId = `file-batch-${n}`
  const appender = files.append(inputFileId)
  await appender.write(Buffer.from([...jobLines(lines)].join('\n')))
  const bytes = await appender.end()
  const now = Date.now()
  const file: JobFile = {
    id: inputFileId,
    tenantId: 'a',
    name: 'f',
    purpose: 'batch',
    bytes,
    createdAtMs: now,
    expiresAtMs: undefined,
  }
  await store.addFile(file)
  const job: Job = {
    id: `batch_${n}`,
    tenantId: 'a',
    caller: '{}',
    endpoint: '/v1/chat/completions',
    state: 'validating',
    createdAtMs: now,
    expiresAtMs: now + expiresInMs,
    times: {},
    metadata: {},
    inputFileId,
    outputFileId: undefined,
    errorFileId: undefined,
    outputKeptS: undefined,
    counts: { total: 0, completed: 0, failed: 0 },
    faults: [],
    model: undefined,
    tokens: 0,
    ending: undefined,
  }
  await store.addJob(job, OPTIONS)
  return job
}

/** The store, with jobs that seem to run for this long already. */
function begunBefore(sinceMs: number): SqlJobStore {
  const shifted = (job: Job): Job => {
    const begunMs = job.times.in_progress
    return begunMs === undefined ? job : { ...job, times: { ...job.times, in_progress: begunMs - sinceMs } }
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'openJobs') return async (limit: number) => (await target.openJobs(limit)).map(shifted)
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? (member.bind(target) as unknown) : member
    },
  })
}

interface RunTerms {
  readonly escalate?: readonly string[]
  readonly sinceMs?: number
  readonly sender?: NoticeSender
}

/** Runs lines as `end` says; `asked` are those that were begun. */
function run(
  end: (ask: LineAsk, nth: number) => LineEnd | Promise<LineEnd>,
  { escalate = [], sinceMs = 0, sender = { send: () => undefined } }: RunTerms = {},
): { readonly asked: LineAsk[] } {
  const asked: LineAsk[] = []
  const lines: LineRunner = {
    run(ask) {
      asked.push(ask)
      let cancel = (): void => {}
      const gone = new Promise<LineEnd>((resolve) => {
        cancel = () => resolve({ kind: 'gone' })
      })
      return { done: Promise.race([gone, Promise.resolve(end(ask, asked.length))]), cancel }
    },
  }
  runner = new JobRunner({
    clock: new LiveClock(),
    store: sinceMs === 0 ? store : begunBefore(sinceMs),
    files,
    lines,
    options: { ...OPTIONS, escalate },
    owner: `owner-${made}`,
    isShared: false,
    isKnownModel: () => true,
    nextTurn: () => Promise.resolve(),
    isLeaving: () => false,
    sender,
    background: { keep: () => Promise.resolve('completed') },
    onFault: (_, error) => {
      throw error
    },
  })
  runner.wake()
  return { asked }
}

const ended = (job: Job): Promise<Job> =>
  eventually(`${job.id} ends`, async () => {
    const now = await store.findJob(job)
    return now !== undefined && ['completed', 'failed', 'expired', 'cancelled'].includes(now.state) && now
  })

async function linesOf(fileId: string | undefined): Promise<Record<string, unknown>[]> {
  const text = Buffer.from(await files.read(fileId ?? '', 0, 1e6)).toString()
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

const never = new Promise<LineEnd>(() => {})

describe('a job', { timeout: 60_000 }, () => {
  it('comes back when it is told to, and gives up on what fails again and again', async () => {
    const job = await submit(3)
    const { asked } = run(({ ticketId }, nth) => {
      if (ticketId.startsWith('batch_req_1_1')) return { kind: 'answered', status: 400, body: '{"error":{"code":"x"}}' }
      return nth <= 3 ? { kind: 'answered', status: 429, body: '{}', retryAfterMs: 1 } : OK
    })
    const done = await ended(job)
    expect(done).toMatchObject({ state: 'completed', counts: { total: 3, completed: 2, failed: 1 } })
    expect(await linesOf(done.errorFileId)).toMatchObject([{ custom_id: 'line-1', response: { status_code: 400 } }])
    // A ticket that has ended is not used again.
    expect(new Set(asked.map(({ ticketId }) => ticketId)).size).toBe(asked.length)
    expect(asked.every(({ deadlineMs }) => deadlineMs > 0 && deadlineMs <= 3_600_000)).toBe(true)
  })

  it('that would miss its window runs in the band standard, where its tenant allows that', async () => {
    const TOO_LATE = 30 * 3_600_000
    for (const [escalate, sinceMs, band] of [
      [['a'], TOO_LATE, 'standard'],
      [['b'], TOO_LATE, 'offline'],
      [['a'], 0, 'offline'],
    ] as const) {
      const job = await submit(40)
      // Nothing is known of the pace before the first lines are done.
      const { asked } = run(() => OK, { escalate, sinceMs })
      await ended(job)
      expect(asked.at(-1)?.band).toBe(band)
      await runner?.close()
    }
  })

  it('begins no line after it was cancelled, and names those that did not run', async () => {
    const job = await submit(40)
    let letGo: (end: LineEnd) => void = () => {}
    const held = new Promise<LineEnd>((resolve) => {
      letGo = resolve
    })
    const { asked } = run(() => held)
    await eventually('lines run', () => asked.length === 16)
    expect((await store.cancelJob(job, Date.now()))?.state).toBe('cancelling')
    runner?.wake()
    letGo(OK)
    const done = await ended(job)
    expect(asked).toHaveLength(16)
    expect(done).toMatchObject({ state: 'cancelled', counts: { total: 40, completed: 16, failed: 0 } })
    expect(await linesOf(done.outputFileId)).toHaveLength(16)
    const unrun = await linesOf(done.errorFileId)
    expect(unrun).toHaveLength(24)
    expect(unrun[0]).toMatchObject({ custom_id: 'line-16', response: null, error: { code: 'batch_cancelled' } })
  })

  it('expires with its window: running lines end, and all without an answer are named', async () => {
    const job = await submit(20)
    run((_, nth) => (nth <= 5 ? OK : never))
    await eventually('five are answered', async () => (await store.findJob(job))?.counts.completed === 5)
    await opened.database!.query('update job set expires_at_ms = $1::bigint where id = $2', [Date.now() - 1, job.id])
    runner?.wake()
    const done = await ended(job)
    expect(done.state).toBe('expired')
    const answered = await linesOf(done.outputFileId)
    const unrun = await linesOf(done.errorFileId)
    expect(answered.length + unrun.length).toBe(20)
    expect(answered).toHaveLength(5)
    for (const line of unrun) expect(line).toMatchObject({ response: null, error: { code: 'batch_expired' } })
    expect(new Set([...answered, ...unrun].map((line) => line['custom_id'])).size).toBe(20)
  })

  it('fails for too many lines, and for too many tokens', async () => {
    run(() => OK)
    const long = await submit(101)
    runner?.wake()
    expect((await ended(long)).faults).toMatchObject([{ code: 'too_many_tasks', line: null }])
    const first = await submit(1)
    await store.addLines(first, [{ no: 0, at: 0, length: 1 }])
    await store.beginJob(first, {
      total: 2,
      tokens: OPTIONS.tokensMax,
      model: undefined,
      nowMs: 1,
      tokensMax: OPTIONS.tokensMax,
    })
    const second = await submit(1)
    runner?.wake()
    expect((await ended(second)).faults).toMatchObject([{ code: 'token_limit_exceeded' }])
    await store.cancelJob(first, Date.now())
    runner?.wake()
    await ended(first)
  })

  it('gives back what it runs when its process leaves', async () => {
    const job = await submit(4)
    const { asked } = run(() => never)
    await eventually('lines run', () => asked.length === 4)
    await runner?.close()
    await store.renewLease('next', 60_000)
    expect(await store.claimLines(job, 'next', 10)).toHaveLength(4)
    await store.freeLost('next')
    run(() => OK)
    expect((await ended(job)).counts).toEqual({ total: 4, completed: 4, failed: 0 })
  })

  it('is not delayed by a receiver that does not answer', async () => {
    let letGo: (told: 'failed') => void = () => {}
    const dead = new Promise<'failed'>((resolve) => {
      letGo = resolve
    })
    let sent = 0
    const first = await submit(3)
    const sender: NoticeSender = {
      send: () => {
        sent++
        return dead
      },
    }
    run(() => OK, { sender })
    await ended(first)
    await eventually('the receiver is told', () => sent === 1)
    for (let n = 0; n < 3; n++) {
      const job = await submit(5)
      runner?.wake()
      expect(await ended(job)).toMatchObject({ state: 'completed', counts: { total: 5, completed: 5 } })
    }
    expect(sent).toBe(1)
    letGo('failed')
  })
})
