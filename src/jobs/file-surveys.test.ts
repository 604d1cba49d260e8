import { beforeAll, describe, expect, it } from 'vitest'
import { lineTexts, MemoryFileBytes, MemoryJobStore, submittedJob } from '../../test/support/memory-jobs.ts'
import { turnCpuMsMax } from '../../test/support/turn-cpu.ts'
import { LiveClock } from '../base/live-clock.ts'
import { BREATHS_PER_TURN, SerialTurns } from '../base/serial-turns.ts'
import type { Job } from '../domain/job.ts'
import { FileSurveys } from './file-surveys.ts'
import { validateJob } from './validate-job.ts'

const OPTIONS = {
  linesMax: 50_000,
  fileBytesMax: 2e8,
  openMax: 100,
  tokensMax: 1e9,
  storedBytesMax: 1e9,
  runningMax: 8,
  escalate: [],
}

/** A file of one unit, over and over. */
const FILE_BYTES = 30_000_000
/** Processor time of one turn that a client's file may cost. */
const TURN_MS_MAX = 20

class CountedFileBytes extends MemoryFileBytes {
  readBytes = 0
  override async read(fileId: string, at: number, length: number): Promise<Uint8Array> {
    const bytes = await super.read(fileId, at, length)
    this.readBytes += bytes.length
    return bytes
  }
}

function makeWorld(models: ReadonlySet<string> = new Set(['m'])) {
  const turns = new SerialTurns(() => new Promise((resolve) => setImmediate(resolve)), BREATHS_PER_TURN)
  const clock = new LiveClock()
  const files = new CountedFileBytes()
  const isKnownModel = (model: string): boolean => models.has(model)
  const nextTurn = (): Promise<void> => turns.next()
  const surveys = new FileSurveys({ clock, files, options: OPTIONS, isKnownModel, nextTurn })
  return { clock, store: new MemoryJobStore(), files, options: OPTIONS, surveys, nextTurn }
}

/** Jobs of one file, all validated at once. */
async function validateAll(world: ReturnType<typeof makeWorld>, lines: readonly string[], count: number) {
  const first = submittedJob(world.files, 'batch_0', lines)
  const jobs = Array.from({ length: count }, (_, i): Job => ({ ...first, id: `batch_${i}` }))
  for (const job of jobs) await world.store.addJob(job)
  const turnMs = await turnCpuMsMax(() => Promise.all(jobs.map((job) => validateJob(world, job))))
  const found = await Promise.all(jobs.map((job) => world.store.findJob(job)))
  return { turnMs, jobs: found as Job[] }
}

/**
 * The least of three runs: a collection of the whole heap falls into some turn of some run, and takes longer the more
 * other tests have left in it. What the file costs falls into every run.
 */
async function leastTurnMs(run: () => Promise<{ readonly turnMs: number }>): Promise<number> {
  const turnsMs = [(await run()).turnMs, (await run()).turnMs, (await run()).turnMs]
  return Math.min(...turnsMs)
}

describe('a file that is all of one unit', () => {
  // The first run compiles the code, which is no work of the file.
  beforeAll(async () => {
    await validateAll(makeWorld(), ['\n'.repeat(1_000_000)], 1)
    await validateAll(makeWorld(), lineTexts(2_000), 1)
  })

  it.each([
    ['\n', 'too_many_tasks'],
    ['\r\n', 'too_many_tasks'],
    [' ', 'empty_file'],
    ['{}\n', 'missing_required_parameter'],
    ['0', 'line_too_large'],
  ])('of %j takes no turn of the loop for long, however many jobs name it', async (unit, code) => {
    const text = unit.repeat(FILE_BYTES / unit.length)
    const run = async (): Promise<{ readonly turnMs: number }> => {
      const world = makeWorld()
      const { turnMs, jobs } = await validateAll(world, [text], 5)
      for (const job of jobs) expect([job.state, job.faults[0]?.code]).toEqual(['failed', code])
      expect(world.files.readBytes).toBeLessThanOrEqual(FILE_BYTES)
      return { turnMs }
    }
    expect(await leastTurnMs(run)).toBeLessThan(TURN_MS_MAX)
  })

  it('of lines that are costly to parse is no exception', async () => {
    const line = `{"custom_id":"a","body":[${'[],'.repeat(340_000)}0]}`
    const run = async (): Promise<{ readonly turnMs: number }> => {
      const { turnMs, jobs } = await validateAll(makeWorld(), Array<string>(20).fill(line), 1)
      expect(jobs[0]?.faults[0]).toMatchObject({ code: 'invalid_json_line', line: 1 })
      return { turnMs }
    }
    expect(await leastTurnMs(run)).toBeLessThan(TURN_MS_MAX)
  })

  it('of good lines takes short turns, and its jobs begin', async () => {
    const lines = lineTexts(50_000)
    const run = async (): Promise<{ readonly turnMs: number }> => {
      const world = makeWorld()
      const { turnMs, jobs } = await validateAll(world, lines, 2)
      for (const job of jobs) expect([job.state, job.counts.total]).toEqual(['in_progress', 50_000])
      expect(await world.store.unanswered(jobs[1] as Job, 49_998, 2)).toMatchObject([{ no: 49_999 }])
      expect(world.files.readBytes).toBe(lines.join('\n').length)
      return { turnMs }
    }
    expect(await leastTurnMs(run)).toBeLessThan(TURN_MS_MAX)
  })
})

describe('a survey', () => {
  it('is made anew when a model has come or gone, or for another endpoint', async () => {
    const models = new Set(['m'])
    const world = makeWorld(models)
    const lines = lineTexts(3)
    const stateNow = async (): Promise<unknown> => (await validateAll(world, lines, 1)).jobs[0]?.state
    expect(await stateNow()).toBe('in_progress')
    models.delete('m')
    expect(await stateNow()).toBe('failed')
    models.add('m')
    expect(await stateNow()).toBe('in_progress')
    const job = { ...submittedJob(world.files, 'batch_0', lines), endpoint: '/v1/embeddings' }
    expect((await world.surveys.of(job)).faults).toHaveLength(3)
  })

  it('is not kept where the file could not be read', async () => {
    const world = makeWorld()
    const job = submittedJob(world.files, 'batch_0', lineTexts(2))
    await world.files.remove(job.inputFileId)
    await expect(world.surveys.of(job)).rejects.toThrow('no file')
    world.files.put(job.inputFileId, lineTexts(2).join('\n'))
    expect((await world.surveys.of(job)).total).toBe(2)
  })

  it('counts as many blank lines as lines', async () => {
    const world = makeWorld()
    const [one] = lineTexts(1)
    const totalOf = async (blank: number): Promise<unknown> =>
      (await world.surveys.of(submittedJob(world.files, `batch_${blank}`, [`${'\n'.repeat(blank)}${one}`]))).faults
    expect(await totalOf(50_000)).toEqual([])
    expect(await totalOf(50_001)).toMatchObject([{ code: 'too_many_tasks' }])
  })
})
