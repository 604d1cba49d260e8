import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Job, JobFile, LineAnswer } from '../../src/domain/job.ts'
import type { JobStore } from '../../src/lifecycle/job-ports.ts'
import { CLAIM_LINES } from '../../src/store/jobs-sql.ts'
import { SqlJobStore } from '../../src/store/sql-job-store.ts'
import { type OpenedDatabase, SQL_DATABASES } from '../support/databases.ts'

/** What every store of jobs must do, embedded and on a real PostgreSQL server. */
const NOW = 1_800_000_000_000
const HOUR = 3_600_000
const BOUNDS = { openMax: 1_000 }
const LEASE_MS = 600_000

let made = 0
const jobOf = (tenantId: string, more: Partial<Job> = {}): Job => ({
  tenantId,
  id: `batch_${String(++made).padStart(6, '0')}`,
  caller: '{}',
  endpoint: '/v1/chat/completions',
  state: 'validating',
  createdAtMs: NOW,
  expiresAtMs: NOW + HOUR,
  times: {},
  metadata: {},
  inputFileId: 'file-batch-1',
  outputFileId: undefined,
  errorFileId: undefined,
  outputKeptS: undefined,
  counts: { total: 0, completed: 0, failed: 0 },
  faults: [],
  model: undefined,
  tokens: 0,
  ending: undefined,
  ...more,
})

const places = (count: number) => Array.from({ length: count }, (_, no) => ({ no, at: no * 10, length: 9 }))

describe.each(SQL_DATABASES)('jobs in $name', ({ open, whyNot }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedDatabase
  let store: JobStore
  beforeAll(async () => {
    opened = await open()
    store = new SqlJobStore(opened.database!)
    await store.openJobs(1)
    for (const owner of ['one', 'two']) await store.renewLease(owner, LEASE_MS)
  }, 60_000)
  afterAll(() => opened?.close())

  const begun = async (tenantId: string, lines: number, more: Partial<Job> = {}): Promise<Job> => {
    const job = jobOf(tenantId, more)
    expect(await store.addJob(job, BOUNDS)).toBe('ok')
    await store.addLines(job, places(lines))
    const begin = { total: lines, tokens: 10, model: 'm', nowMs: NOW + 1, tokensMax: 1e9 }
    expect(await store.beginJob(job, begin)).toBe('ok')
    return job
  }
  const answersFor = (lines: Awaited<ReturnType<JobStore['claimLines']>>, isError = false): LineAnswer[] =>
    lines.map(({ job, no, attempt }) => ({ job, no, attempt, isError, text: `{"no":${no},"by":${attempt}}` }))
  const numbers = (lines: readonly { readonly no: number }[]): number[] => lines.map(({ no }) => no)

  it('gives back a job as it was made, to its tenant alone', async () => {
    const odd = jobOf('a', {
      metadata: { 'odd "key"': "ü \\ '; drop table job; --" },
      outputKeptS: 7_200,
      caller: '{"digest":"ab"}',
    })
    expect(await store.addJob(odd, BOUNDS)).toBe('ok')
    expect(await store.findJob(odd)).toEqual(odd)
    expect(await store.findJob({ tenantId: 'b', id: odd.id })).toBeUndefined()
    expect(await store.cancelJob({ tenantId: 'b', id: odd.id }, NOW)).toBeUndefined()
    expect((await store.findJob(odd))?.state).toBe('validating')
  })

  it('holds to the bounds of a tenant', async () => {
    for (let n = 0; n < 2; n++) expect(await store.addJob(jobOf('full'), { openMax: 2 })).toBe('ok')
    expect(await store.addJob(jobOf('full'), { openMax: 2 })).toBe('too-many-jobs')
    expect(await store.addJob(jobOf('other'), { openMax: 2 })).toBe('ok')
    const [first, second] = [jobOf('tokens'), jobOf('tokens')]
    const begin = { total: 1, tokens: 60, model: undefined, nowMs: NOW, tokensMax: 100 }
    for (const job of [first, second]) await store.addJob(job, BOUNDS)
    expect(await store.beginJob(first, begin)).toBe('ok')
    expect(await store.beginJob(second, begin)).toBe('too-many-tokens')
    expect(await store.beginJob(first, begin)).toBe('moved-on')
  })

  it('lists page by page', async () => {
    const jobs = [jobOf('pages'), jobOf('pages'), jobOf('pages')]
    for (const job of jobs) await store.addJob(job, BOUNDS)
    const ids = jobs.map(({ id }) => id)
    const page = async (after: string | undefined, order: 'asc' | 'desc' = 'desc') => {
      const found = await store.listJobs('pages', { limit: 2, order, after })
      return found === 'no-such-after' ? found : [found.items.map(({ id }) => id), found.hasMore]
    }
    expect(await page(undefined)).toEqual([[ids[2], ids[1]], true])
    expect(await page(ids[1])).toEqual([[ids[0]], false])
    expect(await page(undefined, 'asc')).toEqual([[ids[0], ids[1]], true])
    expect(await page('batch_none')).toBe('no-such-after')
  })

  it('gives a line to one owner, and writes its answer once', async () => {
    const job = await begun('once', 6)
    const mine = await store.claimLines(job, 'one', 4)
    const theirs = await store.claimLines(job, 'two', 4)
    expect([numbers(mine), numbers(theirs)]).toEqual([
      [0, 1, 2, 3],
      [4, 5],
    ])
    expect(mine[1]).toEqual({ job: { tenantId: 'once', id: job.id }, no: 1, at: 10, length: 9, attempt: 1, tries: 0 })
    expect(await store.writeAnswers('two', answersFor(mine))).toBe(0)
    expect(await store.writeAnswers('one', answersFor(mine.slice(0, 3)))).toBe(3)
    expect(await store.writeAnswers('one', answersFor(mine.slice(0, 3)))).toBe(0)
    expect(await store.writeAnswers('two', answersFor(theirs, true))).toBe(2)
    expect((await store.findJob(job))?.counts).toEqual({ total: 6, completed: 3, failed: 2 })
    expect(numbers(await store.answersOf(job, { isError: false, afterNo: -1, limit: 10 }))).toEqual([0, 1, 2])
    expect(await store.answersOf(job, { isError: true, afterNo: 4, limit: 10 })).toEqual([
      { no: 5, text: '{"no":5,"by":1}' },
    ])
    expect(numbers(await store.unanswered(job, -1, 10))).toEqual([3])
  })

  it('gives lines of an owner that is gone to another; the first cannot write them any more', async () => {
    const job = await begun('lost', 3)
    await store.renewLease('gone', 0)
    const lost = await store.claimLines(job, 'gone', 2)
    const kept = await store.claimLines(job, 'one', 1)
    expect(await store.freeLost()).toBe(2)
    const again = await store.claimLines(job, 'two', 3)
    expect(again.map(({ no, attempt }) => [no, attempt])).toEqual([
      [0, 2],
      [1, 2],
    ])
    expect(await store.writeAnswers('gone', answersFor(lost))).toBe(0)
    expect(await store.writeAnswers('two', answersFor(again))).toBe(2)
    expect(await store.writeAnswers('one', answersFor(kept))).toBe(1)
  })

  it('takes lines back, and counts those whose ticket has ended', async () => {
    const job = await begun('back', 2)
    const [first, second] = await store.claimLines(job, 'one', 2)
    await store.giveBack('one', [
      { ...first!, isTry: true },
      { ...second!, isTry: false },
    ])
    expect((await store.claimLines(job, 'two', 2)).map(({ tries, attempt }) => [tries, attempt])).toEqual([
      [1, 2],
      [0, 2],
    ])
    expect(await store.freeLost('two')).toBe(2)
    await store.renewLease('two', LEASE_MS)
  })

  it('gives out no line of a job that is cancelled, sealed or not begun', async () => {
    const fresh = jobOf('states')
    await store.addJob(fresh, BOUNDS)
    await store.addLines(fresh, places(2))
    expect(await store.claimLines(fresh, 'one', 2)).toEqual([])
    const job = await begun('states', 3)
    const running = await store.claimLines(job, 'one', 1)
    expect((await store.cancelJob(job, NOW + 5))?.state).toBe('cancelling')
    expect(await store.claimLines(job, 'one', 2)).toEqual([])
    await store.sealLines(job)
    expect(await store.writeAnswers('one', answersFor(running))).toBe(0)
    expect(await store.closeJob(job, 'completed', NOW)).toBe(false)
    const end = { ending: 'cancelled', outputFileId: undefined, errorFileId: 'file-errors-1', nowMs: NOW + 9 } as const
    expect(await store.endJob(job, end)).toBe(true)
    expect(await store.endJob(job, end)).toBe(false)
    expect(await store.findJob(job)).toMatchObject({
      state: 'cancelled',
      errorFileId: 'file-errors-1',
      times: { in_progress: NOW + 1, cancelling: NOW + 5, cancelled: NOW + 9 },
    })
    expect((await store.cancelJob(job, NOW + 10))?.state).toBe('cancelled')
  })

  it('lets one owner at a time hold a job, until it is gone', async () => {
    const job = jobOf('held')
    await store.addJob(job, BOUNDS)
    expect(await store.holdJob(job, 'one', 'finalizing')).toBe(false)
    expect(await store.holdJob(job, 'one', 'validating')).toBe(true)
    expect(await store.holdJob(job, 'one', 'validating')).toBe(true)
    expect(await store.holdJob(job, 'two', 'validating')).toBe(false)
    await store.renewLease('one', 0)
    expect(await store.holdJob(job, 'two', 'validating')).toBe(true)
    await store.renewLease('one', LEASE_MS)
    const faults = [{ code: 'x', message: 'why', param: null, line: 3 }]
    expect(await store.failJob(job, faults, NOW + 2)).toBe(true)
    expect(await store.findJob(job)).toMatchObject({ state: 'failed', faults, times: { failed: NOW + 2 } })
  })

  it('forgets lines of ended jobs, and jobs that ended long ago', async () => {
    const job = await begun('swept', 5)
    await store.writeAnswers('one', answersFor(await store.claimLines(job, 'one', 5)))
    expect(await store.closeJob(job, 'completed', NOW)).toBe(true)
    await store.endJob(job, { ending: 'completed', outputFileId: 'f', errorFileId: undefined, nowMs: NOW })
    while ((await store.sweep(NOW - 1, 3)) > 0);
    expect(await store.answersOf(job, { isError: false, afterNo: -1, limit: 9 })).toEqual([])
    expect((await store.findJob(job))?.counts.completed).toBe(5)
    await store.sweep(NOW + 1, 10)
    expect(await store.findJob(job)).toBeUndefined()
  })

  it('knows files of their tenants, until their time is over', async () => {
    const file = (id: string, tenantId: string, more: Partial<JobFile> = {}): JobFile => ({
      id,
      tenantId,
      name: 'a.jsonl',
      purpose: 'batch',
      bytes: 100,
      createdAtMs: NOW,
      expiresAtMs: undefined,
      ...more,
    })
    const [kept, short] = [
      file('file-batch-k', 'f'),
      file('file-batch-s', 'f', { expiresAtMs: NOW, purpose: 'batch_output' }),
    ]
    for (const one of [kept, short, file('file-batch-o', 'g')]) await store.addFile(one)
    expect(await store.findFile('f', kept.id)).toEqual(kept)
    expect(await store.findFile('g', kept.id)).toBeUndefined()
    expect(await store.fileBytes('f')).toBe(200)
    expect(await store.expiredFiles(NOW, 10)).toEqual([short])
    const page = { limit: 10, order: 'asc', after: undefined } as const
    expect(await store.listFiles('f', { ...page, purpose: 'batch' })).toEqual({ items: [kept], hasMore: false })
    expect(await store.listFiles('f', { ...page, after: kept.id })).toEqual({ items: [short], hasMore: false })
    expect(await store.removeFile('g', kept.id)).toBe(false)
    expect(await store.removeFile('f', kept.id)).toBe(true)
  })

  it('claims a few lines of a large job without reading the others', async () => {
    const job = await begun('large', 2_000)
    const asked = [job.tenantId, job.id, 'one', 16]
    const [row] = await opened.database!.query(`explain (analyze, format json) ${CLAIM_LINES}`, asked)
    const rows = [...String(JSON.stringify(row)).matchAll(/"Actual Rows\\*": ?(\d+)/g)].map(([, count]) =>
      Number(count),
    )
    expect(rows.length).toBeGreaterThan(3)
    expect(Math.max(...rows)).toBe(16)
  })
})
