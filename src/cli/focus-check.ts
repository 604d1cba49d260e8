import { parseCsv } from './csv.ts'
import { FOCUS_COLUMNS, type FocusColumn, type FocusRow, type FocusType, ROW_RULES } from './focus-columns.ts'

/** Is this text a file of FOCUS 1.2? Answers what is not as it has to be, a line for each, up to a bound. */
const PROBLEMS_MAX = 100

export function focusProblems(text: string): readonly string[] {
  const cells = parseCsv(text.replace(/^\uFEFF/, ''))
  if (cells === undefined) return ['the file is no CSV: a quote is not closed, or a cell goes on behind its quotes']
  const [heading = [], ...lines] = cells
  const names = heading.map((name) => name ?? '')
  const problems = headingProblems(names)
  const services = new Map<string, string>()
  for (const [i, line] of lines.entries()) {
    if (problems.length >= PROBLEMS_MAX) return [...problems, 'and more']
    if (line.length !== names.length) {
      problems.push(`line ${i + 2} has ${line.length} cells, the heading ${names.length}`)
      continue
    }
    const row: FocusRow = Object.fromEntries(names.map((name, at) => [name, line[at] ?? null]))
    problems.push(...rowProblems(row, services).map((problem) => `line ${i + 2}: ${problem}`))
  }
  return problems
}

function headingProblems(names: readonly string[]): string[] {
  const known = new Set(FOCUS_COLUMNS.map(({ name }) => name))
  const problems = FOCUS_COLUMNS.filter(({ name, isMandatory }) => isMandatory && !names.includes(name)).map(
    ({ name }) => `the column ${name} is missing`,
  )
  const twice = names.filter((name, at) => names.indexOf(name) !== at)
  problems.push(...twice.map((name) => `the column ${name} is there twice`))
  for (const name of names) {
    if (known.has(name) || /^x_[A-Z][A-Za-z0-9]*$/.test(name)) continue
    problems.push(`the column ${name || 'without a name'} is not known here: names of your own are as x_Name`)
  }
  const ownAt = names.findIndex((name) => name.startsWith('x_'))
  const late = ownAt === -1 ? undefined : names.slice(ownAt).find((name) => known.has(name))
  if (late !== undefined) problems.push(`the column ${late} is behind a column of your own: those come last`)
  return problems
}

function rowProblems(row: FocusRow, services: Map<string, string>): string[] {
  const cells = FOCUS_COLUMNS.flatMap((column) => (column.name in row ? cellProblem(column, row[column.name]) : []))
  const rules = ROW_RULES.flatMap((rule) => rule(row) ?? [])
  const { ServiceName: service, ServiceCategory: category } = row
  const before = services.get(service ?? '')
  if (typeof service === 'string' && typeof category === 'string') services.set(service, category)
  const isMoved = before !== undefined && before !== category
  return [...cells, ...rules, ...(isMoved ? [`${service} is in two service categories: ${before}, ${category}`] : [])]
}

const FORMS: Readonly<Record<FocusType, readonly [RegExp, string]>> = {
  text: [/^.+$/s, 'text that is not empty; nothing at all means none'],
  decimal: [/^-?\d+(\.\d+)?(E-?\d+)?$/, 'a decimal, as 12.5 or 35.2E-7'],
  time: [/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/, 'a time in UTC, as 2026-03-01T00:00:00Z'],
}

function cellProblem({ name, type, isNullable, allowed, form }: FocusColumn, cell: string | null = null): string[] {
  if (cell === null) return isNullable ? [] : [`${name} is missing`]
  const wrong = (words: string): string[] => [`${name} is ${JSON.stringify(cell.slice(0, 60))}, and has to be ${words}`]
  if (/^(NULL|N\/A|Not Applicable)$/.test(cell)) return wrong('empty where there is none')
  for (const [pattern, words] of form === undefined ? [FORMS[type]] : [FORMS[type], form]) {
    if (!pattern.test(cell)) return wrong(words)
  }
  if (type === 'time' && !isTime(cell)) return wrong('a time that there is')
  return allowed === undefined || allowed.includes(cell) ? [] : wrong(`one of: ${allowed.join(', ')}`)
}

/** The 31st of February is none. */
function isTime(text: string): boolean {
  const ms = Date.parse(text)
  return !Number.isNaN(ms) && new Date(ms).toISOString().slice(0, 19) === text.slice(0, 19)
}
