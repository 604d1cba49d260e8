import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { openTrace } from '../../../src/sim/traces/fs-trace.ts'
import { servegen } from '../../../src/sim/traces/servegen.ts'
import { LineFault, TRACE_DEFAULTS, TraceError, type TraceRequest } from '../../../src/sim/traces/trace.ts'
import { RowsError, readRows } from './read-rows.ts'

/**
 * All traces of a folder and of the folders in it, known by their content and never by their names. A file that is none
 * is named with the reason and left out.
 */
export interface FoundTrace {
  /** The path below the folder. */
  readonly name: string
  readonly format: string
  readonly notes: readonly string[]
  /** In order of time. Only formats that describe clients instead of requests depend on the seed. */
  readonly requestsOf: (seed: number) => readonly TraceRequest[]
}

export interface FoundFolder {
  readonly traces: readonly FoundTrace[]
  readonly skipped: ReadonlyArray<{ readonly name: string; readonly why: string }>
}

/** Files that are looked at; a folder with more is somebody's home. */
const FILES_MAX = 200
const DEPTH_MAX = 4
/** Bytes of the largest file that is read loosely, which holds all of it. */
const LOOSE_BYTES_MAX = 256 << 20
/** Requests of a trace that are kept: more than any cell plays, from 8 windows and more. */
export const REQUESTS_MAX = 100_000
/** Fewer are no traffic. */
const REQUESTS_MIN = 20

export function findTraces(folder: string): FoundFolder {
  const traces: FoundTrace[] = []
  const skipped: Array<{ name: string; why: string }> = []
  const files = filesIn(folder, 0)
  for (const path of files.slice(0, FILES_MAX)) {
    const name = relative(folder, path)
    try {
      traces.push({ name, ...openAny(path) })
    } catch (error) {
      if (!(error instanceof TraceError || error instanceof RowsError)) throw error
      skipped.push({ name, why: oneLine(error.message, path) })
    }
  }
  for (const path of files.slice(FILES_MAX))
    skipped.push({ name: relative(folder, path), why: `more than ${FILES_MAX} files` })
  return { traces, skipped }
}

const oneLine = (message: string, path: string): string =>
  (message.split('\n')[0] as string).replace(path, '').replace(/^[:\s]+/, '')

function filesIn(folder: string, depth: number): string[] {
  if (depth > DEPTH_MAX) return []
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !name.startsWith('.'))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) return filesIn(path, depth + 1)
      return entry.isFile() ? [path] : []
    })
}

/** As the simulator reads it, and where it refuses, row by row. */
function openAny(path: string): Omit<FoundTrace, 'name'> {
  let strict: TraceError
  try {
    return openStrictly(path)
  } catch (error) {
    if (!(error instanceof TraceError)) throw error
    strict = error
  }
  if (statSync(path).size > LOOSE_BYTES_MAX) throw strict
  try {
    const { requests, badRows, unit } = readRows(readFileSync(path, 'utf8'))
    const kept = enough(requests.slice(0, REQUESTS_MAX), path)
    const notes = [`times are taken for ${unit}`, ...(badRows > 0 ? [`${badRows} rows left out`] : [])]
    return { format: 'rows', notes, requestsOf: () => kept }
  } catch (error) {
    // A file of a known format with a broken line is better explained by its own reader.
    const isKnown = !/not a trace that we know/.test(strict.message)
    throw error instanceof RowsError && isKnown ? strict : error
  }
}

function openStrictly(path: string): Omit<FoundTrace, 'name'> {
  const trace = openTrace(path)
  if (trace.format === servegen.name) return openClients(path)
  const requests: TraceRequest[] = []
  for (const request of trace.requests()) {
    // What a recording asked of another platform (deadline, model, band) is not asked of this one.
    const { asked: _, ...rest } = request
    requests.push(rest)
    if (requests.length === REQUESTS_MAX) break
  }
  const kept = enough(requests, path)
  const notes = [...trace.notes].map((note) => oneLine(note, path))
  return { format: trace.format, notes, requestsOf: () => kept }
}

function enough(requests: readonly TraceRequest[], path: string): readonly TraceRequest[] {
  if (requests.length >= REQUESTS_MIN) return requests
  throw new TraceError(`${path}: ${requests.length} requests; at least ${REQUESTS_MIN} are needed.`)
}

interface ClientLine {
  readonly windows: ReadonlyArray<readonly [number, number, number]>
}

/**
 * Clients described by their rates over a day, which together may send millions: all rates are divided by one number, so
 * that the day stays whole.
 */
function openClients(path: string): Omit<FoundTrace, 'name'> {
  const lines = readFileSync(path, 'utf8')
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
  const draw = (factor: number, seed: number): TraceRequest[] => {
    const scaled = lines.map((text, index) => ({ text: withRates(text, factor), number: index + 1 }))
    const requests: TraceRequest[] = []
    try {
      for (const request of servegen.read(scaled, { ...TRACE_DEFAULTS, seed })) {
        requests.push(request)
        if (requests.length === REQUESTS_MAX) break
      }
    } catch (error) {
      throw error instanceof LineFault ? new TraceError(`${path}:${error.line}: ${error.message}`) : error
    }
    return requests
  }
  const factor = Math.min(1, (0.9 * REQUESTS_MAX) / Math.max(1, countOf(lines)))
  enough(draw(factor, 1), path)
  const notes = factor < 1 ? [`rates are multiplied by ${factor.toPrecision(2)}`] : []
  return { format: servegen.name, notes, requestsOf: (seed) => draw(factor, seed) }
}

const WINDOW_S = 600

function countOf(lines: readonly string[]): number {
  let count = 0
  for (const line of lines) {
    const windows = windowsOf(line)
    for (const [index, [startS, rate]] of windows.entries())
      count += rate * ((windows[index + 1]?.[0] ?? startS + WINDOW_S) - startS)
  }
  return count
}

function windowsOf(line: string): ClientLine['windows'] {
  try {
    const { windows } = JSON.parse(line) as { windows?: unknown }
    const isList = Array.isArray(windows) && windows.every((each) => Array.isArray(each))
    return isList ? (windows as unknown as ClientLine['windows']) : []
  } catch {
    return []
  }
}

function withRates(line: string, factor: number): string {
  if (factor === 1 || windowsOf(line).length === 0) return line
  const client = JSON.parse(line) as ClientLine
  return JSON.stringify({ ...client, windows: client.windows.map(([start, rate, cv]) => [start, rate * factor, cv]) })
}
