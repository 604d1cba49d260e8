import { closeSync, existsSync, fstatSync, mkdtempSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * The last hour of the recording that the server keeps (`record.path`), as a file of its own for the simulator: its
 * times begin at 0, so that no empty day is simulated before it.
 *
 * Bounds: the end of the two newest files, 64 MiB of each, and the newest 100,000 requests. A recording without requests,
 * or one that cannot be read, gives none.
 */
export interface RecordedHour {
  readonly folder: string
  readonly tracePath: string
  readonly requestCount: number
  readonly durationS: number
}

const HOUR_US = 3_600_000_000
const READ_BYTES_MAX = 64 << 20
const REQUESTS_MAX = 100_000
const LINE = /^\{"atUs":(\d+)/

interface Recorded {
  readonly atUs: number
  readonly line: string
}

/** Writes into a new folder under `parent`; whoever asks removes it. */
export function cutRecordedHour(path: string, parent: string): RecordedHour | undefined {
  const header = headerOf(path)
  if (header === undefined) return undefined
  // Times count from the beginning of a recording: a file of another one does not go with it.
  const before = headerOf(`${path}.1`) === header ? endOf(`${path}.1`) : []
  const recorded = [...before, ...endOf(path)].flatMap(readLine)
  const lastUs = recorded.reduce((last, { atUs }) => Math.max(last, atUs), 0)
  const hour = recorded.filter(({ atUs }) => atUs > lastUs - HOUR_US).slice(-REQUESTS_MAX)
  if (hour.length === 0) return undefined
  const firstUs = hour.reduce((first, { atUs }) => Math.min(first, atUs), lastUs)
  const lines = hour.map(({ atUs, line }) => line.replace(LINE, `{"atUs":${atUs - firstUs}`))
  const folder = mkdtempSync(join(parent, 'spillway-what-if-'))
  const tracePath = join(folder, 'recorded-hour.jsonl')
  writeFileSync(tracePath, `${[header, ...lines].join('\n')}\n`, { mode: 0o600 })
  return { folder, tracePath, requestCount: hour.length, durationS: Math.ceil((lastUs - firstUs) / 1e6) + 1 }
}

function readLine(line: string): Recorded[] {
  const atUs = LINE.exec(line)?.[1]
  // A line that is cut short, at either end of what was read, is none.
  return atUs === undefined || !line.endsWith('}') ? [] : [{ atUs: Number(atUs), line }]
}

function headerOf(path: string): string | undefined {
  if (!existsSync(path)) return undefined
  const [first] = read(path, 0, 65_536).split('\n', 1)
  return first === '' ? undefined : first
}

/** The lines at the end of a file. */
function endOf(path: string): string[] {
  const file = openSync(path, 'r')
  const { size } = fstatSync(file)
  closeSync(file)
  if (size <= READ_BYTES_MAX) return readFileSync(path, 'utf8').split('\n')
  return read(path, size - READ_BYTES_MAX, READ_BYTES_MAX)
    .split('\n')
    .slice(1)
}

function read(path: string, from: number, bytesMax: number): string {
  const file = openSync(path, 'r')
  try {
    const bytes = new Uint8Array(bytesMax)
    const count = readSync(file, bytes, 0, bytesMax, from)
    return new TextDecoder().decode(bytes.subarray(0, count))
  } finally {
    closeSync(file)
  }
}
