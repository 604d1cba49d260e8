/** Bounds of jobs. Those of a file are OpenAI's. */
export interface JobOptions {
  /** Lines of one file, and their bytes. */
  readonly linesMax: number
  readonly fileBytesMax: number
  /** Jobs of one tenant that have not ended. */
  readonly openMax: number
  /** Prompt tokens in the open jobs of one tenant, about. */
  readonly tokensMax: number
  /** Bytes of all files of one tenant. */
  readonly storedBytesMax: number
  /** Lines that one process runs at once, of all tenants together. */
  readonly runningMax: number
  /** Tenants whose jobs rise to the band `standard` when they would miss their window. */
  readonly escalate: readonly string[]
}

/** Mistakes that are told of one file: enough to see what is wrong, and one answer still has room for them. */
export const FAULTS_MAX = 100
/** An owner that is not heard for this long is gone; it says that it is there three times in between. */
export const LEASE_MS = 30_000
export const RENEW_MS = 10_000
/** A job is looked at this often while there is one; a gateway that shares its store looks for others' jobs as often. */
export const LOOK_MS = 250
export const IDLE_LOOK_MS = 1_000
/** A process alone on its store hears of new jobs; it looks for files that expire and receivers to be told again. */
export const ALONE_LOOK_MS = 30_000
/** Open jobs that one look sees. Those that end first come first, so none is passed over for ever. */
export const JOBS_PER_LOOK = 256
/** Running lines of a job that is cancelled may end by themselves for this long. */
export const CANCEL_GRACE_MS = 15_000
/** An engine that fails a line is asked again, elsewhere, this often. */
export const TRIES_MAX = 3
/** Answers that are written in one statement. */
export const ANSWERS_PER_WRITE = 128
/** A line that was told to come back later waits no longer than this before it asks again. */
export const WAIT_MS_MAX = 30_000
/** Ended jobs are told about for this long: OpenAI's list goes back as far. */
export const ENDED_KEPT_MS = 30 * 24 * 3_600_000
