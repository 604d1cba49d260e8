/**
 * A job is work that may wait: a file of requests, one on each line, that are run in the band `offline`
 * (`jobs/job-outlook.ts` has the exception) and answered in a second file. A line is one request of a job. OpenAI calls a
 * job a batch.
 */

/** OpenAI's eight states, with OpenAI's names: they are stored and told as they are. */
export type JobState =
  | 'validating'
  | 'failed'
  | 'in_progress'
  | 'finalizing'
  | 'completed'
  | 'expired'
  | 'cancelling'
  | 'cancelled'

/** How a job that is being finalized will end. */
export type JobEnding = 'completed' | 'expired' | 'cancelled'

/** What is wrong with the file of a job; `line` counts from 1. */
export interface JobFault {
  readonly code: string
  readonly message: string
  readonly param: string | null
  readonly line: number | null
}

export interface JobCounts {
  readonly total: number
  readonly completed: number
  readonly failed: number
}

/** Instants of a job's states, in milliseconds since the epoch. */
export type JobTimes = { readonly [State in Exclude<JobState, 'validating'>]?: number }

export interface Job extends JobRef {
  /** Whoever made the job, as the gateway can find it again: lines run on the same terms. No policy reads it. */
  readonly caller: string
  /** The path that every line asks, as `/v1/chat/completions`. */
  readonly endpoint: string
  readonly state: JobState
  readonly createdAtMs: number
  readonly expiresAtMs: number
  readonly times: JobTimes
  readonly metadata: Readonly<Record<string, string>>
  readonly inputFileId: string
  readonly outputFileId: string | undefined
  readonly errorFileId: string | undefined
  /** Seconds for which the files with the answers are kept; for ever if absent. */
  readonly outputKeptS: number | undefined
  readonly counts: JobCounts
  readonly faults: readonly JobFault[]
  /** The model of the lines, where all have one. */
  readonly model: string | undefined
  /** Prompt tokens of all lines, about. */
  readonly tokens: number
  /** Of a job that is being finalized. */
  readonly ending: JobEnding | undefined
}

/** A file of requests, or of answers. */
export interface JobFile {
  readonly id: string
  readonly tenantId: string
  readonly name: string
  readonly purpose: 'batch' | 'batch_output'
  readonly bytes: number
  readonly createdAtMs: number
  readonly expiresAtMs: number | undefined
}

/** A line is a request as the server takes it by itself: 1 MiB, as OpenAI has it. */
export const LINE_BYTES_MAX = 1_048_576

/** Where a line stands in its file. */
export interface LinePlace {
  /** From 0, in the order of the file. */
  readonly no: number
  /** The first byte, and how many there are without the line's end. */
  readonly at: number
  readonly length: number
}

/** Names a job. */
export interface JobRef {
  readonly tenantId: string
  readonly id: string
}

/**
 * A response that runs in the background is a job of one line, under the response's own id. It is no batch: batches do
 * not list it, and its answer goes to the archive.
 */
export const isBackgroundJob = ({ id }: Pick<JobRef, 'id'>): boolean => id.startsWith('resp_')

/** What follows the prefix of a job's id. */
export const jobCore = ({ id }: Pick<JobRef, 'id'>): string => id.slice(id.indexOf('_') + 1)

/** A message of a queue is run as the only line of a job that rests nowhere. */
export const messageJobId = (queueId: string, messageId: string): string =>
  `queue_${queueId}-${messageId}`.replaceAll(/[^A-Za-z0-9_-]/g, '-')

/** What a line is called, as its request and in its answer: OpenAI's name for a request of a batch, and two of ours. */
export function lineIdOf(job: Pick<JobRef, 'id'>, no: number): string {
  if (isBackgroundJob(job)) return `background_req_${jobCore(job)}`
  return job.id.startsWith('queue_') ? `queue_req_${jobCore(job)}` : `batch_req_${jobCore(job)}_${no}`
}

/** Whether a ticket is a line's: one that was lost runs again, under the same id. */
export const isLineTicket = (ticketId: string): boolean => /^(batch|background|queue)_req_/.test(ticketId)

/** A line that this process runs. */
export interface ClaimedLine extends LinePlace {
  readonly job: JobRef
  /** How often the line was begun, this time included: a line that was lost is begun again. */
  readonly attempt: number
  /** How often it ended without an answer that counts. */
  readonly tries: number
}

/** The answer of a line, as it stands in the file of answers or of errors. */
export interface LineAnswer {
  readonly job: JobRef
  readonly no: number
  readonly attempt: number
  readonly isError: boolean
  /** One JSON document, without a line's end. */
  readonly text: string
}

/** That a job has ended, for whoever wants to be told. */
export interface JobNotice {
  readonly job: JobRef
  /** Of a response in the background what has become of it, also where its job has only run to its end. */
  readonly ending: JobEnding | 'failed' | 'incomplete'
  readonly createdAtMs: number
  /** How often it was tried, this time included. */
  readonly tries: number
}

/** Jobs cannot be asked for now: the store is away, or has too much waiting. */
export class JobsUnavailable extends Error {
  override readonly name = 'JobsUnavailable'
  /** When it is worth coming back, where that is known. */
  readonly retryAfterUs: number | undefined

  constructor(message: string, retryAfterUs?: number) {
    super(message)
    this.retryAfterUs = retryAfterUs
  }
}
