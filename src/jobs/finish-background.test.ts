import { describe, expect, it } from 'vitest'
import { lineTexts, MemoryFileBytes, MemoryJobStore, submittedJob } from '../../test/support/memory-jobs.ts'
import { msToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { JobEnding } from '../domain/job.ts'
import { finishBackground } from './finish-background.ts'

/** A response in the background whose line was answered like this, at its end. */
async function finished(ending: JobEnding, answer?: { readonly isError: boolean }) {
  const store = new MemoryJobStore()
  const files = new MemoryFileBytes()
  const job = submittedJob(files, 'resp_1', lineTexts(1))
  await store.addJob(job)
  await store.addLines(job, [{ no: 0, at: 0, length: 1 }])
  await store.beginJob(job, { total: 1, tokens: 1, model: 'm', nowMs: 1, tokensMax: 10 })
  await store.claimLines(job, 'me', 1)
  if (answer !== undefined) await store.writeAnswers('me', [{ job, no: 0, attempt: 1, text: 'the answer', ...answer }])
  await store.closeJob(job, ending, 2)
  const kept: unknown[] = []
  const keep = (_: unknown, text: string | undefined) => {
    kept.push(text)
    return Promise.resolve('incomplete' as const)
  }
  const world = { clock: new VirtualClock(msToUs(7.9)), store, files, background: { keep } }
  expect(await finishBackground(world, job, ending)).toBe(true)
  return { job: await store.findJob(job), notice: store.notices.get('resp_1'), kept, file: files.text(job.inputFileId) }
}

describe('the end of a response in the background', () => {
  it.each([false, true])('keeps its answer (an error: %s), and tells what has become of it', async (isError) => {
    const { job, notice, kept, file } = await finished('completed', { isError })
    expect(kept).toEqual(['the answer'])
    expect(notice?.ending).toBe('incomplete')
    expect(job).toMatchObject({ state: 'completed', times: { completed: 7 } })
    expect(file).toBeUndefined()
  })

  it('keeps that there was no answer in time', async () => {
    expect((await finished('expired')).kept).toEqual([undefined])
  })

  it('keeps nothing of one that was cancelled, also if an answer came after all', async () => {
    const { kept, notice } = await finished('cancelled', { isError: false })
    expect(kept).toEqual([])
    expect(notice?.ending).toBe('cancelled')
  })
})
