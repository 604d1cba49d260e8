/**
 * What does a line of a job pay for not being lost?
 *
 * Claims the lines of a job and writes their answers, as `jobs/run-job.ts` does, on the embedded database. Nothing runs the
 * lines. CPU time of the whole process, in which the database runs too, by how many are claimed and written at once; the
 * first lines warm up. The goal is 200 µs a line.
 *
 *   node bench/micro/job-checkpoint.ts [lines]
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { Job } from '../../src/domain/job.ts'
import { ANSWERS_PER_WRITE } from '../../src/jobs/job-options.ts'
import { PgliteDatabase } from '../../src/store/live-pglite.ts'
import { migrate } from '../../src/store/migrate.ts'
import { PreparedDatabase } from '../../src/store/prepared-database.ts'
import { SqlJobStore } from '../../src/store/sql-job-store.ts'

const LINES = Number(process.argv[2] ?? 20_000)
const WARM_UP_LINES = 2_000
const OWNER = 'bench'
/** A short chat completion, as it stands in a file of answers. */
const ANSWER = JSON.stringify({ id: 'x', response: { status_code: 200, body: { text: 'word '.repeat(160) } } })

async function makeJob(store: SqlJobStore, id: string, total: number): Promise<Job> {
  const now = Date.now()
  const job: Job = {
    id,
    tenantId: 'bench',
    caller: '{}',
    endpoint: '/v1/chat/completions',
    state: 'validating',
    createdAtMs: now,
    expiresAtMs: now + 86_400_000,
    times: {},
    metadata: {},
    inputFileId: 'file-1',
    outputFileId: undefined,
    errorFileId: undefined,
    outputKeptS: undefined,
    counts: { total: 0, completed: 0, failed: 0 },
    faults: [],
    model: undefined,
    tokens: 0,
    ending: undefined,
  }
  await store.addJob(job, { openMax: 100 })
  for (let first = 0; first < total; first += 1_000) {
    const count = Math.min(1_000, total - first)
    await store.addLines(
      job,
      Array.from({ length: count }, (_, i) => ({ no: first + i, at: 900 * (first + i), length: 899 })),
    )
  }
  await store.beginJob(job, { total, tokens: total, model: 'm', nowMs: now, tokensMax: 1e12 })
  return job
}

/** Microseconds of CPU a line. */
async function measure(store: SqlJobStore, job: Job, atOnce: number): Promise<number> {
  const before = process.cpuUsage()
  let count = 0
  for (;;) {
    const lines = await store.claimLines(job, OWNER, atOnce)
    if (lines.length === 0) break
    const answers = lines.map(({ no, attempt }) => ({ job, no, attempt, isError: false, text: ANSWER }))
    count += await store.writeAnswers(OWNER, answers)
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

for (const where of ['memory', 'disk'] as const) {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-checkpoint-'))
  const path = where === 'disk' ? join(folder, 'db') : undefined
  const database = new PreparedDatabase(new PgliteDatabase({ clock: new LiveClock(), path }), (db) => migrate(db))
  const store = new SqlJobStore(database)
  await store.renewLease(OWNER, 3_600_000)
  await measure(store, await makeJob(store, 'batch_warm', WARM_UP_LINES), ANSWERS_PER_WRITE)
  for (const atOnce of [1, 16, ANSWERS_PER_WRITE]) {
    const total = atOnce === 1 ? Math.ceil(LINES / 10) : LINES
    const us = await measure(store, await makeJob(store, `batch_${atOnce}`, total), atOnce)
    process.stdout.write(`${where}, ${atOnce} at once: ${us.toFixed(0)} µs of CPU a line (${total} lines)\n`)
  }
  await database.close()
  rmSync(folder, { recursive: true, force: true })
}
