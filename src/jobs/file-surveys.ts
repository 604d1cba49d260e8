import { type Clock, type Instant, msToUs } from '../base/clock.ts'
import { type Job, LINE_BYTES_MAX } from '../domain/job.ts'
import type { FileBytes } from '../lifecycle/job-ports.ts'
import { FileCheck, type FileSurvey } from './check-file.ts'
import type { JobOptions } from './job-options.ts'
import { LineSplitter, type SplitLine } from './split-lines.ts'

/**
 * What does a job's file contain? A file is read once for all jobs that name it: files never change, so the survey is
 * kept, also when the file was bad. A survey is made again when a model of its lines has come or gone since.
 *
 * The work is cut by bytes and by time, and each part has a turn of the event loop of its own, whatever number of files
 * are read at once. Bounded: surveys that are kept have so many lines together, and the oldest makes room.
 */
export interface SurveyWorld {
  readonly clock: Clock
  readonly files: FileBytes
  readonly options: JobOptions
  readonly isKnownModel: (model: string) => boolean
  /** Resolves in a later round of the event loop, in which no other such work is done. */
  readonly nextTurn: () => Promise<void>
}

/** Read at once: some hundreds of lines. */
const PIECE_BYTES = 1_048_576
/** Bytes of one turn: about 2 ms of ordinary lines. */
const TURN_BYTES_MAX = 262_144
/** Time of one turn. A line is not cut; the costliest of 1 MiB takes about 10 ms more. */
const TURN_US_MAX = msToUs(3)
/** Lines of all surveys that are kept: ten of the largest files by default, 8 MB. */
const LINES_KEPT_MAX = 500_000
/** Surveys of files that have few lines or are bad. */
const SURVEYS_KEPT_MAX = 256

export class FileSurveys {
  readonly #world: SurveyWorld
  /** By file and endpoint, the one that was asked for last at the end. */
  readonly #kept = new Map<string, FileSurvey>()
  readonly #running = new Map<string, Promise<FileSurvey>>()
  #linesKept = 0

  constructor(world: SurveyWorld) {
    this.#world = world
  }

  async of(job: Pick<Job, 'tenantId' | 'inputFileId' | 'endpoint'>): Promise<FileSurvey> {
    const name = JSON.stringify([job.tenantId, job.inputFileId, job.endpoint])
    const known = this.#kept.get(name)
    if (known !== undefined) {
      this.#forget(name, known)
      if (this.#isCurrent(known)) {
        this.#keep(name, known)
        return known
      }
    }
    const running = this.#running.get(name) ?? this.#make(name, job)
    return running
  }

  #make(name: string, job: Pick<Job, 'inputFileId' | 'endpoint'>): Promise<FileSurvey> {
    const made = surveyFile(this.#world, job).then(
      (survey) => {
        this.#running.delete(name)
        this.#keep(name, survey)
        return survey
      },
      (error: unknown) => {
        this.#running.delete(name)
        throw error
      },
    )
    this.#running.set(name, made)
    return made
  }

  #isCurrent({ models }: FileSurvey): boolean {
    for (const [model, wasKnown] of models) if (this.#world.isKnownModel(model) !== wasKnown) return false
    return true
  }

  #keep(name: string, survey: FileSurvey): void {
    this.#kept.set(name, survey)
    this.#linesKept += survey.ats.length
    for (const [oldest, one] of this.#kept) {
      if (this.#linesKept <= LINES_KEPT_MAX && this.#kept.size <= SURVEYS_KEPT_MAX) return
      this.#forget(oldest, one)
    }
  }

  #forget(name: string, { ats }: FileSurvey): void {
    this.#kept.delete(name)
    this.#linesKept -= ats.length
  }
}

async function surveyFile(
  world: SurveyWorld,
  { inputFileId, endpoint }: Pick<Job, 'inputFileId' | 'endpoint'>,
): Promise<FileSurvey> {
  const { options, isKnownModel, files } = world
  const check = new FileCheck(endpoint, options.linesMax, isKnownModel)
  const splitter = new LineSplitter(LINE_BYTES_MAX)
  for (let at = 0; !check.isHopeless; ) {
    const piece = await files.read(inputFileId, at, PIECE_BYTES)
    await takeInTurns(world, check, splitter, piece)
    at += piece.length
    if (piece.length < PIECE_BYTES) break
  }
  await world.nextTurn()
  const last = check.isHopeless ? undefined : splitter.end()
  if (last !== undefined) check.take(last)
  return check.end()
}

async function takeInTurns(
  { clock, nextTurn }: SurveyWorld,
  check: FileCheck,
  splitter: LineSplitter,
  piece: Uint8Array,
): Promise<void> {
  await nextTurn()
  let from: Instant = clock.now()
  let bytes = 0
  for (const line of splitter.take(piece)) {
    if (line === undefined) check.takeBlank()
    else check.take(line)
    if (check.isHopeless) return
    bytes += lengthOf(line)
    if (bytes < TURN_BYTES_MAX && clock.now() - from < TURN_US_MAX) continue
    await nextTurn()
    from = clock.now()
    bytes = 0
  }
}

/** With the line's end. */
const lengthOf = (line: SplitLine | undefined): number => (line?.length ?? 0) + 1
