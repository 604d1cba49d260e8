import { type JobFault, LINE_BYTES_MAX } from '../domain/job.ts'
import { readBatchLine } from '../wire/batch-line.ts'
import { tooComplex } from '../wire/scan-json.ts'
import { FAULTS_MAX } from './job-options.ts'
import type { SplitLine } from './split-lines.ts'

/** Bytes of a line that count as a token: about what English has. */
const BYTES_PER_TOKEN = 4

/** What a job's file contains. */
export interface FileSurvey {
  readonly faults: readonly JobFault[]
  readonly total: number
  /** Prompt tokens, about. */
  readonly tokens: number
  /** The one model of all lines; undefined when there are several. */
  readonly model: string | undefined
  /** Where each line stands, in their order. */
  readonly ats: readonly number[]
  readonly lengths: readonly number[]
  /** Models that lines name, and whether they were known. */
  readonly models: ReadonlyMap<string, boolean>
}

/** Line by line: is the file of a job good? Every mistake is reported with its line, up to a bound. */
export class FileCheck {
  readonly #endpoint: string
  readonly #linesMax: number
  readonly #isKnownModel: (model: string) => boolean
  readonly #faults: JobFault[] = []
  readonly #ats: number[] = []
  readonly #lengths: number[] = []
  readonly #names = new Map<string, number>()
  readonly #models = new Map<string, boolean>()
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  #tokens = 0
  #blankCount = 0

  constructor(endpoint: string, linesMax: number, isKnownModel: (model: string) => boolean) {
    this.#endpoint = endpoint
    this.#linesMax = linesMax
    this.#isKnownModel = isKnownModel
  }

  /** Nothing that comes can change the answer. */
  get isHopeless(): boolean {
    return this.#faults.length >= FAULTS_MAX || this.#hasTooMany
  }

  get #hasTooMany(): boolean {
    return this.#ats.length > this.#linesMax || this.#blankCount > this.#linesMax
  }

  /** Blank lines are no requests, but reading them is work: a file may have as many of them as it may have lines. */
  takeBlank(): void {
    this.#blankCount++
  }

  take({ at, bytes, length }: SplitLine): void {
    this.#ats.push(at)
    this.#lengths.push(length)
    const no = this.#ats.length
    this.#tokens += Math.ceil(length / BYTES_PER_TOKEN)
    if (length > LINE_BYTES_MAX) {
      this.#fault(no, 'line_too_large', `This line has ${length} bytes; a line may have ${LINE_BYTES_MAX}.`, null)
      return
    }
    const excess = tooComplex(bytes)
    if (excess !== undefined) {
      this.#fault(no, 'invalid_json_line', excess.message, null)
      return
    }
    const text = this.#textOf(bytes)
    const line = text === undefined ? undefined : readBatchLine(text, no)
    if (line === undefined) this.#fault(no, 'invalid_json_line', 'This line is not text in UTF-8.', null)
    else if ('code' in line) this.#faults.push(line)
    else this.#compare(no, line)
  }

  end(): FileSurvey {
    const { length: total } = this.#ats
    const faults = this.#faultsOfAll(total)
    const isGood = faults.length === 0
    const [first] = this.#models.keys()
    return {
      faults,
      total,
      tokens: this.#tokens,
      model: this.#models.size === 1 ? first : undefined,
      ats: isGood ? this.#ats : [],
      lengths: isGood ? this.#lengths : [],
      models: this.#models,
    }
  }

  #faultsOfAll(total: number): readonly JobFault[] {
    if (this.#hasTooMany) {
      const what = total > this.#linesMax ? 'lines' : 'blank lines'
      const message = `The batch input file has more than the limit of ${this.#linesMax} ${what}.`
      return [{ code: 'too_many_tasks', message, param: null, line: null }]
    }
    if (total === 0)
      return [{ code: 'empty_file', message: 'The batch input file has no lines.', param: null, line: null }]
    return this.#faults
  }

  #compare(no: number, { customId, url, model }: { customId: string; url: string; model: string }): void {
    const endpoint = this.#endpoint
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
  }

  /** Models are few, lines are many; a file of invented models ends at the bound of mistakes. */
  #knows(model: string): boolean {
    const known = this.#models.get(model)
    if (known !== undefined) return known
    const isKnown = this.#isKnownModel(model)
    this.#models.set(model, isKnown)
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
    if (this.#faults.length < FAULTS_MAX) this.#faults.push({ code, message, param, line })
  }
}
