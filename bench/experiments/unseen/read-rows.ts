import type { TraceRequest } from '../../../src/sim/traces/trace.ts'

/**
 * Rows of a table or of JSON whose columns go by other names than those that the simulator's readers know. What a column
 * means is told by its name, the unit of the times by their size; a row that cannot be read is counted and left out.
 * The simulator itself is strict (`src/sim/traces`): a trace with lines missing is another workload. Here a folder of
 * somebody else's files is compared, and one bad row in a thousand changes nothing.
 */
export interface LooseRows {
  readonly requests: readonly TraceRequest[]
  readonly badRows: number
  /** What the times were taken for: s, ms, us, ns or date. */
  readonly unit: string
}

export class RowsError extends Error {
  override readonly name = 'RowsError'
}

type Field = 'time' | 'input' | 'output' | 'tenant' | 'reasoning' | 'answer' | 'hashes'

const words = (text: string): readonly string[] => text.trim().split(/\s+/)

/** In lower case and without anything but letters and digits. */
const NAMES: Readonly<Record<Field, readonly string[]>> = {
  time: words(`
    timestamp time t ts arrival arrivals arrivaltime arrivedat arrivaltimestamp at starttime start
    requesttime createdat times timestamps timems timestampms arrivalms timeus atus date datetime sentat
    offset
  `),
  input: words(`
    inputtokens contexttokens inputlength prompttokens requesttokens input prompt promptlen inputlen
    promptlength numprompttokens numprefilltokens prefilltokens numinputtokens isl inputtoks querytokens
    contextlength tokensin
  `),
  output: words(`
    outputtokens generatedtokens outputlength completiontokens responsetokens output response outputlen
    completion generationtokens numdecodetokens decodetokens numoutputtokens osl generatedlength
    outputtoks responselength tokensout genlen
  `),
  tenant: words('tenant tenantid user userid client clientid customer org apikey key adapter modelid app appid'),
  reasoning: words('reasoningtokens reasontokens thinkingtokens reasoninglength'),
  answer: words('answertokens finaltokens answerlength'),
  hashes: words('hashids'),
}

/** Rows of which at least this share must be readable. */
const GOOD_RATIO_MIN = 0.5
/** Rows of which the unit of the times is told. */
const ROWS_MIN = 2
/** Tokens that no prompt and no answer has. */
const TOKENS_MAX = 10_000_000

type Row = Readonly<Record<string, unknown>>

/** The text of a whole file: JSON Lines, a JSON list, or a table with commas, semicolons or tabs. */
export function readRows(text: string): LooseRows {
  const { rows, broken } = rowsOf(text.replace(/^\uFEFF/, ''))
  if (rows.length + broken === 0) throw new RowsError('no row in it')
  const fields = fieldsOf(rows)
  const read = rows.map((row) => readRow(row, fields))
  const known = read.filter((row) => row !== undefined)
  if (known.length < GOOD_RATIO_MIN * (rows.length + broken) || known.length < ROWS_MIN)
    throw new RowsError(`${known.length} of ${rows.length + broken} rows can be read`)
  const { unit, perS } = unitOf(
    known.map(({ time }) => time),
    fields.time,
  )
  known.sort((a, b) => a.time - b.time)
  const first = known[0]?.time ?? 0
  const requests = known.map(({ time, ...rest }) => ({ ...rest, atUs: Math.round(((time - first) / perS) * 1e6) }))
  return { requests, badRows: rows.length + broken - known.length, unit }
}

function rowsOf(text: string): { rows: Row[]; broken: number } {
  const start = text.trimStart()
  if (start.startsWith('[')) return { rows: listOf(start), broken: 0 }
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '')
  if (lines.length === 0) return { rows: [], broken: 0 }
  if (!start.startsWith('{')) return tableOf(lines)
  const rows: Row[] = []
  let broken = 0
  for (const line of lines) {
    const row = parsed(line)
    if (row === undefined) broken++
    else rows.push(flat(row))
  }
  return { rows, broken }
}

function listOf(text: string): Row[] {
  try {
    const list: unknown = JSON.parse(text)
    return Array.isArray(list) ? list.filter(isObject).map(flat) : []
  } catch {
    throw new RowsError('it begins like a JSON list and is none')
  }
}

function tableOf(lines: readonly string[]): { rows: Row[]; broken: number } {
  const [head = '', ...rest] = lines
  const separator = [',', ';', '\t'].find((each) => head.includes(each))
  if (separator === undefined) throw new RowsError('neither a table nor JSON')
  const names = cellsOf(head, separator)
  let broken = 0
  const rows: Row[] = []
  for (const line of rest) {
    const cells = cellsOf(line, separator)
    if (cells.length < names.length) broken++
    else rows.push(Object.fromEntries(names.map((name, index) => [name, cells[index]])))
  }
  return { rows, broken }
}

const cellsOf = (line: string, separator: string): string[] =>
  line.split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'))

function parsed(line: string): Row | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

const isObject = (value: unknown): value is Row => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Fields of objects within, beside the row's own: `{"timestamp": 1, "data": {"input_tokens": 5}}`. */
function flat(row: Row): Row {
  const inner = Object.values(row).filter(isObject)
  return inner.length === 0 ? row : Object.assign({}, ...inner, row)
}

type Fields = Readonly<Partial<Record<Field, string>>> & { readonly time: string; readonly input: string }

/** Which column is what, by the names in the order of the lists above. */
function fieldsOf(rows: readonly Row[]): Fields {
  const names = new Map<string, string>()
  for (const row of rows.slice(0, 20)) for (const name of Object.keys(row)) names.set(plain(name), name)
  const found: Partial<Record<Field, string>> = {}
  for (const [field, known] of Object.entries(NAMES) as Array<[Field, readonly string[]]>) {
    const name = known.find((each) => names.has(each))
    if (name !== undefined) found[field] = names.get(name) as string
  }
  const hasOutput = found.output !== undefined || found.reasoning !== undefined || found.answer !== undefined
  if (found.time === undefined || found.input === undefined || !hasOutput) {
    const seen = [...names.values()].slice(0, 8).join(', ')
    throw new RowsError(`no columns of time, prompt and answer among: ${seen || 'nothing'}`)
  }
  return found as Fields
}

const plain = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '')

interface ReadRow extends Omit<TraceRequest, 'atUs'> {
  readonly time: number
}

function readRow(row: Row, fields: Fields): ReadRow | undefined {
  const at = (field: Field): unknown => (fields[field] === undefined ? undefined : row[fields[field]])
  const time = timeOf(at('time'))
  const promptTokens = tokensIn(at('input'))
  const parts = [tokensIn(at('reasoning')), tokensIn(at('answer'))].filter((each) => each !== undefined)
  const outputTokens = tokensIn(at('output')) ?? (parts.length > 0 ? parts.reduce((a, b) => a + b) : undefined)
  if (time === undefined || promptTokens === undefined || outputTokens === undefined) return undefined
  const tenant = at('tenant')
  const isNamed = (typeof tenant === 'string' && tenant.trim() !== '') || typeof tenant === 'number'
  return {
    time,
    promptTokens: Math.max(1, promptTokens),
    outputTokens: Math.max(1, outputTokens),
    ...(isNamed && { tenant: String(tenant).trim() }),
    ...hashesIn(at('hashes'), promptTokens),
  }
}

function tokensIn(value: unknown): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  const isRead = typeof number === 'number' && Number.isFinite(number) && number >= 0 && number <= TOKENS_MAX
  return isRead ? Math.round(number) : undefined
}

/** Dates become seconds; the fraction is read separately, since dates may have more digits than JavaScript reads. */
function timeOf(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const number = Number(value)
  if (Number.isFinite(number)) return number
  const [, whole, fraction = '0', zone = 'Z'] =
    /^(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)?$/.exec(value.trim()) ?? []
  const ms = Date.parse(`${whole?.replace(' ', 'T')}${zone}`)
  return Number.isNaN(ms) ? undefined : ms / 1_000 + Number(fraction)
}

const HASH_UNIT_TOKENS = 512

function hashesIn(value: unknown, promptTokens: number): Partial<TraceRequest> {
  if (!Array.isArray(value) || !value.every((hash) => Number.isSafeInteger(hash) && hash >= 0)) return {}
  const count = Math.ceil(promptTokens / HASH_UNIT_TOKENS)
  return { prefixHashes: (value as number[]).slice(0, count), hashUnitTokens: HASH_UNIT_TOKENS }
}

/** Longest mean gap that one busy service has: beyond it the unit is a finer one. */
const MEAN_GAP_S_MAX = 60

/**
 * The unit of the times. A name may say it (`arrival_ms`). Times since 1970 are told by their size; others by the mean
 * gap: traces are of services with a request a minute at least, and where seconds would make it fewer, the unit is finer.
 */
function unitOf(times: readonly number[], name: string): { unit: string; perS: number } {
  const named = /(?:[_ ](s|ms|us|ns)|[a-z](S|Ms|Us|Ns))$/
    .exec(name)
    ?.slice(1)
    .find((each) => each !== undefined)
    ?.toLowerCase()
  if (named !== undefined) return UNITS[named] as { unit: string; perS: number }
  const least = times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
  const most = times.reduce((a, b) => Math.max(a, b), 0)
  for (const { unit, perS } of Object.values(UNITS))
    if (least >= SINCE_1970_S_MIN * perS && least <= SINCE_1970_S_MAX * perS) return { unit, perS }
  const gap = (most - least) / Math.max(1, times.length - 1)
  return Object.values(UNITS).find(({ perS }) => gap / perS <= MEAN_GAP_S_MAX) ?? UNITS['ns']!
}

const UNITS: Readonly<Record<string, { unit: string; perS: number }>> = {
  s: { unit: 's', perS: 1 },
  ms: { unit: 'ms', perS: 1e3 },
  us: { unit: 'us', perS: 1e6 },
  ns: { unit: 'ns', perS: 1e9 },
}

/** The years 2000 and 2100. */
const SINCE_1970_S_MIN = 946_684_800
const SINCE_1970_S_MAX = 4_102_444_800
