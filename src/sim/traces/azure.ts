import { US_PER_S } from '../../base/clock.ts'
import {
  LineFault,
  shown,
  type TraceFormat,
  type TraceLine,
  type TraceOptions,
  type TraceRequest,
  TraceTimes,
  tokensOf,
} from './trace.ts'

/**
 * Azure's public LLM traces (AzurePublicDataset): one request a line. Reads them as published, with dates, and condensed,
 * with seconds since the first request. Tables of one's own may have a column `tenant` besides; Azure's have none.
 */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  time: ['arrival_s', 'TIMESTAMP'],
  input: ['input_tokens', 'ContextTokens'],
  output: ['output_tokens', 'GeneratedTokens'],
}

/** Not needed to recognise a table. */
const TENANT_NAMES = ['tenant', 'tenant_id']

export const azure: TraceFormat = {
  name: 'azure',
  example: 'arrival_s,input_tokens,output_tokens',
  claims: (firstLine) => Object.values(COLUMNS).every((names) => columnOf(firstLine.split(','), names) >= 0),
  *read(lines: Iterable<TraceLine>, { factor }: TraceOptions): Iterable<TraceRequest> {
    const times = new TraceTimes(factor)
    let columns: Columns | undefined
    let firstS: number | undefined
    for (const line of lines) {
      const cells = line.text.split(',')
      if (columns === undefined) {
        columns = columnsOf(cells)
        continue
      }
      if (cells.length < columns.count) {
        throw new LineFault(line.number, `${cells.length} columns where the first line names ${columns.count}.`)
      }
      const seconds = secondsOf(line, columns, cells[columns.time] ?? '')
      firstS ??= columns.isDated ? seconds : 0
      yield {
        atUs: times.next(line, columns.timeName, seconds - firstS, US_PER_S),
        promptTokens: tokensOf(line, columns.inputName, cells[columns.input]),
        outputTokens: tokensOf(line, columns.outputName, cells[columns.output]),
        ...tenantOf(line, columns, cells),
      }
    }
  },
}

interface Columns {
  readonly time: number
  readonly input: number
  readonly output: number
  /** Absent: the table names no tenants. */
  readonly tenant: number | undefined
  readonly timeName: string
  readonly inputName: string
  readonly outputName: string
  readonly count: number
  readonly isDated: boolean
}

function columnOf(cells: readonly string[], names: readonly string[]): number {
  return cells.findIndex((cell) => names.includes(cell.trim()))
}

function columnsOf(cells: readonly string[]): Columns {
  const at = (what: string): number => columnOf(cells, COLUMNS[what] ?? [])
  const nameOf = (what: string): string => cells[at(what)]?.trim() ?? what
  const tenant = columnOf(cells, TENANT_NAMES)
  return {
    time: at('time'),
    input: at('input'),
    output: at('output'),
    tenant: tenant < 0 ? undefined : tenant,
    timeName: nameOf('time'),
    inputName: nameOf('input'),
    outputName: nameOf('output'),
    count: cells.length,
    isDated: nameOf('time') === 'TIMESTAMP',
  }
}

function tenantOf(line: TraceLine, { tenant }: Columns, cells: readonly string[]): { tenant?: string } {
  if (tenant === undefined) return {}
  const name = cells[tenant]?.trim() ?? ''
  if (name === '') throw new LineFault(line.number, 'tenant is empty. Name the tenant, or leave the column out.')
  return { tenant: name }
}

/** Dates have seven digits after the point, one more than JavaScript reads; the fraction is read separately. */
const DATE = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)?(?:Z|\+00:00)?$/

function secondsOf(line: TraceLine, columns: Columns, cell: string): number {
  if (!columns.isDated) {
    const seconds = Number(cell)
    if (cell.trim() === '' || !Number.isFinite(seconds)) {
      throw new LineFault(line.number, `${columns.timeName} is ${shown(cell)}, not a time.`)
    }
    return seconds
  }
  const [, day, clock, fraction] = DATE.exec(cell.trim()) ?? []
  const ms = Date.parse(`${day}T${clock}Z`)
  if (Number.isNaN(ms)) throw new LineFault(line.number, `${columns.timeName} is ${shown(cell)}, not a date.`)
  return ms / 1_000 + Number(fraction ?? 0)
}
