import { type Clock, usToMs } from '../base/clock.ts'
import { type Job, type JobFault, LINE_BYTES_MAX, type LinePlace } from '../domain/job.ts'
import type { FileBytes, JobStore } from '../lifecycle/job-ports.ts'
import { readBatchLine } from '../wire/batch-line.ts'
import { FAULTS_MAX, type JobOptions } from './job-options.ts'
import { LineSplitter, type SplitLine } from './split-lines.ts'

/**
 * Is the file of a job good? All of it is read before any line runs, and every mistake is told with its line, up to a
 * bound. The file is read in pieces: memory does not grow with it, but for the names of its lines, which must differ.
 * Places are written as they are found; a process that dies meanwhile leaves places that the next one finds again.
 */
export interface ValidateWorld {
  readonly clock: Clock
  readonly store: JobStore
  readonly files: FileBytes
  readonly options: JobOptions
  readonly isKnownModel: (model: string) => boolean
}

/** Read at once: some hundreds of lines. */
const PIECE_BYTES = 1_048_576
/** Places that are written in one statement. */
const PLACES_PER_WRITE = 5_000
/** Bytes of a line that count as a token: about what English has. */
const BYTES_PER_TOKEN = 4

export async function validateJob(world: ValidateWorld, job: Job): Promise<void> {
  const { store, clock, options } = world
  const nowMs = (): number => Math.floor(usToMs(clock.now()))
  const check = new FileCheck(job, options, world.isKnownModel)
  const places: LinePlace[] = []
  const write = async (): Promise<void> => {
    const some = places.splice(0)
    if (some.length > 0 && check.faults.length === 0) await store.addLines(job, some)
  }
  for await (const line of linesOf(world, job)) {
    check.take(line)
    places.push({ no: line.no, at: line.at, length: line.length })
    if (places.length >= PLACES_PER_WRITE) await write()
    if (check.isHopeless) break
  }
  await write()
  const faults = check.end()
  if (faults.length > 0) {
    await store.failJob(job, faults, nowMs())
    return
  }
  const { total, tokens, model } = check
  const begun = await store.beginJob(job, { total, tokens, model, nowMs: nowMs(), tokensMax: options.tokensMax })
  if (begun === 'too-many-tokens') await store.failJob(job, [tooManyTokens(options.tokensMax)], nowMs())
}

/** All lines of the job's file. */
async function* linesOf({ files }: Pick<ValidateWorld, 'files'>, { inputFileId }: Job): AsyncGenerator<SplitLine> {
  const splitter = new LineSplitter(LINE_BYTES_MAX)
  for (let at = 0; ; ) {
    const piece = await files.read(inputFileId, at, PIECE_BYTES)
    yield* splitter.take(piece)
    at += piece.length
    if (piece.length < PIECE_BYTES) break
  }
  const last = splitter.end()
  if (last !== undefined) yield last
}

class FileCheck {
  readonly faults: JobFault[] = []
  total = 0
  tokens = 0
  /** The one model of all lines so far. */
  model: string | undefined
  readonly #job: Job
  readonly #options: JobOptions
  readonly #isKnownModel: (model: string) => boolean
  readonly #names = new Map<string, number>()
  readonly #models = new Map<string, boolean>()
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })

  constructor(job: Job, options: JobOptions, isKnownModel: (model: string) => boolean) {
    this.#job = job
    this.#options = options
    this.#isKnownModel = isKnownModel
  }

  /** Nothing that comes can change the answer. */
  get isHopeless(): boolean {
    return this.faults.length >= FAULTS_MAX || this.total > this.#options.linesMax
  }

  take({ bytes, length }: SplitLine): void {
    const no = ++this.total
    this.tokens += Math.ceil(length / BYTES_PER_TOKEN)
    if (length > LINE_BYTES_MAX) {
      this.#fault(no, 'line_too_large', `This line has ${length} bytes; a line may have ${LINE_BYTES_MAX}.`, null)
      return
    }
    const text = this.#textOf(bytes)
    const line = text === undefined ? undefined : readBatchLine(text, no)
    if (line === undefined) this.#fault(no, 'invalid_json_line', 'This line is not text in UTF-8.', null)
    else if ('code' in line) this.faults.push(line)
    else this.#compare(no, line)
  }

  end(): readonly JobFault[] {
    const { linesMax } = this.#options
    if (this.total > linesMax) {
      const message = `The batch input file has more than the limit of ${linesMax} lines.`
      return [{ code: 'too_many_tasks', message, param: null, line: null }]
    }
    if (this.total === 0)
      return [{ code: 'empty_file', message: 'The batch input file has no lines.', param: null, line: null }]
    return this.faults
  }

  #compare(no: number, { customId, url, model }: { customId: string; url: string; model: string }): void {
    const { endpoint } = this.#job
    if (url !== endpoint)
      this.#fault(no, 'mismatched_url', `The 'url' of every line must be the batch's endpoint, '${endpoint}'.`, 'url')
    const first = this.#names.get(customId)
    if (first !== undefined)
      this.#fault(no, 'duplicate_custom_id', `The 'custom_id' is the same as that of line ${first}.`, 'custom_id')
    else this.#names.set(customId, no)
    if (!this.#knows(model)) {
      const message = `The model '${model.slice(0, 128)}' does not exist or you do not have access to it.`
      this.#fault(no, 'model_not_found', message, 'body.model')
    }
    this.model = no === 1 || this.model === model ? model : undefined
  }

  /** Models are few, lines are many; a file of invented models ends at the bound of mistakes. */
  #knows(model: string): boolean {
    const known = this.#models.get(model)
    if (known !== undefined) return known
    const isKnown = this.#isKnownModel(model)
    if (isKnown) this.#models.set(model, isKnown)
    return isKnown
  }

  #textOf(bytes: Uint8Array): string | undefined {
    try {
      return this.#decoder.decode(bytes)
    } catch {
      return undefined
    }
  }

  #fault(line: number, code: string, message: string, param: string | null): void {
    if (this.faults.length < FAULTS_MAX) this.faults.push({ code, message, param, line })
  }
}

const tooManyTokens = (tokensMax: number): JobFault => ({
  code: 'token_limit_exceeded',
  message: `Enqueued token limit reached: your open batches may have ${tokensMax} tokens together. Try again when some have ended.`,
  param: null,
  line: null,
})
