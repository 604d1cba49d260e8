import { type Clock, usToMs } from '../base/clock.ts'
import type { Job, JobFault, LinePlace } from '../domain/job.ts'
import type { JobStore } from '../lifecycle/job-ports.ts'
import type { FileSurvey } from './check-file.ts'
import type { FileSurveys } from './file-surveys.ts'
import type { JobOptions } from './job-options.ts'

/**
 * Is the file of a job good? All of it is read before any line runs (`file-surveys.ts`). The places of a good file's
 * lines are written a part at a time; a process that dies meanwhile leaves places that the next one finds again.
 */
export interface ValidateWorld {
  readonly clock: Clock
  readonly store: JobStore
  readonly options: JobOptions
  readonly surveys: FileSurveys
  readonly nextTurn: () => Promise<void>
}

/** Places that are written in one statement. */
const PLACES_PER_WRITE = 5_000

export async function validateJob(
  { clock, store, options, surveys, nextTurn }: ValidateWorld,
  job: Job,
): Promise<void> {
  const nowMs = (): number => Math.floor(usToMs(clock.now()))
  const survey = await surveys.of(job)
  const { faults, total, tokens, model } = survey
  if (faults.length > 0) {
    await nextTurn()
    await store.failJob(job, faults, nowMs())
    return
  }
  for (let no = 0; no < total; no += PLACES_PER_WRITE) {
    await nextTurn()
    await store.addLines(job, placesOf(survey, no))
  }
  const begun = await store.beginJob(job, { total, tokens, model, nowMs: nowMs(), tokensMax: options.tokensMax })
  if (begun === 'too-many-tokens') await store.failJob(job, [tooManyTokens(options.tokensMax)], nowMs())
}

/** The places that one statement writes, from this line on. */
function placesOf({ ats, lengths }: FileSurvey, from: number): readonly LinePlace[] {
  return ats
    .slice(from, from + PLACES_PER_WRITE)
    .map((at, i) => ({ no: from + i, at, length: lengths[from + i] as number }))
}

const tooManyTokens = (tokensMax: number): JobFault => ({
  code: 'token_limit_exceeded',
  message: `Enqueued token limit reached: your open batches may have ${tokensMax} tokens together. Try again when some have ended.`,
  param: null,
  line: null,
})
