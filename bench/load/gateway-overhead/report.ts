/** The run as text: one table of figures, one of ratios, the aims, and what went wrong. The same cells make the Markdown. */
import { judgeAims } from './aims.ts'
import type { Run } from './record.ts'
import { REFERENCES, type Row, type Spread } from './summary.ts'

/** Three figures are all that the spread ever supports. */
function compact(value: number): string {
  const size = Math.abs(value)
  if (size >= 100_000) return `${(value / 1000).toFixed(0)}k`
  if (size >= 10_000) return `${(value / 1000).toFixed(1)}k`
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0)
  if (size >= 10) return value.toFixed(1)
  return value.toFixed(size >= 0.1 ? 2 : 3)
}

function show(spread: Spread | undefined): string {
  if (spread === undefined) return '–'
  const middle = compact(spread.median)
  if (spread.rounds === 1 || (compact(spread.min) === middle && compact(spread.max) === middle)) return middle
  return `${middle} (${compact(spread.min)}–${compact(spread.max)})`
}

type Table = readonly (readonly string[])[]

const labelOf = (row: Row): string =>
  `${row.metric.label}${row.metric.unit && row.metric.unit !== '/s' ? `, ${row.metric.unit}` : ''}`
const arrowOf = (row: Row): string => (row.metric.better === 'more' ? '↑' : '↓')

function valueTable(rows: readonly Row[]): Table {
  const targets = rows[0]?.cells.map((cell) => cell.target) ?? []
  const head = ['', 'better', ...targets]
  return [head, ...rows.map((row) => [labelOf(row), arrowOf(row), ...row.cells.map((cell) => show(cell.value))])]
}

/** Every proxy against the two references; nginx against Portkey would only repeat the opposite column. */
function ratioTable(rows: readonly Row[]): Table {
  const targets = rows[0]?.cells.map((cell) => cell.target).filter((target) => target !== 'direct') ?? []
  const pairs = targets.flatMap((target) =>
    REFERENCES.filter((reference) => reference !== target && target !== 'nginx' && targets.includes(reference)).map(
      (reference) => ({
        target,
        reference,
      }),
    ),
  )
  const head = ['', 'better', ...pairs.map(({ target, reference }) => `${target} ÷ ${reference}`)]
  const body = rows.map((row) => [
    labelOf(row),
    arrowOf(row),
    ...pairs.map(({ target, reference }) => show(row.cells.find((cell) => cell.target === target)?.ratios[reference])),
  ])
  return [head, ...body.filter((cells) => cells.slice(2).some((cell) => cell !== '–'))]
}

function aligned(table: Table): string {
  const widths = (table[0] ?? []).map((_, i) => Math.max(...table.map((cells) => cells[i]?.length ?? 0)))
  const line = (cells: readonly string[]): string =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  ')
  const [head = [], ...body] = table
  return [line(head), widths.map((width) => '-'.repeat(width)).join('  '), ...body.map(line)].join('\n')
}

function markdown(table: Table): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const [head = [], ...body] = table
  return [line(head), line(head.map((_, i) => (i === 0 ? '---' : '---:'))), ...body.map(line)].join('\n')
}

const NOTE_VALUES =
  'Median (min–max) over the rounds. "Added" is beyond direct in the same round; the direct column shows its own time.'
const NOTE_RATIOS = 'Each ratio is taken inside one round, then summarised: median (min–max).'

function setting(run: Run): string[] {
  const { machine } = run
  return [
    `${machine.cpu} x ${machine.cores}, ${machine.memoryGb} GB, ${machine.system}; proxy ${machine.isPinned ? 'on core 0, upstream and client on core 1' : 'not pinned'}, ${machine.isNiced ? 'raised' : 'normal'} priority`,
    `rounds: ${run.rounds}, with open streams: ${run.heldRounds}; ${run.versions.map((v) => `${v.target} ${v.version}`).join(', ')}`,
    `memory after the start, all processes: ${Object.entries(run.idleMb)
      .map(([target, mb]) => `${target} ${mb.toFixed(0)} MB`)
      .join(', ')}`,
    `noise: ${run.noise.stolenSeconds.toFixed(1)} CPU-seconds taken by the host in ${run.noise.wallSeconds.toFixed(0)} s, load average ${run.noise.loadBefore.toFixed(1)} before and ${run.noise.loadAfter.toFixed(1)} after; ${run.noise.repeats} slices repeated for it`,
  ]
}

/** A target that fails everywhere would otherwise bury the tables. */
const FAULT_LINES_MAX = 20

function closing(run: Run): string[] {
  const aims = judgeAims(run, 'spillway')
  const lines = aims.map((aim) => `${aim.isMet ? 'met    ' : 'NOT MET'}  ${aim.text}: ${aim.found}`)
  const faults = run.faults
    .slice(0, FAULT_LINES_MAX)
    .map((fault) => `fault    round ${fault.round + 1}, ${fault.slice}, ${fault.target}: ${fault.what}`)
  if (run.faults.length > FAULT_LINES_MAX)
    faults.push(`fault    … and ${run.faults.length - FAULT_LINES_MAX} more (--json)`)
  const skipped = run.skipped.map((text) => `skipped  ${text}`)
  return [...lines, ...skipped, ...faults]
}

export function renderText(run: Run): string {
  const parts = [
    `gateway overhead, ${run.date}, ${run.commit}`,
    ...setting(run),
    '',
    NOTE_VALUES,
    '',
    aligned(valueTable(run.rows)),
  ]
  const ratios = ratioTable(run.rows)
  if (ratios.length > 1) parts.push('', `Ratios. ${NOTE_RATIOS}`, '', aligned(ratios))
  const end = closing(run)
  if (end.length > 0) parts.push('', ...end)
  return parts.join('\n')
}

/** `notes`: what a person found out about these figures, in Markdown; kept in `notes.md`. */
export function renderMarkdown(run: Run, notes = ''): string {
  const parts = [
    '# Gateway overhead',
    '',
    `Measured ${run.date} at ${run.commit} with`,
    '',
    '```sh',
    run.command,
    '```',
    '',
    ...setting(run).map((line) => `- ${line}`),
    '',
    'What each row means: [bench/load/README.md](../load/README.md).',
    '',
    '## Figures',
    '',
    NOTE_VALUES,
    '',
    markdown(valueTable(run.rows)),
    '',
    '## Ratios',
    '',
    NOTE_RATIOS,
    '',
    markdown(ratioTable(run.rows)),
  ]
  const end = closing(run)
  if (end.length > 0) parts.push('', '## Aims and faults', '', '```text', ...end, '```')
  if (notes !== '') parts.push('', notes.trimEnd())
  return `${parts.join('\n')}\n`
}
