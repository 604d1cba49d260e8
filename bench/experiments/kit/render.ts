import type { Cell, Result, Table } from './result.ts'

/** A result as text for a terminal, and as Markdown for a page. */
export function renderText({ title, about, tables, verdict }: Result): string {
  const parts = [title, about, ...tables.map(textTable), ...verdict.map((line) => `- ${line}`)]
  return `${parts.join('\n\n')}\n`
}

/** Without a heading: where it stands decides how deep that is. */
export function renderMarkdown(result: Result): string {
  const { about, command, seeds, date, commit, machine, seconds, tables, verdict } = result
  const [first = 1, last = first] = [seeds[0], seeds.at(-1)]
  const which = seeds.length === 1 ? `seed ${first}` : `mean of seeds ${first}–${last}`
  const origin = `\`${command}\` · ${which} · ${date} · commit ${commit} · ${seconds} s on ${machine}`
  const lines = verdict.map((line) => `- ${line}`).join('\n')
  return `${[about, ...tables.map(markdownTable), lines, origin].join('\n\n')}\n`
}

function markdownTable({ title, columns, rows }: Table): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const rule = columns.map((_, index) => (index === 0 ? '---' : '---:'))
  return [`**${title}**`, '', line(columns), line(rule), ...rows.map((row) => line(row.map(shown)))].join('\n')
}

export function textTable({ title, columns, rows }: Table): string {
  const cells = [columns, ...rows.map((row) => row.map(shown))]
  const widths = columns.map((_, index) => Math.max(...cells.map((row) => (row[index] ?? '').length)))
  const pad = (text: string, index: number): string =>
    index === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[index] ?? 0)
  return [title, ...cells.map((row) => `  ${row.map(pad).join('  ')}`)].join('\n')
}

/** Large numbers without decimals, small ones with as many as say something. */
function shown(cell: Cell): string {
  if (cell === null) return '–'
  if (typeof cell === 'string') return cell
  const size = Math.abs(cell)
  const digits = size >= 100 || Number.isInteger(cell) ? 0 : size >= 1 ? 1 : 3
  const rounded = Number(cell.toFixed(digits))
  // No negative zero.
  return (rounded === 0 ? 0 : rounded).toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
}
