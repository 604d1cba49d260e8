import { type Clock, usToMs } from '../base/clock.ts'
import type { Job, JobEnding, JobNotice } from '../domain/job.ts'
import type { BackgroundKeeper, FileBytes, JobStore } from '../lifecycle/job-ports.ts'

/**
 * The end of a response that ran in the background: its one answer goes to the archive, and the file of its request goes.
 * The job ends last, so a process that dies meanwhile leaves a job that the next one finishes in the same way.
 */
export interface FinishWorld {
  readonly clock: Clock
  readonly store: JobStore
  readonly files: FileBytes
  readonly background: BackgroundKeeper
}

export async function finishBackground(world: FinishWorld, job: Job, ending: JobEnding): Promise<boolean> {
  const { clock, store, files, background } = world
  await store.sealLines(job)
  let told: JobNotice['ending'] = ending
  // What was cancelled has been told and stored as cancelled; an answer that came after all is not shown.
  if (ending !== 'cancelled') {
    const first = { afterNo: -1, limit: 1 }
    const [answer] = await store.answersOf(job, { isError: false, ...first })
    const [error] = answer === undefined ? await store.answersOf(job, { isError: true, ...first }) : []
    told = await background.keep(job, (answer ?? error)?.text)
  }
  await files.remove(job.inputFileId)
  await store.removeFile(job.tenantId, job.inputFileId)
  const nowMs = Math.floor(usToMs(clock.now()))
  return store.endJob(job, { ending, outputFileId: undefined, errorFileId: undefined, nowMs, told })
}
