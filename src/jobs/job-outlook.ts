import type { Job } from '../domain/job.ts'
import type { Band } from '../domain/tenant.ts'
import { expectedEndMs } from '../wire/batches.ts'

/**
 * In which band do the next lines of a job run?
 *
 * In `offline`, on what others leave over. Where the job's tenant allows it (`jobs.escalate`), in `standard` while the job
 * would end after its window at its mean pace so far, or in the last tenth of the time left. The answer is asked for every
 * line, and again for every try of a line: a job that catches up goes back to `offline`. Nothing is remembered.
 *
 * The pace says nothing in the first minute, in which a job's first lines are begun and few are done. A job that has no
 * line done, because others stand before it, rises when half of its window is over.
 *
 * Worked example: 24 h, 50,000 lines, of which 10,000 are done after 8 h: the end is expected at 40 h, so lines run in
 * `standard`. When 30,000 are done after 14 h, it is expected at 23 h 20 min, which is in the last tenth of the 10 h left:
 * still `standard`. With 35,000 after 15 h it is 21 h 26 min, and lines run in `offline` again.
 */
const PACE_MS_MIN = 60_000
const MARGIN_RATIO = 0.1
const SILENT_RATIO_MAX = 0.5

export function decideLineBand(job: Job, nowMs: number, mayRise: boolean): Extract<Band, 'offline' | 'standard'> {
  const begunMs = job.times.in_progress
  if (!mayRise || begunMs === undefined || nowMs - begunMs < PACE_MS_MIN) return 'offline'
  const leftMs = job.expiresAtMs - nowMs
  const endMs = expectedEndMs(job, nowMs)
  const isSilentLong = leftMs < SILENT_RATIO_MAX * (job.expiresAtMs - job.createdAtMs)
  const wouldMiss = endMs === undefined ? isSilentLong : endMs > job.expiresAtMs - MARGIN_RATIO * leftMs
  return wouldMiss ? 'standard' : 'offline'
}
