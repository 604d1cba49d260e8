import { describe, expect, it } from 'vitest'
import { lineTexts, MemoryFileBytes, MemoryJobStore, submittedJob } from '../../test/support/memory-jobs.ts'
import { msToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { Job } from '../domain/job.ts'
import { FileSurveys } from './file-surveys.ts'
import { validateJob } from './validate-job.ts'

const OPTIONS = {
  linesMax: 12_000,
  fileBytesMax: 1e7,
  openMax: 10,
  tokensMax: 1e6,
  storedBytesMax: 1e9,
  runningMax: 8,
  escalate: [],
}

async function validated(
  lines: readonly string[],
  over: Partial<typeof OPTIONS> = {},
): Promise<{ job: Job; store: MemoryJobStore }> {
  const store = new MemoryJobStore()
  const files = new MemoryFileBytes()
  const job = submittedJob(files, 'batch_1', lines)
  await store.addJob(job)
  const nextTurn = (): Promise<void> => Promise.resolve()
  const world = { clock: new VirtualClock(msToUs(9.5)), store, options: { ...OPTIONS, ...over }, nextTurn }
  const surveys = new FileSurveys({ ...world, files, isKnownModel: (model) => model === 'm' })
  await validateJob({ ...world, surveys }, job)
  return { job: (await store.findJob(job))!, store }
}

const faultsOf = async (lines: readonly string[], over?: Partial<typeof OPTIONS>): Promise<unknown> => {
  const { job } = await validated(lines, over)
  expect([job.state, job.times.failed]).toEqual(['failed', 9])
  return job.faults.map(({ code, line }) => [code, line])
}

const [one, two, three] = lineTexts(3) as [string, string, string]

describe('a file of requests', () => {
  it('that is good begins its job, with every line where it stands', async () => {
    const texts = lineTexts(3)
    const { job, store } = await validated(texts)
    const bytes = texts.map(({ length }) => length)
    expect(job).toMatchObject({ state: 'in_progress', times: { in_progress: 9 }, counts: { total: 3 }, model: 'm' })
    expect(job.tokens).toBe(bytes.reduce((sum, length) => sum + Math.ceil(length / 4), 0))
    const places = await store.unanswered(job, -1, 9)
    expect(places).toEqual([
      { no: 0, at: 0, length: bytes[0] },
      { no: 1, at: bytes[0]! + 1, length: bytes[1] },
      { no: 2, at: bytes[0]! + bytes[1]! + 2, length: bytes[2] },
    ])
  })

  it('is read and written in pieces', async () => {
    const { job, store } = await validated(lineTexts(11_000))
    expect(job.counts.total).toBe(11_000)
    const places = await store.unanswered(job, -1, 20_000)
    expect(places.map(({ no }) => no)).toEqual(Array.from({ length: 11_000 }, (_, no) => no))
  })

  it('is refused with each mistake and its line', async () => {
    expect(await faultsOf([one, 'not JSON', three])).toEqual([['invalid_json_line', 2]])
    expect(await faultsOf([one, two, one])).toMatchObject([[expect.anything(), 3]])
    expect(await faultsOf([one, two.replace('"m"', '"x"')])).toMatchObject([[expect.anything(), 2]])
    expect(await faultsOf([one, two.replace('/v1/chat/completions', '/v1/embeddings')])).toHaveLength(1)
  })

  it('is refused when it is empty, or has more lines or tokens than it may', async () => {
    expect(await faultsOf([])).toEqual([['empty_file', null]])
    expect(await faultsOf([one, two, three], { linesMax: 2 })).toEqual([['too_many_tasks', null]])
    expect((await validated([one, two, three], { linesMax: 3 })).job.state).toBe('in_progress')
    expect(await faultsOf([one], { tokensMax: 3 })).toEqual([['token_limit_exceeded', null]])
  })

  it('has a hundred mistakes told at most', async () => {
    expect(await faultsOf(Array<string>(150).fill('{}'))).toHaveLength(100)
  })
})
