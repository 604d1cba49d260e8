import { type Clock, usToMs } from '../base/clock.ts'
import { type Job, type JobEnding, type JobFile, type LinePlace, lineIdOf } from '../domain/job.ts'
import type { FileAppender, FileBytes, JobStore } from '../lifecycle/job-ports.ts'
import { readBatchLine, unrunLine } from '../wire/batch-line.ts'

/**
 * The files of a job that has ended: answers in one, errors and lines that never ran in the other. Both are made from
 * what the store has of each line, after the last line was taken from its owner, so every line stands in them once. Their
 * ids come from the job's: whoever makes them again, after a crash, makes the same.
 */
export interface FinalizeWorld {
  readonly clock: Clock
  readonly store: JobStore
  readonly files: FileBytes
}

/** Answers that are read at once. */
const ROWS_PER_READ = 500
const WRITE_BYTES = 262_144

export async function finalizeJob(world: FinalizeWorld, job: Job, ending: JobEnding): Promise<boolean> {
  const { store, clock } = world
  await store.sealLines(job)
  const output = await makeFile(world, job, 'output', (out) => copyAnswers(world, job, false, out))
  const errors = await makeFile(world, job, 'errors', async (out) => {
    await copyAnswers(world, job, true, out)
    await tellUnrun(world, job, ending, out)
  })
  const nowMs = Math.floor(usToMs(clock.now()))
  return store.endJob(job, { ending, outputFileId: output?.id, errorFileId: errors?.id, nowMs })
}

/** The file, or undefined when it would be empty. */
async function makeFile(
  { clock, store, files }: FinalizeWorld,
  job: Job,
  kind: 'output' | 'errors',
  fill: (out: TextOut) => Promise<void>,
): Promise<JobFile | undefined> {
  const id = `file-${kind}-${job.id.slice('batch_'.length)}`
  await files.remove(id)
  const appender = files.append(id)
  let bytes = 0
  try {
    const out = new TextOut(appender)
    await fill(out)
    await out.flush()
    bytes = await appender.end()
  } catch (error) {
    await appender.drop()
    throw error
  }
  if (bytes === 0) {
    await files.remove(id)
    return undefined
  }
  const createdAtMs = Math.floor(usToMs(clock.now()))
  const { tenantId, outputKeptS } = job
  const expiresAtMs = outputKeptS === undefined ? undefined : createdAtMs + outputKeptS * 1_000
  const name = `${job.id}_${kind === 'output' ? 'output' : 'error'}.jsonl`
  const file: JobFile = { id, tenantId, name, purpose: 'batch_output', bytes, createdAtMs, expiresAtMs }
  await store.addFile(file)
  return file
}

async function copyAnswers({ store }: FinalizeWorld, job: Job, isError: boolean, out: TextOut): Promise<void> {
  for (let afterNo = -1; ; ) {
    const rows = await store.answersOf(job, { isError, afterNo, limit: ROWS_PER_READ })
    for (const { text } of rows) await out.line(text)
    const last = rows.at(-1)
    if (last === undefined || rows.length < ROWS_PER_READ) return
    afterNo = last.no
  }
}

/** Lines that have no answer are told under their own names, which stand in the file of requests. */
async function tellUnrun(world: FinalizeWorld, job: Job, ending: JobEnding, out: TextOut): Promise<void> {
  for (let afterNo = -1; ; ) {
    const places = await world.store.unanswered(job, afterNo, ROWS_PER_READ)
    for (const place of places) {
      const read = readBatchLine(await lineText(world.files, job.inputFileId, place), place.no + 1)
      const customId = 'customId' in read ? read.customId : ''
      await out.line(unrunLine(lineIdOf(job, place.no), customId, ending))
    }
    const last = places.at(-1)
    if (last === undefined || places.length < ROWS_PER_READ) return
    afterNo = last.no
  }
}

export async function lineText(files: FileBytes, fileId: string, { at, length }: LinePlace): Promise<string> {
  return new TextDecoder().decode(await files.read(fileId, at, length))
}

/** Lines, gathered to pieces that are worth a write. */
class TextOut {
  readonly #appender: FileAppender
  readonly #encoder = new TextEncoder()
  #text: string[] = []
  #size = 0

  constructor(appender: FileAppender) {
    this.#appender = appender
  }

  async line(text: string): Promise<void> {
    this.#text.push(text, '\n')
    this.#size += text.length
    if (this.#size >= WRITE_BYTES) await this.flush()
  }

  async flush(): Promise<void> {
    const text = this.#text.join('')
    this.#text = []
    this.#size = 0
    if (text !== '') await this.#appender.write(this.#encoder.encode(text))
  }
}
