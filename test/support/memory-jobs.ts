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
} from '../../src/domain/job.ts'
import type { FileAppender, FileBytes, JobBegin, JobEnd, JobPage, JobStore } from '../../src/lifecycle/job-ports.ts'

/** Jobs in memory, as `test/contract/job-store.test.ts` wants them of a store: what the runner asks, and no lists. */
export class MemoryJobStore implements JobStore {
  readonly jobs = new Map<string, Job>()
  readonly files = new Map<string, JobFile>()
  readonly notices = new Map<string, JobNotice>()
  /** Owners whose lease holds, in the order in which they renewed it. */
  readonly renewed: string[] = []
  readonly #lines = new Map<string, Line[]>()
  readonly #holders = new Map<string, string>()
  #leaving = new Set<string>()

  async addJob(job: Job): Promise<'ok'> {
    this.jobs.set(job.id, job)
    return 'ok'
  }

  async findJob({ id }: JobRef): Promise<Job | undefined> {
    return this.jobs.get(id)
  }

  async openJobs(limit: number): Promise<readonly Job[]> {
    const open = [...this.jobs.values()].filter(({ state }) => OPEN.has(state))
    return open.sort((a, b) => a.expiresAtMs - b.expiresAtMs).slice(0, limit)
  }

  async cancelJob({ id }: JobRef, nowMs: number): Promise<Job | undefined> {
    const job = this.jobs.get(id)
    if (job?.state === 'in_progress' || job?.state === 'validating') this.#move(job, 'cancelling', nowMs)
    return this.jobs.get(id)
  }

  async holdJob({ id }: JobRef, owner: string, state: JobState): Promise<boolean> {
    const holder = this.#holders.get(id)
    if (this.jobs.get(id)?.state !== state || (holder !== undefined && holder !== owner)) return false
    this.#holders.set(id, owner)
    return true
  }

  async addLines({ id }: JobRef, places: readonly LinePlace[]): Promise<void> {
    await turn()
    const lines = this.#linesOf(id)
    for (const place of places)
      lines[place.no] = { ...place, attempt: 0, tries: 0, owner: undefined, answer: undefined }
  }

  async beginJob({ id }: JobRef, { total, tokens, model, nowMs, tokensMax }: JobBegin) {
    const job = this.jobs.get(id)
    if (job?.state !== 'validating') return 'moved-on' as const
    const open = [...this.jobs.values()].filter(({ state, tenantId }) => OPEN.has(state) && tenantId === job.tenantId)
    if (open.reduce((sum, one) => sum + one.tokens, tokens) > tokensMax) return 'too-many-tokens' as const
    this.#move({ ...job, counts: { ...job.counts, total }, tokens, model }, 'in_progress', nowMs)
    return 'ok' as const
  }

  async failJob({ id }: JobRef, faults: readonly JobFault[], nowMs: number): Promise<boolean> {
    const job = this.jobs.get(id)
    if (job?.state !== 'validating') return false
    this.#move({ ...job, faults }, 'failed', nowMs)
    return true
  }

  async closeJob({ id }: JobRef, ending: JobEnding, nowMs: number): Promise<boolean> {
    const job = this.jobs.get(id)
    if (job?.state !== 'in_progress' && job?.state !== 'validating') return false
    this.#move({ ...job, ending }, 'finalizing', nowMs)
    return true
  }

  async endJob({ id }: JobRef, { ending, nowMs, outputFileId, errorFileId, told }: JobEnd): Promise<boolean> {
    const job = this.jobs.get(id)
    if (job?.state !== 'finalizing' && job?.state !== 'cancelling') return false
    this.#move({ ...job, outputFileId, errorFileId }, ending, nowMs)
    const { tenantId } = job
    this.notices.set(id, { job: { tenantId, id }, ending: told ?? ending, createdAtMs: nowMs, tries: 0 })
    return true
  }

  async claimLines({ tenantId, id }: JobRef, owner: string, limit: number): Promise<readonly ClaimedLine[]> {
    if (this.jobs.get(id)?.state !== 'in_progress') return []
    const free = this.#linesOf(id).filter((line) => line.owner === undefined && line.answer === undefined)
    return free.slice(0, limit).map((line) => {
      line.owner = owner
      line.attempt++
      const { no, at, length, attempt, tries } = line
      return { job: { tenantId, id }, no, at, length, attempt, tries }
    })
  }

  async writeAnswers(owner: string, answers: readonly LineAnswer[]): Promise<number> {
    let written = 0
    for (const answer of answers) {
      const line = this.#linesOf(answer.job.id)[answer.no]
      if (line?.owner !== owner || line.attempt !== answer.attempt) continue
      line.answer = answer
      line.owner = undefined
      written++
      this.#count(answer)
    }
    return written
  }

  async giveBack(owner: string, lines: readonly (ClaimedLine & { readonly isTry: boolean })[]): Promise<void> {
    for (const { job, no, attempt, isTry } of lines) {
      const line = this.#linesOf(job.id)[no]
      if (line?.owner !== owner || line.attempt !== attempt) continue
      line.owner = undefined
      if (isTry) line.tries++
    }
  }

  async answersOf(
    { id }: JobRef,
    { isError, afterNo, limit }: { readonly isError: boolean; readonly afterNo: number; readonly limit: number },
  ): Promise<readonly { readonly no: number; readonly text: string }[]> {
    await turn()
    const rows = this.#linesOf(id).flatMap(({ no, answer }) =>
      answer?.isError === isError && no > afterNo ? [{ no, text: answer.text }] : [],
    )
    return rows.slice(0, limit)
  }

  async sealLines({ id }: JobRef): Promise<void> {
    for (const line of this.#linesOf(id)) line.owner = undefined
  }

  async unanswered({ id }: JobRef, afterNo: number, limit: number): Promise<readonly LinePlace[]> {
    const open = this.#linesOf(id).filter(({ no, answer }) => answer === undefined && no > afterNo)
    return open.slice(0, limit).map(({ no, at, length }) => ({ no, at, length }))
  }

  async renewLease(owner: string): Promise<void> {
    this.renewed.push(owner)
  }

  async freeLost(leaving?: string): Promise<number> {
    if (leaving !== undefined) this.#leaving.add(leaving)
    const lost = [...this.#lines.values()].flat().filter(({ owner }) => owner !== undefined && this.#leaving.has(owner))
    for (const line of lost) line.owner = undefined
    return lost.length
  }

  async forgetOthers(owner: string): Promise<void> {
    const isOther = (one: string | undefined): one is string => one !== undefined && one !== owner
    for (const line of [...this.#lines.values()].flat()) if (isOther(line.owner)) line.owner = undefined
    for (const [id, holder] of this.#holders) if (isOther(holder)) this.#holders.delete(id)
  }

  async takeNotices(_nowMs: number, _leaseMs: number, limit: number): Promise<readonly JobNotice[]> {
    return [...this.notices.values()].slice(0, limit).map((notice) => ({ ...notice, tries: notice.tries + 1 }))
  }

  async delayNotice(): Promise<void> {}

  async dropNotice({ id }: JobRef): Promise<void> {
    this.notices.delete(id)
  }

  async addFile(file: JobFile): Promise<void> {
    this.files.set(file.id, file)
  }

  async findFile(_tenantId: string, id: string): Promise<JobFile | undefined> {
    return this.files.get(id)
  }

  async removeFile(_tenantId: string, id: string): Promise<boolean> {
    return this.files.delete(id)
  }

  async expiredFiles(nowMs: number, limit: number): Promise<readonly JobFile[]> {
    const isOver = ({ expiresAtMs }: JobFile): boolean => expiresAtMs !== undefined && expiresAtMs <= nowMs
    return [...this.files.values()].filter(isOver).slice(0, limit)
  }

  async sweep(endedBeforeMs: number): Promise<number> {
    const old = [...this.jobs.values()].filter(({ state, times }) => {
      const endedAtMs = OPEN.has(state) ? undefined : times[state as 'completed']
      return endedAtMs !== undefined && endedAtMs < endedBeforeMs
    })
    for (const { id } of old) this.jobs.delete(id)
    return old.length
  }

  async fileBytes(): Promise<number> {
    throw new Error('the runner asks for no sums')
  }

  async listJobs(): Promise<JobPage<Job>> {
    throw new Error('the runner asks for no lists')
  }

  async listFiles(): Promise<JobPage<JobFile>> {
    throw new Error('the runner asks for no lists')
  }

  #linesOf(id: string): Line[] {
    const lines = this.#lines.get(id) ?? []
    this.#lines.set(id, lines)
    return lines
  }

  #move(job: Job, state: JobState, nowMs: number): void {
    this.jobs.set(job.id, { ...job, state, times: { ...job.times, [state]: nowMs } })
  }

  #count({ job: { id }, isError }: LineAnswer): void {
    const job = this.jobs.get(id)
    if (job === undefined) return
    const { total, completed, failed } = job.counts
    const counts = { total, completed: completed + Number(!isError), failed: failed + Number(isError) }
    this.jobs.set(id, { ...job, counts })
  }
}

const OPEN: ReadonlySet<JobState> = new Set(['validating', 'in_progress', 'finalizing', 'cancelling'])

interface Line extends LinePlace {
  attempt: number
  tries: number
  owner: string | undefined
  answer: LineAnswer | undefined
}

/** Files in memory. Every call ends a little later, as a disk's do, so what is not awaited is not there. */
export class MemoryFileBytes implements FileBytes {
  readonly #files = new Map<string, Uint8Array>()

  put(fileId: string, text: string): void {
    this.#files.set(fileId, new TextEncoder().encode(text))
  }

  text(fileId: string): string | undefined {
    const bytes = this.#files.get(fileId)
    return bytes && new TextDecoder().decode(bytes)
  }

  append(fileId: string): FileAppender {
    const pieces: Uint8Array[] = []
    return {
      write: async (piece) => {
        await turn()
        pieces.push(piece)
      },
      end: async () => {
        const bytes = Buffer.concat(pieces)
        this.#files.set(fileId, bytes)
        await turn()
        return bytes.length
      },
      drop: turn,
    }
  }

  async read(fileId: string, at: number, length: number): Promise<Uint8Array> {
    await turn()
    const bytes = this.#files.get(fileId)
    if (bytes === undefined) throw new Error(`no file ${fileId}`)
    return bytes.subarray(at, at + length)
  }

  async remove(fileId: string): Promise<void> {
    await turn()
    this.#files.delete(fileId)
  }
}

/** Within the same instant of a virtual clock. */
async function turn(): Promise<void> {
  for (let i = 0; i < 3; i++) await Promise.resolve()
}

/** Lines of a file of requests. */
export function lineTexts(count: number): string[] {
  const url = '/v1/chat/completions'
  const body = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] }
  return Array.from({ length: count }, (_, n) => JSON.stringify({ custom_id: `line-${n}`, method: 'POST', url, body }))
}

/** A job that was just submitted, with these lines in its file. */
export function submittedJob(
  files: MemoryFileBytes,
  id: string,
  lines: readonly string[],
  over: Partial<Job> = {},
): Job {
  const inputFileId = `file-of-${id}`
  files.put(inputFileId, lines.join('\n'))
  return {
    id,
    tenantId: 'a',
    caller: '{}',
    endpoint: '/v1/chat/completions',
    state: 'validating',
    createdAtMs: 0,
    expiresAtMs: 3_600_000,
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
    ...over,
  }
}
