import type {
  ClaimedLine,
  Job,
  JobEnding,
  JobFault,
  JobFile,
  JobNotice,
  JobRef,
  JobState,
  LineAnswer,
  LinePlace,
} from '../domain/job.ts'
import type { JobBegin, JobBounds, JobEnd, JobPage, JobPageAsk, JobStore } from '../lifecycle/job-ports.ts'
import { type Database, type Parameter, type Row, tenantLane } from './database.ts'
import { jobDatabase } from './job-database.ts'
import * as sql from './jobs-sql.ts'
import { withoutNuls } from './without-nuls.ts'

/**
 * Jobs in SQL. `jobs-sql.ts` explains the statements. What a client waits for goes in its tenant's lane; what the runner
 * asks goes in a lane of its own, so that a tenant's searches do not hold up the lines of others.
 */
const RUNNER = { lane: '/jobs' } as const

export class SqlJobStore implements JobStore {
  readonly #database: Database

  constructor(database: Database) {
    this.#database = withoutNuls(jobDatabase(database))
  }

  async addJob(job: Job, { openMax }: JobBounds): Promise<'ok' | 'too-many-jobs'> {
    const { tenantId, id, createdAtMs, expiresAtMs } = job
    const words = [tenantId, id, createdAtMs, expiresAtMs, JSON.stringify(bodyOf(job)), openMax]
    const rows = await this.#ask(tenantId, sql.ADD_JOB, words)
    return rows.length > 0 ? 'ok' : 'too-many-jobs'
  }

  async findJob({ tenantId, id }: JobRef): Promise<Job | undefined> {
    const [row] = await this.#ask(tenantId, sql.FIND_JOB, [tenantId, id])
    return row && toJob(row)
  }

  async listJobs(tenantId: string, ask: JobPageAsk): Promise<JobPage<Job> | 'no-such-after'> {
    const { limit, order, after = null } = ask
    const rows = await this.#ask(tenantId, sql.listJobsSql(order), [tenantId, after, limit + 1])
    if (rows.length === 0 && after !== null && (await this.findJob({ tenantId, id: after })) === undefined)
      return 'no-such-after'
    return { items: rows.slice(0, limit).map(toJob), hasMore: rows.length > limit }
  }

  async openJobs(limit: number): Promise<readonly Job[]> {
    return (await this.#tell(sql.OPEN_JOBS, [limit])).map(toJob)
  }

  async cancelJob(job: JobRef, nowMs: number): Promise<Job | undefined> {
    const [row] = await this.#ask(job.tenantId, sql.CANCEL_JOB, [job.tenantId, job.id, nowMs])
    return row === undefined ? this.findJob(job) : toJob(row)
  }

  async holdJob({ tenantId, id }: JobRef, owner: string, state: JobState): Promise<boolean> {
    return (await this.#tell(sql.HOLD_JOB, [tenantId, id, owner, state])).length > 0
  }

  async addLines({ tenantId, id }: JobRef, lines: readonly LinePlace[]): Promise<void> {
    const list = (of: (line: LinePlace) => number): string => `{${lines.map(of).join(',')}}`
    const places = [list(({ no }) => no), list(({ at }) => at), list(({ length }) => length)]
    await this.#tell(sql.ADD_LINES, [tenantId, id, ...places])
  }

  async beginJob(job: JobRef, begin: JobBegin): Promise<'ok' | 'too-many-tokens' | 'moved-on'> {
    const { total, tokens, model = null, nowMs, tokensMax } = begin
    const words = [job.tenantId, job.id, total, tokens, nowMs, model, tokensMax]
    if ((await this.#tell(sql.BEGIN_JOB, words)).length > 0) return 'ok'
    return (await this.findJob(job))?.state === 'validating' ? 'too-many-tokens' : 'moved-on'
  }

  async failJob({ tenantId, id }: JobRef, faults: readonly JobFault[], nowMs: number): Promise<boolean> {
    return (await this.#tell(sql.FAIL_JOB, [tenantId, id, nowMs, JSON.stringify(faults)])).length > 0
  }

  async closeJob({ tenantId, id }: JobRef, ending: JobEnding, nowMs: number): Promise<boolean> {
    return (await this.#tell(sql.CLOSE_JOB, [tenantId, id, ending, nowMs])).length > 0
  }

  async endJob({ tenantId, id }: JobRef, end: JobEnd): Promise<boolean> {
    const { ending, nowMs, outputFileId = null, errorFileId = null, told = null } = end
    const words = [tenantId, id, ending, nowMs, outputFileId, errorFileId, told]
    return (await this.#tell(sql.END_JOB, words)).length > 0
  }

  async claimLines(job: JobRef, owner: string, limit: number): Promise<readonly ClaimedLine[]> {
    const rows = await this.#tell(sql.CLAIM_LINES, [job.tenantId, job.id, owner, limit])
    const lines = rows.map((row) => ({
      job: { tenantId: job.tenantId, id: job.id },
      ...toPlace(row),
      attempt: Number(row['attempt']),
      tries: Number(row['tries']),
    }))
    return lines.sort((one, other) => one.no - other.no)
  }

  async writeAnswers(owner: string, answers: readonly LineAnswer[]): Promise<number> {
    const given = answers.map(({ job, no, attempt, isError, text }) => ({
      tenant_id: job.tenantId,
      job_id: job.id,
      no,
      attempt,
      is_error: isError,
      document: text,
    }))
    return countOf(await this.#tell(sql.WRITE_ANSWERS, [owner, JSON.stringify(given)]))
  }

  async giveBack(owner: string, lines: readonly (ClaimedLine & { readonly isTry: boolean })[]): Promise<void> {
    const given = lines.map(({ job, no, attempt, isTry }) => ({
      tenant_id: job.tenantId,
      job_id: job.id,
      no,
      attempt,
      tried: isTry ? 1 : 0,
    }))
    await this.#tell(sql.GIVE_BACK, [owner, JSON.stringify(given)])
  }

  async answersOf(
    { tenantId, id }: JobRef,
    { isError, afterNo, limit }: { readonly isError: boolean; readonly afterNo: number; readonly limit: number },
  ): Promise<readonly { readonly no: number; readonly text: string }[]> {
    const rows = await this.#tell(sql.ANSWERS_OF, [tenantId, id, isError, afterNo, limit])
    return rows.map((row) => ({ no: Number(row['no']), text: String(row['document']) }))
  }

  async sealLines({ tenantId, id }: JobRef): Promise<void> {
    await this.#tell(sql.SEAL_LINES, [tenantId, id])
  }

  async unanswered({ tenantId, id }: JobRef, afterNo: number, limit: number): Promise<readonly LinePlace[]> {
    return (await this.#tell(sql.UNANSWERED, [tenantId, id, afterNo, limit])).map(toPlace)
  }

  async renewLease(owner: string, leaseMs: number): Promise<void> {
    await this.#tell(sql.RENEW_LEASE, [owner, leaseMs])
  }

  async freeLost(leaving = ''): Promise<number> {
    return countOf(await this.#tell(sql.FREE_LOST, [leaving]))
  }

  async forgetOthers(owner: string): Promise<void> {
    await this.#tell(sql.FORGET_OTHERS, [owner])
  }

  async takeNotices(nowMs: number, leaseMs: number, limit: number): Promise<readonly JobNotice[]> {
    const rows = await this.#tell(sql.TAKE_NOTICES, [nowMs, leaseMs, limit])
    return rows.map((row) => ({
      job: { tenantId: String(row['tenant_id']), id: String(row['job_id']) },
      ending: row['ending'] as JobNotice['ending'],
      createdAtMs: Number(row['created_at_ms']),
      tries: Number(row['tries']),
    }))
  }

  async delayNotice({ tenantId, id }: JobRef, untilMs: number): Promise<void> {
    await this.#tell(sql.DELAY_NOTICE, [tenantId, id, untilMs])
  }

  async dropNotice({ tenantId, id }: JobRef): Promise<void> {
    await this.#tell(sql.DROP_NOTICE, [tenantId, id])
  }

  async addFile({ tenantId, id, name, purpose, bytes, createdAtMs, expiresAtMs = null }: JobFileRow): Promise<void> {
    await this.#ask(tenantId, sql.ADD_FILE, [tenantId, id, name, purpose, bytes, createdAtMs, expiresAtMs])
  }

  async findFile(tenantId: string, id: string): Promise<JobFile | undefined> {
    const [row] = await this.#ask(tenantId, sql.FIND_FILE, [tenantId, id])
    return row && toJobFile(row)
  }

  async listFiles(
    tenantId: string,
    { limit, order, after = null, purpose = null }: FilesAsk,
  ): Promise<JobPage<JobFile> | 'no-such-after'> {
    const rows = await this.#ask(tenantId, sql.listJobFilesSql(order), [tenantId, after, limit + 1, purpose])
    if (rows.length === 0 && after !== null && (await this.findFile(tenantId, after)) === undefined)
      return 'no-such-after'
    return { items: rows.slice(0, limit).map(toJobFile), hasMore: rows.length > limit }
  }

  async removeFile(tenantId: string, id: string): Promise<boolean> {
    return (await this.#ask(tenantId, sql.REMOVE_FILE, [tenantId, id])).length > 0
  }

  async fileBytes(tenantId: string): Promise<number> {
    const [row] = await this.#ask(tenantId, sql.FILE_BYTES_OF, [tenantId])
    return Number(row?.['bytes'] ?? 0)
  }

  async expiredFiles(nowMs: number, limit: number): Promise<readonly JobFile[]> {
    return (await this.#tell(sql.EXPIRED_FILES, [nowMs, limit])).map(toJobFile)
  }

  async sweep(endedBeforeMs: number, limit: number): Promise<number> {
    return countOf(await this.#tell(sql.SWEEP_JOBS, [endedBeforeMs, limit]))
  }

  /** A client waits for the answer. */
  #ask(tenantId: string, statement: string, parameters: readonly Parameter[]): Promise<readonly Row[]> {
    return this.#database.query(statement, parameters, { lane: tenantLane(tenantId), isUrgent: true })
  }

  #tell(statement: string, parameters: readonly Parameter[]): Promise<readonly Row[]> {
    return this.#database.query(statement, parameters, RUNNER)
  }
}

type JobFileRow = Omit<JobFile, 'expiresAtMs'> & { readonly expiresAtMs?: number | null | undefined }
type FilesAsk = {
  readonly limit: number
  readonly order: 'asc' | 'desc'
  readonly after?: string | null | undefined
  readonly purpose?: string | null | undefined
}

/** What is not in a column of its own. Instants of states stand beside it, under the state's name. */
interface JobBody {
  readonly caller: string
  readonly endpoint: string
  readonly metadata: Readonly<Record<string, string>>
  readonly inputFileId: string
  readonly outputFileId?: string | null
  readonly errorFileId?: string | null
  readonly outputKeptS?: number | null
  readonly model?: string | null
  readonly faults?: readonly JobFault[]
}

const bodyOf = ({ caller, endpoint, metadata, inputFileId, outputKeptS = null }: JobBody | Job): JobBody => ({
  caller,
  endpoint,
  metadata,
  inputFileId,
  outputKeptS: outputKeptS ?? null,
})

const TIMED = ['failed', 'in_progress', 'finalizing', 'completed', 'expired', 'cancelling', 'cancelled'] as const

function toJob(row: Row): Job {
  const body = JSON.parse(String(row['body'])) as JobBody & Record<string, unknown>
  const times = TIMED.flatMap((state) => (typeof body[state] === 'number' ? [[state, body[state]]] : []))
  return {
    tenantId: String(row['tenant_id']),
    id: String(row['id']),
    caller: body.caller,
    endpoint: body.endpoint,
    state: row['state'] as JobState,
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: Number(row['expires_at_ms']),
    times: Object.fromEntries(times) as Job['times'],
    metadata: body.metadata,
    inputFileId: body.inputFileId,
    outputFileId: body.outputFileId ?? undefined,
    errorFileId: body.errorFileId ?? undefined,
    outputKeptS: body.outputKeptS ?? undefined,
    counts: { total: Number(row['total']), completed: Number(row['completed']), failed: Number(row['failed']) },
    faults: body.faults ?? [],
    model: body.model ?? undefined,
    tokens: Number(row['tokens']),
    ending: (row['ending'] as JobEnding | null | undefined) ?? undefined,
  }
}

const toPlace = (row: Row): LinePlace => ({
  no: Number(row['no']),
  at: Number(row['at']),
  length: Number(row['length']),
})

function toJobFile(row: Row): JobFile {
  const expiresAtMs = row['expires_at_ms']
  return {
    tenantId: String(row['tenant_id']),
    id: String(row['id']),
    name: String(row['name']),
    purpose: row['purpose'] as JobFile['purpose'],
    bytes: Number(row['bytes']),
    createdAtMs: Number(row['created_at_ms']),
    expiresAtMs: expiresAtMs === null || expiresAtMs === undefined ? undefined : Number(expiresAtMs),
  }
}

const countOf = (rows: readonly Row[]): number => Number(rows[0]?.['n'] ?? 0)
