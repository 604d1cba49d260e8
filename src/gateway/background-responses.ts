import { type Clock, usToMs } from '../base/clock.ts'
import { type ArchivedAnswer, ArchiveUnavailable } from '../domain/archive.ts'
import { type Job, type JobRef, LINE_BYTES_MAX } from '../domain/job.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { Archive } from '../lifecycle/archive-ports.ts'
import type { BackgroundKeeper, FileBytes, JobStore } from '../lifecycle/job-ports.ts'
import { COMPLETION_WINDOW_MS } from '../wire/batches.ts'
import type { QueuedResponse } from '../wire/dialect.ts'
import { backgroundError } from '../wire/responses-dialect.ts'
import { type WireJson, wireResponse } from '../wire/responses-stored.ts'

/**
 * Responses with `background: true`: each is a job of one line. The archive has the response from the beginning, as it is
 * queued; what has become of it since is the job's to say, until its end is written over it. Nothing is kept here, so any
 * gateway on the same store tells the same, also after a restart.
 */
export interface BackgroundParts {
  readonly archive: Archive
  readonly store: JobStore
  readonly files: FileBytes
  readonly clock: Clock
  /** Jobs of one tenant that have not ended. */
  readonly openMax: number
  readonly tenantById: (tenantId: string) => Tenant | undefined
  readonly wake: () => void
}

export interface BackgroundStart {
  readonly tenant: Tenant
  /** Whoever asks, as the job finds them again. */
  readonly caller: string
  readonly queued: QueuedResponse
  /** The body as it was screened. */
  readonly bytes: Buffer
}

const KIND = 'response'
const ENDPOINT = '/v1/responses'
/** The file of a request that no job came to is swept after its window. */
const FILE_KEPT_MS = 2 * COMPLETION_WINDOW_MS

export class BackgroundResponses implements BackgroundKeeper {
  readonly #parts: BackgroundParts

  constructor(parts: BackgroundParts) {
    this.#parts = parts
  }

  get openMax(): number {
    return this.#parts.openMax
  }

  /** Queues the response. It is durable when this returns; throws when the store is away. */
  async start(start: BackgroundStart): Promise<'queued' | 'too-many-jobs' | 'too-large'> {
    const { archive, wake } = this.#parts
    const { tenant, queued } = start
    const line = lineOf(queued.id, start.bytes)
    if (line.length > LINE_BYTES_MAX) return 'too-large'
    archive.keep(tenant, queued)
    // Reading waits for what is being written: a response that is not there was lost on the way.
    if ((await archive.find(tenant.id, KIND, queued.id)) === undefined)
      throw new ArchiveUnavailable('The response could not be stored.')
    let isAdded = false
    try {
      isAdded = await this.#addJob(start, line)
    } finally {
      if (!isAdded) await archive.remove(tenant.id, KIND, queued.id)
    }
    if (!isAdded) return 'too-many-jobs'
    wake()
    return 'queued'
  }

  async #addJob({ tenant, caller, queued }: BackgroundStart, line: Buffer): Promise<boolean> {
    const { store, files, openMax } = this.#parts
    const tenantId = tenant.id
    const createdAtMs = this.#nowMs()
    const inputFileId = `file-background-${queued.id.slice(queued.id.indexOf('_') + 1)}`
    const expiresAtMs = createdAtMs + FILE_KEPT_MS
    const name = `${queued.id}.jsonl`
    await store.addFile({
      id: inputFileId,
      tenantId,
      name,
      purpose: 'batch',
      bytes: line.length,
      createdAtMs,
      expiresAtMs,
    })
    const appender = files.append(inputFileId)
    await appender.write(line)
    await appender.end()
    const job: Job = {
      id: queued.id,
      tenantId,
      caller,
      endpoint: ENDPOINT,
      state: 'validating',
      createdAtMs,
      expiresAtMs: createdAtMs + COMPLETION_WINDOW_MS,
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
    if ((await store.addJob(job, { openMax })) === 'ok') return true
    await files.remove(inputFileId)
    await store.removeFile(tenantId, inputFileId)
    return false
  }

  /** The response as it is now. */
  async seen(answer: ArchivedAnswer): Promise<WireJson> {
    const stored = wireResponse(answer)
    if (!isOpen(stored)) return stored
    const job = await this.#parts.store.findJob(answer)
    const state = job === undefined || job.state === 'failed' ? undefined : STATUS[job.state]
    if (state !== undefined) return { ...stored, status: state }
    // The job may have ended between the two readings.
    const again = await this.#parts.archive.find(answer.tenantId, KIND, answer.id)
    const now = again === undefined ? stored : wireResponse(again)
    return isOpen(now) ? failed(now, job?.faults[0] && { error: { message: job.faults[0].message } }) : now
  }

  /** Undefined where the response does not run in the background. One that has ended stays as it is. */
  async cancel(answer: ArchivedAnswer): Promise<WireJson | undefined> {
    const stored = wireResponse(answer)
    if (stored['background'] !== true) return undefined
    if (!isOpen(stored)) return stored
    const { archive, tenantById, wake } = this.#parts
    const job = await this.#stop(answer)
    wake()
    const told = await this.seen(answer)
    const tenant = tenantById(answer.tenantId)
    const isCancelled = job?.state === 'cancelling' || job?.state === 'cancelled'
    if (isCancelled && tenant !== undefined) archive.keep(tenant, { ...answer, document: JSON.stringify(told) })
    return told
  }

  /** Before a response is erased: what runs for it ends, and writes nothing any more. */
  async forget(answer: ArchivedAnswer): Promise<void> {
    if (!isOpen(wireResponse(answer))) return
    const job = await this.#stop(answer)
    this.#parts.wake()
    if (job?.state === 'finalizing') throw new ArchiveUnavailable('The response is being stored at this moment.')
  }

  async keep(job: Job, answer: string | undefined): ReturnType<BackgroundKeeper['keep']> {
    const { archive, tenantById } = this.#parts
    const queued = await archive.find(job.tenantId, KIND, job.id)
    const tenant = tenantById(job.tenantId)
    // It was erased meanwhile, or its tenant was.
    if (queued === undefined || tenant === undefined) return 'failed'
    // It was stored before, by a process that then was lost.
    if (!isOpen(wireResponse(queued))) return statusOf(wireResponse(queued))
    const ended = JSON.stringify(endedResponse(wireResponse(queued), answer))
    const why = archive.whyNot(tenant, ended.length + queued.input.length)
    if (why === 'not-allowed') return 'failed'
    const document = why === 'too-large' ? JSON.stringify(failed(wireResponse(queued), TOO_LARGE)) : ended
    if (why === undefined || why === 'too-large') archive.keep(tenant, { ...queued, document })
    // Reading waits for what is being written. The job ends only after that, and is finished again where it was lost.
    const now = await archive.find(job.tenantId, KIND, job.id)
    if (now !== undefined && isOpen(wireResponse(now)))
      throw new ArchiveUnavailable('A response could not be stored yet.')
    return now === undefined ? 'failed' : statusOf(wireResponse(now))
  }

  #stop({ tenantId, id }: JobRef): Promise<Job | undefined> {
    return this.#parts.store.cancelJob({ tenantId, id }, this.#nowMs())
  }

  #nowMs(): number {
    return Math.floor(usToMs(this.#parts.clock.now()))
  }
}

/** How a job's state is told of a response whose end is not stored yet; a job that ended without one has failed. */
const STATUS: Readonly<Partial<Record<Job['state'], string>>> = {
  validating: 'queued',
  in_progress: 'in_progress',
  finalizing: 'in_progress',
  cancelling: 'cancelled',
  cancelled: 'cancelled',
}

/** Line breaks of JSON stand between its words only. */
function lineOf(id: string, bytes: Buffer): Buffer {
  const head = `{"custom_id":${JSON.stringify(id)},"method":"POST","url":"${ENDPOINT}","body":`
  return Buffer.from(`${head}${bytes.toString('utf8').replace(/[\r\n]/g, ' ')}}`)
}

const isOpen = ({ background, status }: WireJson): boolean => background === true && status === 'queued'

const statusOf = ({ status }: WireJson): 'completed' | 'incomplete' | 'failed' =>
  status === 'completed' || status === 'incomplete' ? status : 'failed'

const TOO_LARGE = { error: { message: 'The answer is larger than an answer that is stored may be. Ask for less.' } }

/** The line's answer in place of the queued response, under the id and the time that the client knows. */
function endedResponse(queued: WireJson, answer: string | undefined): WireJson {
  const told = answer === undefined ? undefined : (JSON.parse(answer) as LineTold)
  const { id, created_at } = queued
  if (told?.response?.status_code === 200) return { ...told.response.body, id, created_at }
  const late = { error: { message: 'The response could not be made within 24 hours. Ask again.' } }
  return failed(queued, told === undefined ? late : told.response?.body)
}

interface LineTold {
  readonly response: { readonly status_code: number; readonly body: WireJson } | null
}

const failed = (queued: WireJson, error: unknown): WireJson => ({
  ...queued,
  status: 'failed',
  error: backgroundError(error),
})
