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
import type { Band } from '../domain/tenant.ts'

/**
 * Ports of jobs: where jobs, their lines and their files rest, and who runs a line.
 *
 * Obligations of the store. A line is run by one owner at a time, as long as the owner's lease holds; its answer is
 * written once, together with the mark that it is done, by the owner that has claimed it and by no other. A job that is
 * not `in_progress` gives out no lines. Nothing of one tenant is shown to another (law L13).
 */
export interface JobStore {
  /** Calls at the very same time may pass the bound by as many. */
  addJob(job: Job, bounds: JobBounds): Promise<'ok' | 'too-many-jobs'>
  findJob(job: JobRef): Promise<Job | undefined>
  listJobs(tenantId: string, ask: JobPageAsk): Promise<JobPage<Job> | 'no-such-after'>
  /** Open jobs of all tenants, those that end first before the others. */
  openJobs(limit: number): Promise<readonly Job[]>
  /** Begins to cancel; what cannot be cancelled any more stays as it is. */
  cancelJob(job: JobRef, nowMs: number): Promise<Job | undefined>

  /** One owner at a time validates or finalizes a job; false when another one does, or the job has moved on. */
  holdJob(job: JobRef, owner: string, state: JobState): Promise<boolean>
  addLines(job: JobRef, lines: readonly LinePlace[]): Promise<void>
  /** The file is good: the job runs, unless its tenant has too many tokens in its jobs. */
  beginJob(job: JobRef, begin: JobBegin): Promise<'ok' | 'too-many-tokens' | 'moved-on'>
  failJob(job: JobRef, faults: readonly JobFault[], nowMs: number): Promise<boolean>
  /** From `in_progress` to `finalizing`: no line is given out any more. A job that is being cancelled stays so. */
  closeJob(job: JobRef, ending: JobEnding, nowMs: number): Promise<boolean>
  endJob(job: JobRef, end: JobEnd): Promise<boolean>

  /** Lines to run, in their order. */
  claimLines(job: JobRef, owner: string, limit: number): Promise<readonly ClaimedLine[]>
  /** Answers that were written; the others were not this owner's any more. */
  writeAnswers(owner: string, answers: readonly LineAnswer[]): Promise<number>
  /** A line that could not be run now is given back; `isTry` when its ticket has ended and is booked. */
  giveBack(owner: string, lines: readonly (ClaimedLine & { readonly isTry: boolean })[]): Promise<void>
  answersOf(
    job: JobRef,
    ask: { readonly isError: boolean; readonly afterNo: number; readonly limit: number },
  ): Promise<readonly { readonly no: number; readonly text: string }[]>
  /** Takes every running line of a job from its owner, so that no answer is written behind the files' back. */
  sealLines(job: JobRef): Promise<void>
  /** Lines without an answer. */
  unanswered(job: JobRef, afterNo: number, limit: number): Promise<readonly LinePlace[]>

  /** The owner is there for this long; lines of owners whose time is over can be claimed again. */
  renewLease(owner: string, leaseMs: number): Promise<void>
  /** Gives back lines of owners that are gone, and the owner's own when it leaves. */
  freeLost(leaving?: string): Promise<number>
  /** Forgets all owners but this one: the store has one user, so all others are gone. */
  forgetOthers(owner: string): Promise<void>

  /** Notices that are due; each is due again after the lease, unless it is dropped or delayed. */
  takeNotices(nowMs: number, leaseMs: number, limit: number): Promise<readonly JobNotice[]>
  delayNotice(job: JobRef, untilMs: number): Promise<void>
  dropNotice(job: JobRef): Promise<void>

  addFile(file: JobFile): Promise<void>
  findFile(tenantId: string, id: string): Promise<JobFile | undefined>
  listFiles(
    tenantId: string,
    ask: JobPageAsk & { readonly purpose?: string | undefined },
  ): Promise<JobPage<JobFile> | 'no-such-after'>
  removeFile(tenantId: string, id: string): Promise<boolean>
  /** Bytes of all files of the tenant. */
  fileBytes(tenantId: string): Promise<number>
  /** Files whose time is over; their bytes are removed by the caller. */
  expiredFiles(nowMs: number, limit: number): Promise<readonly JobFile[]>
  /** Removes lines and answers of jobs that have ended, and ended jobs that are older. Answers how many rows went. */
  sweep(endedBeforeMs: number, limit: number): Promise<number>
}

export interface JobBounds {
  /** Open jobs of one tenant. */
  readonly openMax: number
}

export interface JobBegin {
  readonly total: number
  readonly tokens: number
  readonly model: string | undefined
  readonly nowMs: number
  /** Tokens of all open jobs of the tenant. */
  readonly tokensMax: number
}

export interface JobEnd {
  readonly ending: JobEnding
  readonly outputFileId: string | undefined
  readonly errorFileId: string | undefined
  readonly nowMs: number
  /** What is told of it; the ending if absent. */
  readonly told?: JobNotice['ending']
}

export interface JobPageAsk {
  readonly limit: number
  readonly order: 'asc' | 'desc'
  readonly after: string | undefined
}

export interface JobPage<T> {
  readonly items: readonly T[]
  readonly hasMore: boolean
}

/** Tells whoever wants to know that a job has ended. Never rejects. */
export interface NoticeSender {
  /** Undefined where nobody of this tenant wants to be told. */
  send(notice: JobNotice): Promise<'told' | 'failed'> | undefined
}

/** Takes the answers of responses that ran in the background. */
export interface BackgroundKeeper {
  /**
   * `answer` as it stands in the store; undefined: the line had none in time. Rejects when it should be tried again. Answers
   * what has become of the response; one that is not there any more has failed.
   */
  keep(job: Job, answer: string | undefined): Promise<'completed' | 'incomplete' | 'failed'>
}

/** The bytes of files: on a disk, or in the database. A file is appended to by one writer, then only read. */
export interface FileBytes {
  append(fileId: string): FileAppender
  /** Fewer bytes where the file ends. */
  read(fileId: string, at: number, length: number): Promise<Uint8Array>
  remove(fileId: string): Promise<void>
}

export interface FileAppender {
  write(piece: Uint8Array): Promise<void>
  /** All bytes are durable; answers how many there are. */
  end(): Promise<number>
  /** The file is not wanted any more. */
  drop(): Promise<void>
}

/** Runs a line as if its client had sent it by itself. Never rejects. */
export interface LineRunner {
  run(ask: LineAsk): LineRun
}

/** Of a job, or of whatever else lines come from: who asks, which path, and until when. */
export type LineTerms = Pick<Job, 'id' | 'caller' | 'endpoint' | 'expiresAtMs'>

export interface LineAsk {
  readonly job: LineTerms
  /** The ticket's id: the same for a line that was lost and is run again, so that it is charged once. */
  readonly ticketId: string
  /** The line's `body` as JSON. */
  readonly body: string
  readonly deadlineMs: number
  /** `standard` for a job that would miss its window; `offline` where the caller may not use that band. */
  readonly band: Extract<Band, 'offline' | 'standard'>
}

export interface LineRun {
  readonly done: Promise<LineEnd>
  cancel(): void
}

export type LineEnd =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly body: string
      /** When it may be tried again; absent: the same line would be answered the same. */
      readonly retryAfterMs?: number | undefined
    }
  /** Cancelled before there was an answer. */
  | { readonly kind: 'gone' }
