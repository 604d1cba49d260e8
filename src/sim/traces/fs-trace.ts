import { closeSync, openSync, readSync } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'
import { azure } from './azure.ts'
import { mooncake } from './mooncake.ts'
import { recording } from './recording.ts'
import { servegen } from './servegen.ts'
import {
  LineFault,
  TRACE_DEFAULTS,
  TraceError,
  type TraceFormat,
  type TraceLine,
  type TraceOptions,
  type TraceRequest,
} from './trace.ts'
import { vtc } from './vtc.ts'

/**
 * Traces as files. Reading is synchronous, one piece at a time: virtual time must not wait for real I/O, and live a
 * piece costs some microseconds. Memory is one piece and one line, for any size of file.
 */
const FORMATS: readonly TraceFormat[] = [azure, mooncake, vtc, servegen, recording]

const PIECE_BYTES = 64 << 10
/** Longest line: a Mooncake prompt of a million tokens is 14 kB. */
const LINE_CHARACTERS_MAX = 16 << 20

export interface Trace {
  readonly path: string
  readonly format: string
  /** What a reader should know although the trace can be played; complete once the requests have been read. */
  readonly notes: ReadonlySet<string>
  /** The requests from the beginning, at each call. Throws `TraceError` at a broken line. */
  requests(): Iterable<TraceRequest>
}

/** Facts of a trace from reading it once, which finds a broken line before the run. */
export interface TraceSurvey {
  readonly requestCount: number
  readonly lastAtUs: number
  /** In order of first appearance; empty when the trace names none. */
  readonly tenants: readonly string[]
  readonly models: readonly string[]
}

export function openTrace(path: string, options: Partial<TraceOptions> = {}): Trace {
  const notes = new Set<string>()
  const note = (text: string): void => void notes.add(`${path}: ${text}`)
  const filled = { ...TRACE_DEFAULTS, ...options, note }
  const format = detect(path)
  return {
    path,
    format: format.name,
    notes,
    *requests() {
      try {
        yield* format.read(linesOf(path), filled)
      } catch (error) {
        throw error instanceof LineFault ? new TraceError(`${path}:${error.line}: ${error.message}`) : error
      }
    },
  }
}

/** Reads as far as `untilUs`: a run shorter than its trace needs no more of it. */
export function surveyTrace(trace: Trace, untilUs = Number.POSITIVE_INFINITY): TraceSurvey {
  const tenants = new Set<string>()
  const models = new Set<string>()
  let requestCount = 0
  let lastAtUs = 0
  for (const { atUs, tenant, asked } of trace.requests()) {
    if (atUs > untilUs) break
    requestCount++
    lastAtUs = atUs
    if (tenant !== undefined) tenants.add(tenant)
    if (asked !== undefined) models.add(asked.model)
  }
  if (requestCount === 0) throw new TraceError(`${trace.path}: no request in it.`)
  return { requestCount, lastAtUs, tenants: [...tenants], models: [...models] }
}

function detect(path: string): TraceFormat {
  for (const { text, number } of linesOf(path)) {
    const format = FORMATS.find((candidate) => candidate.claims(text))
    if (format !== undefined) return format
    const known = FORMATS.map(({ name, example }) => `  ${name.padEnd(9)} ${example}`).join('\n')
    throw new TraceError(
      `${path}:${number}: not a trace that we know. The first line should look like one of\n${known}`,
    )
  }
  throw new TraceError(`${path}: empty.`)
}

/** Lines that are not blank, ended by LF or CRLF. */
function* linesOf(path: string): Iterable<TraceLine> {
  const file = orTraceError(path, () => openSync(path, 'r'))
  try {
    const piece = Buffer.allocUnsafe(PIECE_BYTES)
    // A character may be split between two pieces.
    const decoder = new StringDecoder('utf8')
    let rest = ''
    let number = 0
    for (;;) {
      const size = orTraceError(path, () => readSync(file, piece, 0, PIECE_BYTES, null))
      rest += size === 0 ? decoder.end() : decoder.write(piece.subarray(0, size))
      const lines = rest.split('\n')
      // The text after the last line end is the beginning of a line, unless the file has ended.
      rest = size === 0 ? '' : (lines.pop() ?? '')
      for (const line of lines) {
        number++
        const text = number === 1 && line.startsWith('\uFEFF') ? line.slice(1) : line
        if (text.trim() !== '') yield { text: text.trimEnd(), number, ...(size === 0 && { isUnended: true }) }
      }
      if (size === 0) return
      if (rest.length > LINE_CHARACTERS_MAX) throw new TraceError(`${path}:${number + 1}: a line without an end.`)
    }
  } finally {
    closeSync(file)
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file. Check the path.',
  EACCES: 'no permission to read it.',
  EISDIR: 'this is a folder. Give the path of a file.',
}

/** A folder can be opened, and fails when it is read. */
function orTraceError(path: string, work: () => number): number {
  try {
    return work()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new TraceError(`${path}: ${REASONS[code ?? ''] ?? `it cannot be read (${code}).`}`)
  }
}
