import { describe, expect, it } from 'vitest'
import { lineTexts, MemoryFileBytes, MemoryJobStore, submittedJob } from '../../test/support/memory-jobs.ts'
import { msToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { Job, JobEnding } from '../domain/job.ts'
import { finalizeJob } from './finalize-job.ts'

const NOW_MS = 5_000

/** A job with these lines, of which some are answered and some failed; the rest never ran. */
async function finalized(
  lines: number,
  { answered, failed, ending, over = {} }: { answered: number; failed: number; ending: JobEnding; over?: Partial<Job> },
): Promise<{ job: Job; store: MemoryJobStore; files: MemoryFileBytes }> {
  const store = new MemoryJobStore()
  const files = new MemoryFileBytes()
  const texts = lineTexts(lines)
  const job = submittedJob(files, 'batch_1', texts, over)
  await store.addJob(job)
  let at = 0
  const places = texts.map((text, no) => {
    const place = { no, at, length: text.length }
    at += text.length + 1
    return place
  })
  await store.addLines(job, places)
  await store.beginJob(job, { total: lines, tokens: 1, model: 'm', nowMs: 1, tokensMax: 10 })
  await store.claimLines(job, 'me', lines)
  const answers = places.slice(0, answered + failed).map(({ no }) => ({
    job,
    no,
    attempt: 1,
    isError: no >= answered,
    text: JSON.stringify({ custom_id: `line-${no}` }),
  }))
  await store.writeAnswers('me', answers)
  await store.closeJob(job, ending, 2)
  const clock = new VirtualClock(msToUs(NOW_MS + 0.7))
  expect(await finalizeJob({ clock, store, files }, job, ending)).toBe(true)
  return { job: (await store.findJob(job))!, store, files }
}

const namesIn = (files: MemoryFileBytes, id: string | undefined): string[] =>
  (files.text(id ?? '') ?? '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { custom_id: string }).custom_id)

const names = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, i) => `line-${from + i}`)

describe('the files of a job that has ended', () => {
  it('name every line once: answers in one, errors and lines that never ran in the other', async () => {
    const { job, files } = await finalized(9, { answered: 3, failed: 2, ending: 'expired' })
    expect(job).toMatchObject({ state: 'expired', times: { expired: NOW_MS } })
    expect(namesIn(files, job.outputFileId)).toEqual(names(0, 3))
    expect(namesIn(files, job.errorFileId)).toEqual(names(3, 9))
    expect(files.text(job.errorFileId!)?.trim().split('\n').at(-1)).toContain('batch_expired')
  })

  it('hold more lines than one read gives', async () => {
    const { job, files } = await finalized(1_202, { answered: 601, failed: 0, ending: 'cancelled' })
    expect(namesIn(files, job.outputFileId)).toEqual(names(0, 601))
    expect(namesIn(files, job.errorFileId)).toEqual(names(601, 1_202))
  })

  it('are written down with their size, and kept for as long as the job asks', async () => {
    const { job, store, files } = await finalized(2, {
      answered: 1,
      failed: 1,
      ending: 'completed',
      over: { outputKeptS: 60 },
    })
    const bytes = files.text(job.outputFileId!)?.length
    expect(await store.findFile('a', job.outputFileId!)).toEqual({
      id: 'file-output-1',
      tenantId: 'a',
      name: 'batch_1_output.jsonl',
      purpose: 'batch_output',
      bytes,
      createdAtMs: NOW_MS,
      expiresAtMs: NOW_MS + 60_000,
    })
    expect(await store.findFile('a', job.errorFileId!)).toMatchObject({ name: 'batch_1_error.jsonl' })
  })

  it('are kept without an end unless the job asks for one', async () => {
    const { job, store } = await finalized(1, { answered: 1, failed: 0, ending: 'completed' })
    expect((await store.findFile('a', job.outputFileId!))?.expiresAtMs).toBeUndefined()
  })

  it('are none where they would be empty', async () => {
    const { job, store, files } = await finalized(1, { answered: 1, failed: 0, ending: 'completed' })
    expect(job.errorFileId).toBeUndefined()
    expect(files.text('file-errors-1')).toBeUndefined()
    expect([...store.files.keys()]).toEqual(['file-output-1'])
  })
})
